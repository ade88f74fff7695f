// Converts printed HIP text to CUDA for NVRTC: defines clang's AMD builtins in terms of NVIDIA's. A
// wave of 32 lanes is a warp.
#include <regex>

#include "doubles/hip_double.h"

namespace prism::test::hip_double {
namespace {

constexpr const char* kPrelude = R"(
#define __ATOMIC_RELAXED 0
#define __ATOMIC_ACQUIRE 2
#define __ATOMIC_RELEASE 3
#define __HIP_MEMORY_SCOPE_AGENT 0
#define PRISM_FORWARD __device__ __forceinline__

#define __builtin_amdgcn_workitem_id_x() threadIdx.x
#define __builtin_amdgcn_workgroup_id_x() blockIdx.x
#define __builtin_amdgcn_workgroup_id_y() blockIdx.y
#define __builtin_amdgcn_workgroup_id_z() blockIdx.z
#define __builtin_amdgcn_grid_size_x() (gridDim.x * blockDim.x)
#define __builtin_amdgcn_grid_size_y() gridDim.y
#define __builtin_amdgcn_grid_size_z() gridDim.z
// A barrier fences inside the group itself.
#define __builtin_amdgcn_fence(order, scope) \
  do { if ((scope)[0] == 'a') asm volatile("fence.acq_rel.gpu;" ::: "memory"); } while (false)
#define __builtin_amdgcn_s_barrier() __syncthreads()
#define __builtin_amdgcn_mbcnt_lo(mask, from) ((from) + (threadIdx.x & 31u))
#define __builtin_amdgcn_mbcnt_hi(mask, from) (from)
#define __builtin_amdgcn_ds_bpermute(bytes, word) __shfl_sync(0xffffffffu, word, (bytes) / 4)
#define __builtin_amdgcn_sdot4(a, b, c, clamp) __dp4a(a, b, c)
#define __builtin_amdgcn_sudot4(a_signed, a, b_signed, b, c, clamp) __dp4a(a, b, c)
#define __builtin_amdgcn_udot4(a, b, c, clamp) __dp4a(a, b, c)
#define __builtin_popcount(x) __popc((int)(x))
#define __builtin_clz(x) __clz((int)(x))
#define __builtin_bit_cast(To, x) prism_forward_cast<To>(x)
// Four words: the only loads of that kind.
#define ext_vector_type(n)
#define __builtin_nontemporal_load(p) prism_forward_load(p)
struct prism_forward_words { unsigned x, y, z, w; };
PRISM_FORWARD prism_forward_words prism_forward_load(const unsigned* from) {
  prism_forward_words x;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
  return x;
}

template <class To, class From> PRISM_FORWARD To prism_forward_cast(From x) {
  static_assert(sizeof(To) == sizeof(From), "a cast of bits keeps their number");
  union Both { From from; To to; PRISM_FORWARD Both() {} } both;
  both.from = x;
  return both.to;
}

struct prism_forward_half {
  unsigned short bits;
  prism_forward_half() = default;
  PRISM_FORWARD prism_forward_half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  PRISM_FORWARD explicit prism_forward_half(double x) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); }
  PRISM_FORWARD explicit prism_forward_half(int x) : prism_forward_half((double)x) {}
  PRISM_FORWARD explicit prism_forward_half(unsigned x) : prism_forward_half((double)x) {}
  PRISM_FORWARD explicit prism_forward_half(bool x) : prism_forward_half(x ? 1.0f : 0.0f) {}
  PRISM_FORWARD operator float() const { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(bits)); return y; }
  PRISM_FORWARD prism_forward_half operator-() const { return prism_forward_half(-(float)*this); }
};
#define _Float16 prism_forward_half
#define PRISM_FORWARD_HALF(op) \
  PRISM_FORWARD _Float16 operator op(_Float16 a, _Float16 b) { return _Float16((float)a op (float)b); }
PRISM_FORWARD_HALF(+)
PRISM_FORWARD_HALF(-)
PRISM_FORWARD_HALF(*)
PRISM_FORWARD_HALF(/)

#define PRISM_FORWARD_MATH(name) \
  PRISM_FORWARD float prism_forward_##name##f(float x) { return name##f(x); } \
  PRISM_FORWARD double prism_forward_##name(double x) { return name(x); }
PRISM_FORWARD_MATH(sqrt)
PRISM_FORWARD_MATH(floor)
PRISM_FORWARD_MATH(ceil)
PRISM_FORWARD_MATH(trunc)
PRISM_FORWARD_MATH(rint)
PRISM_FORWARD_MATH(fabs)
PRISM_FORWARD_MATH(exp)
PRISM_FORWARD_MATH(exp2)
PRISM_FORWARD_MATH(log)
PRISM_FORWARD_MATH(log2)
PRISM_FORWARD_MATH(sin)
PRISM_FORWARD_MATH(cos)
PRISM_FORWARD_MATH(tanh)
#define __builtin_sqrtf prism_forward_sqrtf
#define __builtin_sqrt prism_forward_sqrt
#define __builtin_floorf prism_forward_floorf
#define __builtin_floor prism_forward_floor
#define __builtin_ceilf prism_forward_ceilf
#define __builtin_ceil prism_forward_ceil
#define __builtin_truncf prism_forward_truncf
#define __builtin_trunc prism_forward_trunc
#define __builtin_rintf prism_forward_rintf
#define __builtin_rint prism_forward_rint
#define __builtin_fabsf prism_forward_fabsf
#define __builtin_fabs prism_forward_fabs
#define __builtin_expf prism_forward_expf
#define __builtin_exp2f prism_forward_exp2f
#define __builtin_logf prism_forward_logf
#define __builtin_log2f prism_forward_log2f
#define __builtin_sinf prism_forward_sinf
#define __builtin_cosf prism_forward_cosf
#define __builtin_tanhf prism_forward_tanhf
#define __builtin_fmaf(a, b, c) fmaf(a, b, c)
#define __builtin_fma(a, b, c) fma(a, b, c)

#define __hip_atomic_fetch_add(p, x, order, scope) atomicAdd(p, x)
#define __hip_atomic_fetch_min(p, x, order, scope) atomicMin(p, x)
#define __hip_atomic_fetch_max(p, x, order, scope) atomicMax(p, x)
#define __hip_atomic_fetch_and(p, x, order, scope) atomicAnd(p, x)
#define __hip_atomic_fetch_or(p, x, order, scope) atomicOr(p, x)
#define __hip_atomic_fetch_xor(p, x, order, scope) atomicXor(p, x)
#define __hip_atomic_exchange(p, x, order, scope) atomicExch(p, x)
template <class T> PRISM_FORWARD bool prism_forward_compare(T* p, T* expected, T x) {
  const T before = *expected;
  *expected = atomicCAS(p, before, x);
  return *expected == before;
}
#define __hip_atomic_compare_exchange_strong(p, expected, x, success, failure, scope) \
  prism_forward_compare(p, expected, x)
)";

}  // namespace

std::string forwarded_text(const std::string& text) {
  std::string own = text;
  const auto replace = [&](const char* what, const char* with) {
    own = std::regex_replace(own, std::regex(what), with);
  };
  replace(R"(#pragma clang [^\n]*)", "");
  replace(R"(static inline __attribute__\(\(device, always_inline\)\))",
          "static __device__ __forceinline__");
  replace(R"(__attribute__\(\(global, amdgpu_flat_work_group_size\((\d+), \d+\)\)\) void )",
          "__global__ void __launch_bounds__($1) ");
  replace(R"(__attribute__\(\(global\)\))", "__global__");
  replace(R"(__attribute__\(\(shared, aligned\(16\)\)\))", "__shared__ __align__(16)");
  return kPrelude + own;
}

}  // namespace prism::test::hip_double

// For tests of the text itself.
extern "C" const char* prism_hip_double_forwarded(const char* text) {
  static thread_local std::string result;
  result = prism::test::hip_double::forwarded_text(text);
  return result.c_str();
}
