// Matrix fragments in CUDA: 16 x 16 tiles in registers, multiplied by mma.sync with PTX's register
// layout.
//
// Lane 4g+t holds 8 elements of an accumulator: e has row g + 8*(e bit 1) and column 2t + (e bit 0)
// + 8*(e bit 2). It holds 4 words of an operand, each with 2 (16-bit) or 4 (8-bit) elements along
// k. Word r of an a operand has row g + 8*(r bit 0) and the upper half of k if r bit 1 is set; word
// r of a b operand has column g + 8*(r bit 1) and the upper half of k if r bit 0 is set. So an
// accumulator's pairs, rounded, are the words of an a operand.
#include <fmt/format.h>

#include "print/cuda_printer.h"

namespace prism {

using ir::Fragment;
using ir::FragmentRole;
using ir::Memory;
using ir::Op;
using ir::Space;

namespace {

std::string multiply_function(const std::string& f, const char* name, const char* shape,
                              const char* type, const char* c) {
  return fmt::format(
      R"({f}void prism_multiply_{name}({type} (&c)[8], const unsigned (&a)[4], const unsigned (&b)[4]) {{
#pragma unroll
  for (int i = 0; i < 2; ++i)
    asm("mma.sync.aligned.{shape} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                 : "+{c}"(c[4 * i]), "+{c}"(c[4 * i + 1]), "+{c}"(c[4 * i + 2]), "+{c}"(c[4 * i + 3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * i]), "r"(b[2 * i + 1]));
}})",
      fmt::arg("f", f), fmt::arg("name", name), fmt::arg("shape", shape), fmt::arg("type", type),
      fmt::arg("c", c));
}

std::string load_function(const std::string& f, const char* name, const char* modifier) {
  return fmt::format(
      R"(template <class T> {}void {}(unsigned (&x)[4], const T* array, unsigned index) {{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(prism_shared_address(array, index)) : "memory");
}})",
      f, name, modifier);
}

}  // namespace

std::vector<PreludeItem> cuda_fragment_prelude(const std::string& f) {
  std::vector<PreludeItem> items = {
      {"prism_pack_bf16", f + R"(unsigned prism_pack_bf16(float low, float high) {
  unsigned y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
})",
       true},
      {"prism_fill",
       "template <class T, int count> " + f + R"(void prism_fill(T (&x)[count], T value) {
#pragma unroll
  for (int i = 0; i < count; ++i) x[i] = value;
})"},
      {"prism_fragment_row", f + R"(unsigned prism_fragment_row(unsigned e) {
  return (threadIdx.x & 31u) / 4u + (e & 2u) * 4u;
})"},
      {"prism_fragment_column", f + R"(unsigned prism_fragment_column(unsigned e) {
  return (threadIdx.x & 3u) * 2u + (e & 1u) + (e & 4u) * 2u;
})"},
      {"prism_a_row", f + R"(unsigned prism_a_row(unsigned r) {
  return (threadIdx.x & 31u) / 4u + (r & 1u) * 8u;
})"},
      {"prism_a_k", "template <unsigned k> " + f + R"(unsigned prism_a_k(unsigned r) {
  return (threadIdx.x & 3u) * (k / 8u) + (r / 2u) * (k / 2u);
})"},
      {"prism_b_column", f + R"(unsigned prism_b_column(unsigned r) {
  return (threadIdx.x & 31u) / 4u + (r / 2u) * 8u;
})"},
      {"prism_b_k", "template <unsigned k> " + f + R"(unsigned prism_b_k(unsigned r) {
  return (threadIdx.x & 3u) * (k / 8u) + (r & 1u) * (k / 2u);
})"},
      {"prism_load_matrix", load_function(f, "prism_load_matrix", ""), true},
      {"prism_load_matrix_transposed", load_function(f, "prism_load_matrix_transposed", ".trans"),
       true},
      {"prism_transpose_8x8", f + R"(unsigned prism_transpose_8x8(unsigned x) {
  unsigned y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
})",
       true},
      {"prism_multiply_f16",
       multiply_function(f, "f16", "m16n8k16.row.col.f32.f16.f16.f32", "float", "f"), true},
      {"prism_multiply_bf16",
       multiply_function(f, "bf16", "m16n8k16.row.col.f32.bf16.bf16.f32", "float", "f"), true},
      {"prism_multiply_i8",
       multiply_function(f, "i8", "m16n8k32.row.col.s32.s8.s8.s32", "int", "r"), true},
  };
  for (const char* type : {"f16", "bf16"}) {
    items.push_back(
        {fmt::format("prism_convert_a_{}", type),
         fmt::format(R"({f}void prism_convert_a_{t}(unsigned (&a)[4], const float (&c)[8]) {{
#pragma unroll
  for (int r = 0; r < 4; ++r) a[r] = prism_pack_{t}(c[2 * r], c[2 * r + 1]);
}})",
                     fmt::arg("f", f), fmt::arg("t", type))});
    items.push_back(
        {fmt::format("prism_convert_b_{}", type),
         fmt::format(R"({f}void prism_convert_b_{t}(unsigned (&b)[4], const float (&c)[8]) {{
#pragma unroll
  for (int r = 0; r < 4; ++r) b[r] = prism_transpose_8x8(prism_pack_{t}(c[2 * r], c[2 * r + 1]));
}})",
                     fmt::arg("f", f), fmt::arg("t", type))});
  }
  for (const char* op : {"add", "min", "max", "and", "or", "xor"})
    items.push_back(
        {fmt::format("prism_row_reduce_{}", op),
         fmt::format(
             R"(template <class T> {f}void prism_row_reduce_{op}(T (&to)[8], const T (&from)[8]) {{
#pragma unroll
  for (int half = 0; half < 4; half += 2) {{
    T x = prism_combine_{op}(prism_combine_{op}(from[half], from[half + 1]), prism_combine_{op}(from[half + 4], from[half + 5]));
    x = prism_combine_{op}(x, prism_shuffle_xor<32>(x, 1u));
    x = prism_combine_{op}(x, prism_shuffle_xor<32>(x, 2u));
    to[half] = to[half + 1] = to[half + 4] = to[half + 5] = x;
  }}
}})",
             fmt::arg("f", f), fmt::arg("op", op))});
  return items;
}

// One ldmatrix loads all four words if 16-byte rows are provably aligned in shared memory.
bool CudaPrinter::load_at_once(const Inst& inst, const std::string& index,
                               const std::string& stride) {
  const Fragment& f = kernel_.fragments[inst.object];
  const Memory& memory = kernel_.memories[inst.object2];
  const uint32_t row = 16 / static_cast<uint32_t>(dtype_bytes(f.element));
  if (memory.space != Space::shared || memory.element != f.element || !is_aligned(inst, row))
    return false;
  const bool is_a = f.role == FragmentRole::a;
  const bool along_k = is_a == (inst.bits == 0);  // k is contiguous: no transposition
  if (!along_k && f.element == DType::i8) return false;
  // Lane l addresses row l%8 of matrix l/8; the matrices are the words in order.
  const std::string low = "(threadIdx.x & 15u)", high = "((threadIdx.x >> 4) & 1u)";
  const std::string low8 = "((threadIdx.x & 7u) + ((threadIdx.x >> 4) & 1u) * 8u)",
                    middle = "((threadIdx.x >> 3) & 1u)";
  const bool plain = is_a == along_k;  // rows: lanes 0-15 in order, then the other half of each row
  line(fmt::format("prism_load_matrix{}({}, {}, {} + {} * {} + {} * {}u);",
                   along_k ? "" : "_transposed", fragment_names_[inst.object],
                   memory_names_[inst.object2], index, plain ? low : low8, stride,
                   plain ? high : middle, row));
  return true;
}

}  // namespace prism
