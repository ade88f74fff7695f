// Matrix fragments in CUDA: 16 x 16 tiles in registers, multiplied by mma.sync, whose register
// layout PTX fixes.
//
// Of an accumulator, lane 4g+t holds 8 elements: e has row g + 8*(e bit 1) and column 2t + (e bit
// 0) + 8*(e bit 2). Of an operand it holds 4 words of 2 (16-bit) or 4 (8-bit) elements along k.
// Word r of an a operand has row g + 8*(r bit 0) and the upper half of k for r bit 1; of a b
// operand column g + 8*(r bit 1) and the upper half of k for r bit 0. So an accumulator's pairs
// are, rounded, the words of an a operand.
#include <fmt/format.h>

#include "print/cuda_printer.h"

namespace prism {

using ir::Fragment;
using ir::FragmentRole;
using ir::Memory;
using ir::Op;
using ir::Space;

namespace {

constexpr const char* kUnroll = "#pragma unroll";

uint32_t per_word(const Fragment& f) { return static_cast<uint32_t>(4 / dtype_bytes(f.element)); }

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

std::vector<PreludeItem> cuda_fragment_prelude(uint32_t level, const std::string& f) {
  if (level < 80) return {};
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
      {"prism_fragment_row", f + "unsigned prism_fragment_row(unsigned e) { return (threadIdx.x & "
                                 "31u) / 4u + (e & 2u) * 4u; }"},
      {"prism_fragment_column", f + "unsigned prism_fragment_column(unsigned e) { return "
                                    "(threadIdx.x & 3u) * 2u + (e & 1u) + (e & 4u) * 2u; }"},
      {"prism_a_row",
       f + "unsigned prism_a_row(unsigned r) { return (threadIdx.x & 31u) / 4u + (r & 1u) * 8u; }"},
      {"prism_a_k", "template <unsigned k> " + f +
                        "unsigned prism_a_k(unsigned r) { return (threadIdx.x & 3u) * (k / 8u) + "
                        "(r / 2u) * (k / 2u); }"},
      {"prism_b_column", f + "unsigned prism_b_column(unsigned r) { return (threadIdx.x & 31u) / "
                             "4u + (r / 2u) * 8u; }"},
      {"prism_b_k", "template <unsigned k> " + f +
                        "unsigned prism_b_k(unsigned r) { return (threadIdx.x & 3u) * (k / 8u) + "
                        "(r & 1u) * (k / 2u); }"},
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

bool CudaPrinter::is_aligned(const Inst& inst, uint32_t elements) const {
  return multiples_[inst.args[0]] >= elements && multiples_[inst.args[1]] >= elements;
}

// The index of an element; bits of the instruction say how rows and columns lie.
std::string CudaPrinter::place(const Inst& inst, const std::string& row, const std::string& column,
                               const std::string& index, const std::string& stride) const {
  const bool column_major = inst.bits == 1;
  return fmt::format("{} + {} * {} + {}", index, column_major ? column : row, stride,
                     column_major ? row : column);
}

bool CudaPrinter::fragment(const Inst& inst) {
  if (inst.op < Op::fragment_fill || inst.op > Op::fragment_convert) return false;
  const Fragment& f = kernel_.fragments[inst.object];
  const std::string& name = fragment_names_[inst.object];
  const bool accumulates = f.role == FragmentRole::accumulator;
  switch (inst.op) {
    case Op::fragment_fill:
      fill(inst);
      return true;
    case Op::fragment_load:
      accumulates ? load_accumulator(inst) : load_operand(inst);
      return true;
    case Op::fragment_store:
      accumulates ? store_accumulator(inst) : store_operand(inst);
      return true;
    case Op::fragment_multiply:
      line(fmt::format("prism_multiply_{}({}, {}, {});",
                       dtype_name(kernel_.fragments[inst.objects[0]].element), name,
                       fragment_names_[inst.objects[0]], fragment_names_[inst.objects[1]]));
      return true;
    case Op::fragment_map:
      map(inst);
      return true;
    case Op::fragment_row_reduce:
      line(fmt::format("prism_row_reduce_{}({}, {});",
                       ir::reduce_op_name(static_cast<ir::ReduceOp>(inst.bits)), name,
                       fragment_names_[inst.objects[0]]));
      return true;
    default:
      if (f.element == DType::i8 || accumulates) return false;
      line(fmt::format("prism_convert_{}_{}({}, {});", f.role == FragmentRole::a ? "a" : "b",
                       dtype_name(f.element), name, fragment_names_[inst.objects[0]]));
      return true;
  }
}

void CudaPrinter::fill(const Inst& inst) {
  const Fragment& f = kernel_.fragments[inst.object];
  std::string value = atom(inst.args[0]);
  if (f.role != FragmentRole::accumulator) {
    if (f.element == DType::i8)
      value = fmt::format("((unsigned){} & 255u) * 0x01010101u", value);
    else
      value = fmt::format("prism_pack_{0}({1}, {1})", dtype_name(f.element), value);
  }
  line(fmt::format("prism_fill({}, {});", fragment_names_[inst.object], value));
}

void CudaPrinter::load_accumulator(const Inst& inst) {
  const std::string index = atom(inst.args[0]), stride = atom(inst.args[1]);
  line(kUnroll);
  line("for (unsigned prism_e = 0u; prism_e < 8u; ++prism_e)");
  line(fmt::format("  {}[prism_e] = {};", fragment_names_[inst.object],
                   element(inst.object2, place(inst, "prism_fragment_row(prism_e)",
                                               "prism_fragment_column(prism_e)", index, stride))));
}

void CudaPrinter::store_accumulator(const Inst& inst) {
  const std::string index = atom(inst.args[0]), stride = atom(inst.args[1]);
  const Memory& memory = kernel_.memories[inst.object2];
  const std::string& name = fragment_names_[inst.object];
  flush();
  line(kUnroll);
  const bool pairs = inst.bits == 0 && is_aligned(inst, 2);
  const std::string at =
      place(inst, "prism_fragment_row(prism_e)", "prism_fragment_column(prism_e)", index, stride);
  // Two neighbouring columns lie in one lane: half as many, wider stores.
  if (pairs && (memory.element == DType::f32 || memory.element == DType::i32)) {
    const std::string type = vector_type({memory.element, 2});
    line("for (unsigned prism_e = 0u; prism_e < 8u; prism_e += 2u)");
    line(fmt::format("  *{} = {}{{{}[prism_e], {}[prism_e + 1u]}};",
                     pointer(inst.object2, type, at, true), type, name, name));
  } else if (pairs && memory.element == DType::f16) {
    line("for (unsigned prism_e = 0u; prism_e < 8u; prism_e += 2u)");
    line(fmt::format("  *{} = prism_pack_f16({}[prism_e], {}[prism_e + 1u]);",
                     pointer(inst.object2, "unsigned", at, true), name, name));
  } else {
    line("for (unsigned prism_e = 0u; prism_e < 8u; ++prism_e)");
    line(fmt::format("  {}[{}] = {};", memory_names_[inst.object2], at,
                     narrow(memory.element, name + "[prism_e]")));
  }
}

// One ldmatrix gives all four words where rows of 16 bytes are known to be aligned in shared
// memory.
bool CudaPrinter::load_by_matrix(const Inst& inst, const std::string& index,
                                 const std::string& stride) {
  const Fragment& f = kernel_.fragments[inst.object];
  const Memory& memory = kernel_.memories[inst.object2];
  const uint32_t row = 16 / static_cast<uint32_t>(dtype_bytes(f.element));
  if (memory.space != Space::shared || memory.element != f.element || !is_aligned(inst, row))
    return false;
  const bool is_a = f.role == FragmentRole::a;
  const bool along_k = is_a == (inst.bits == 0);  // k runs along memory: the words are as they lie
  if (!along_k && f.element == DType::i8) return false;
  // Lane l names row l%8 of matrix l/8; the matrices are the words in their order.
  const std::string low = "(threadIdx.x & 15u)", high = "((threadIdx.x >> 4) & 1u)";
  const std::string low8 = "((threadIdx.x & 7u) + ((threadIdx.x >> 4) & 1u) * 8u)",
                    middle = "((threadIdx.x >> 3) & 1u)";
  const bool plain =
      is_a == along_k;  // rows: lanes 0-15 one after another, then the other half of the line
  line(fmt::format("prism_load_matrix{}({}, {}, {} + {} * {} + {} * {}u);",
                   along_k ? "" : "_transposed", fragment_names_[inst.object],
                   memory_names_[inst.object2], index, plain ? low : low8, stride,
                   plain ? high : middle, row));
  return true;
}

void CudaPrinter::load_operand(const Inst& inst) {
  const std::string index = atom(inst.args[0]), stride = atom(inst.args[1]);
  if (load_by_matrix(inst, index, stride)) return;
  const Fragment& f = kernel_.fragments[inst.object];
  const Memory& memory = kernel_.memories[inst.object2];
  const bool is_a = f.role == FragmentRole::a;
  const uint32_t count = per_word(f);
  const std::string outer = is_a ? "prism_a_row(prism_r)" : "prism_b_column(prism_r)";
  const std::string inner = fmt::format("{}<{}>(prism_r)", is_a ? "prism_a_k" : "prism_b_k", f.k);
  const bool along_k = is_a == (inst.bits == 0);
  line(kUnroll);
  line("for (unsigned prism_r = 0u; prism_r < 4u; ++prism_r)");
  const std::string to = "  " + fragment_names_[inst.object] + "[prism_r] = ";
  if (along_k && memory.element == f.element && is_aligned(inst, count)) {
    line(to + "*" +
         pointer(inst.object2, "unsigned",
                 fmt::format("{} + {} * {} + {}", index, outer, stride, inner), false) +
         ";");
    return;
  }
  std::string word;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string k = i == 0 ? inner : fmt::format("({} + {}u)", inner, i);
    const std::string at = place(inst, is_a ? outer : k, is_a ? k : outer, index, stride);
    const std::string stored = memory.element == f.element
                                   ? fmt::format("{}[{}]", memory_names_[inst.object2], at)
                                   : narrow(f.element, element(inst.object2, at));
    const std::string part =
        f.element == DType::i8 ? "(unsigned)(unsigned char)" + stored : "(unsigned)" + stored;
    word += i == 0 ? part : fmt::format(" | ({} << {})", part, i * 32 / count);
  }
  line(to + word + ";");
}

void CudaPrinter::store_operand(const Inst& inst) {
  const std::string index = atom(inst.args[0]), stride = atom(inst.args[1]);
  const Fragment& f = kernel_.fragments[inst.object];
  const Memory& memory = kernel_.memories[inst.object2];
  const bool is_a = f.role == FragmentRole::a;
  const uint32_t count = per_word(f);
  const std::string outer = is_a ? "prism_a_row(prism_r)" : "prism_b_column(prism_r)";
  const std::string inner = fmt::format("{}<{}>(prism_r)", is_a ? "prism_a_k" : "prism_b_k", f.k);
  const std::string stored_type = f.element == DType::i8 ? "signed char" : "unsigned short";
  flush();
  line(kUnroll);
  open("for (unsigned prism_r = 0u; prism_r < 4u; ++prism_r)");
  for (uint32_t i = 0; i < count; ++i) {
    const std::string k = fmt::format("({} + {}u)", inner, i);
    const std::string at = place(inst, is_a ? outer : k, is_a ? k : outer, index, stride);
    const std::string bits = fmt::format("({})({}[prism_r] >> {})", stored_type,
                                         fragment_names_[inst.object], i * 32 / count);
    if (memory.element == f.element)
      line(fmt::format("{}[{}] = {};", memory_names_[inst.object2], at, bits));
    else
      store_element(inst.object2, at, widen(f.element, bits));
  }
  close();
}

void CudaPrinter::map(const Inst& inst) {
  const ir::Block& body = inst.blocks[0];
  flush();
  line(kUnroll);
  open("for (unsigned prism_e = 0u; prism_e < 8u; ++prism_e)");
  const size_t sources = inst.objects.size();
  for (size_t i = 0; i < sources; ++i)
    set_value(body.params[i], fragment_names_[inst.objects[i]] + "[prism_e]");
  for (size_t i = sources; i < body.params.size(); ++i)
    set_value(body.params[i],
              i == sources ? "prism_fragment_row(prism_e)" : "prism_fragment_column(prism_e)");
  const std::string value = yielded(body);
  line(fmt::format("{}[prism_e] = {};", fragment_names_[inst.object], bare(value)));
  close();
}

}  // namespace prism
