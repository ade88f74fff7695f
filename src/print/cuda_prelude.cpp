// The functions that CUDA kernels call: NVRTC builtins and inline PTX.
//
// The kernel text is the same for every compute capability; the level selects the instruction in
// each function.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "print/c_prelude.h"
#include "print/cuda_printer.h"

namespace prism {
namespace {

constexpr const char* kQualifier = "__device__ __forceinline__ ";

std::vector<PreludeItem> integers() {
  return {
      {"prism_bitcast", R"(template <class To, class From>
__device__ __forceinline__ To prism_bitcast(From x) {
  union { From from; To to; } u;
  u.from = x;
  return u.to;
})"},
      {"prism_mul_high_u32",
       R"(__device__ __forceinline__ unsigned prism_mul_high_u32(unsigned a, unsigned b) {
  return __umulhi(a, b);
})"},
      {"prism_mul_high_i32", R"(__device__ __forceinline__ int prism_mul_high_i32(int a, int b) {
  return __mulhi(a, b);
})"},
      {"prism_popcount", R"(__device__ __forceinline__ unsigned prism_popcount(unsigned x) {
  return (unsigned)__popc((int)x);
})"},
      {"prism_count_leading_zeros",
       R"(__device__ __forceinline__ unsigned prism_count_leading_zeros(unsigned x) {
  return (unsigned)__clz((int)x);
})"},
      {"prism_dot4_i8",
       R"(__device__ __forceinline__ int prism_dot4_i8(unsigned a, unsigned b, int c) {
  return __dp4a((int)a, (int)b, c);
})"},
      {"prism_dot4_u8",
       R"(__device__ __forceinline__ unsigned prism_dot4_u8(unsigned a, unsigned b, unsigned c) {
  return __dp4a(a, b, c);
})"},
  };
}

// Halves are unsigned short, pairs of them unsigned.
std::vector<PreludeItem> halves(uint32_t level) {
  return {
      {"prism_f32_from_f16",
       R"(__device__ __forceinline__ float prism_f32_from_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
})",
       true},
      {"prism_f16_from_f32",
       R"(__device__ __forceinline__ unsigned short prism_f16_from_f32(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
})",
       true},
      {"prism_pack_f16",
       level >= 80 ? R"(__device__ __forceinline__ unsigned prism_pack_f16(float low, float high) {
  unsigned y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
})"
                   : R"(__device__ __forceinline__ unsigned prism_pack_f16(float low, float high) {
  return (unsigned)prism_f16_from_f32(low) | ((unsigned)prism_f16_from_f32(high) << 16);
})",
       true},
      {"prism_fma_f16x2",
       R"(__device__ __forceinline__ unsigned prism_fma_f16x2(unsigned a, unsigned b, unsigned c) {
  asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c));
  return a;
})",
       true},
  };
}

std::vector<PreludeItem> ordering(uint32_t level) {
  return {
      {"prism_wait_previous", R"(__device__ __forceinline__ void prism_wait_previous() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
})",
       true},
      {"prism_launch_next", R"(__device__ __forceinline__ void prism_launch_next() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
})",
       true},
      // Acquire-release suffices: __threadfence() also takes part in one total order of fences.
      {"prism_device_fence",
       level >= 70 ? R"(__device__ __forceinline__ void prism_device_fence() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
})"
                   : R"(__device__ __forceinline__ void prism_device_fence() {
  __threadfence();
})",
       true},
  };
}

std::vector<PreludeItem> loads() {
  return {
      {"prism_load_weights",
       R"(__device__ __forceinline__ prism_u32x4 prism_load_weights(const unsigned* from) {
  prism_u32x4 x;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
  return x;
})",
       true},
      {"prism_load_word",
       R"(__device__ __forceinline__ unsigned prism_load_word(const unsigned* from) {
  unsigned x;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(from));
  return x;
})",
       true},
  };
}

std::vector<PreludeItem> async_copies() {
  return {
      // Adds the index in 32 bits: with 64-bit addresses NVRTC generates a tenth more code.
      {"prism_shared_address", R"(template <class T>
__device__ __forceinline__ unsigned prism_shared_address(const T* array, unsigned index) {
  return (unsigned)__cvta_generic_to_shared(array) + index * (unsigned)sizeof(T);
})",
       true},
      {"prism_async_copy_4 prism_async_copy_8 prism_async_copy_16", R"(template <class T>
__device__ __forceinline__ void prism_async_copy_4(T* to, unsigned index, const void* from, bool copies) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               ::"r"(prism_shared_address(to, index)), "l"(from), "r"(copies ? 4 : 0) : "memory");
}
template <class T>
__device__ __forceinline__ void prism_async_copy_8(T* to, unsigned index, const void* from, bool copies) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               ::"r"(prism_shared_address(to, index)), "l"(from), "r"(copies ? 8 : 0) : "memory");
}
template <class T>
__device__ __forceinline__ void prism_async_copy_16(T* to, unsigned index, const void* from, bool copies) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               ::"r"(prism_shared_address(to, index)), "l"(from), "r"(copies ? 16 : 0) : "memory");
})",
       true},
      {"prism_async_commit", R"(__device__ __forceinline__ void prism_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
})",
       true},
      {"prism_async_wait", R"(template <int under_way>
__device__ __forceinline__ void prism_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(under_way) : "memory");
})",
       true},
  };
}

std::vector<PreludeItem> shuffles() {
  return {
      {"prism_shuffle", R"(template <unsigned size, class T>
__device__ __forceinline__ T prism_shuffle(T x, unsigned lane) {
  return __shfl_sync(0xffffffffu, x, (int)lane);
})"},
      {"prism_shuffle_xor", R"(template <unsigned size, class T>
__device__ __forceinline__ T prism_shuffle_xor(T x, unsigned mask) {
  return __shfl_xor_sync(0xffffffffu, x, (int)mask);
})"},
  };
}

// Reductions of a warp's words in one instruction. {0}: the operation.
constexpr const char* kReduceWords =
    R"(__device__ __forceinline__ unsigned prism_reduce_word_{0}(unsigned x) {{
  return __reduce_{0}_sync(0xffffffffu, x);
}}
__device__ __forceinline__ int prism_reduce_word_{0}(int x) {{
  return __reduce_{0}_sync(0xffffffffu, x);
}})";
constexpr const char* kReduceBits =
    R"(__device__ __forceinline__ unsigned prism_reduce_word_{0}(unsigned x) {{
  return __reduce_{0}_sync(0xffffffffu, x);
}}
__device__ __forceinline__ int prism_reduce_word_{0}(int x) {{
  return (int)__reduce_{0}_sync(0xffffffffu, (unsigned)x);
}})";

std::vector<PreludeItem> word_reductions() {
  std::vector<PreludeItem> items;
  const auto add = [&](const char* form, const char* op) {
    items.push_back({std::string("prism_reduce_word_") + op, fmt::format(fmt::runtime(form), op)});
  };
  for (const char* op : {"add", "min", "max"}) add(kReduceWords, op);
  for (const char* op : {"and", "or", "xor"}) add(kReduceBits, op);
  return items;
}

std::vector<PreludeItem> atomics(const CFunctions& functions) {
  return atomic_templates(
      functions,
      [](const std::string& op) {
        std::string name = op == "exchange" ? "exch" : op;
        name[0] = static_cast<char>(name[0] - 'a' + 'A');
        return "atomic" + name + "(p, x)";
      },
      "return atomicCAS(p, expected, x);");
}

}  // namespace

std::vector<PreludeItem> cuda_prelude(const CTable& table, uint32_t level) {
  const CFunctions functions{kQualifier, &table};
  std::vector<PreludeItem> items = vector_structs(table, "alignas({})");
  append(items, integers());
  append(items, halves(level));
  append(items, ordering(level));
  append(items, loads());
  append(items, async_copies());
  append(items, bit_functions(functions, "__float_as_uint", "__uint_as_float"));
  append(items, atomics(functions));
  append(items, combine_templates(functions));
  append(items, shuffles());
  if (level >= 80) append(items, word_reductions());
  append(items, subgroup_templates(functions));
  if (level >= 80) append(items, cuda_fragment_prelude(kQualifier));
  return items;
}

}  // namespace prism
