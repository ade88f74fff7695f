// HIP for the host compiler: clang's builtins for AMD GPUs as functions.
#pragma once

#include "fibers.h"
#include "numbers.h"
#include "shim_weights.h"

#define _Float16 shim::half
#define __HIP_MEMORY_SCOPE_AGENT 0
#define amdgpu_flat_work_group_size(least, most) unused  // clang accepts it on GPU kernels only

inline unsigned __builtin_amdgcn_workitem_id_x() { return shim::machine.thread.x; }
inline unsigned __builtin_amdgcn_workgroup_id_x() { return shim::machine.block.x; }
inline unsigned __builtin_amdgcn_workgroup_id_y() { return shim::machine.block.y; }
inline unsigned __builtin_amdgcn_workgroup_id_z() { return shim::machine.block.z; }
inline unsigned __builtin_amdgcn_grid_size_x() {
  return shim::machine.grid.x * shim::machine.launch.group_size;
}
inline unsigned __builtin_amdgcn_grid_size_y() { return shim::machine.grid.y; }
inline unsigned __builtin_amdgcn_grid_size_z() { return shim::machine.grid.z; }
inline void __builtin_amdgcn_fence(int, const char*) {}
inline void __builtin_amdgcn_s_barrier() { shim::barrier(); }
// A wave of 64: the low half counts up to 32, the high half continues from there.
inline unsigned __builtin_amdgcn_mbcnt_lo(unsigned, unsigned from) {
  const unsigned lane = shim::machine.thread.x % 64;
  return from + (lane < 32 ? lane : 32);
}
inline unsigned __builtin_amdgcn_mbcnt_hi(unsigned, unsigned from) {
  const unsigned lane = shim::machine.thread.x % 64;
  return from + (lane < 32 ? 0 : lane - 32);
}
inline int __builtin_amdgcn_ds_bpermute(int bytes, int word) {
  return shim::shuffle(word, static_cast<unsigned>(bytes) / 4, 64);
}

inline int __builtin_amdgcn_sdot4(int a, int b, int c, bool) {
  return shim::wrapping_add(shim::dot4(static_cast<unsigned>(a), static_cast<unsigned>(b), true),
                            c);
}
inline int __builtin_amdgcn_sudot4(bool, int a, bool, int b, int c, bool) {
  return __builtin_amdgcn_sdot4(a, b, c, false);
}
inline unsigned __builtin_amdgcn_udot4(unsigned a, unsigned b, unsigned c, bool) {
  return static_cast<unsigned>(shim::dot4(a, b, false)) + c;
}

// clang predefines these names on every target and rejects other definitions.
#define __hip_atomic_fetch_add shim_atomic_fetch_add
#define __hip_atomic_fetch_min shim_atomic_fetch_min
#define __hip_atomic_fetch_max shim_atomic_fetch_max
#define __hip_atomic_fetch_and shim_atomic_fetch_and
#define __hip_atomic_fetch_or shim_atomic_fetch_or
#define __hip_atomic_fetch_xor shim_atomic_fetch_xor
#define __hip_atomic_exchange shim_atomic_exchange
#define __hip_atomic_compare_exchange_strong shim_atomic_compare_exchange_strong

template <class T>
T __hip_atomic_fetch_add(T* p, T x, int, int) {
  return shim::atomic_sum<T>(p, x);
}
template <class T>
T __hip_atomic_fetch_min(T* p, T x, int, int) {
  return shim::atomic_smaller<T>(p, x);
}
template <class T>
T __hip_atomic_fetch_max(T* p, T x, int, int) {
  return shim::atomic_larger<T>(p, x);
}
template <class T>
T __hip_atomic_fetch_and(T* p, T x, int, int) {
  return shim::atomic_both<T>(p, x);
}
template <class T>
T __hip_atomic_fetch_or(T* p, T x, int, int) {
  return shim::atomic_either<T>(p, x);
}
template <class T>
T __hip_atomic_fetch_xor(T* p, T x, int, int) {
  return shim::atomic_differing<T>(p, x);
}
template <class T>
T __hip_atomic_exchange(T* p, T x, int, int) {
  return shim::replace<T>(p, x);
}
template <class T>
bool __hip_atomic_compare_exchange_strong(T* p, T* expected, T x, int, int, int) {
  const T old = shim::atomic_compare<T>(p, *expected, x);
  const bool same = old == *expected;
  *expected = old;
  return same;
}

// --- matrix instructions, following AMD's lane-to-element tables

template <class T, int n>
struct shim_vector {
  T x[n];
};
using prism_halfv4 = shim_vector<uint16_t, 4>;
using prism_halfv8 = shim_vector<uint16_t, 8>;
using prism_halfv16 = shim_vector<uint16_t, 16>;
using prism_shortv2 = shim_vector<short, 2>;
using prism_shortv4 = shim_vector<short, 4>;
using prism_shortv8 = shim_vector<short, 8>;
using prism_shortv16 = shim_vector<short, 16>;
using prism_intv2 = shim_vector<int, 2>;
using prism_intv4 = shim_vector<int, 4>;
using prism_intv8 = shim_vector<int, 8>;
using prism_floatv4 = shim_vector<float, 4>;
using prism_floatv8 = shim_vector<float, 8>;

inline double shim_element(uint16_t x) { return shim::f16_value(x); }
inline double shim_element(short x) {
  return std::bit_cast<float>(static_cast<unsigned>(static_cast<uint16_t>(x)) << 16);
}
inline double shim_element(int8_t x) { return x; }

// c += a b for one wave. `wave` lanes hold `each` elements of a and of b: lane l has row (a) or
// column (b) l % 16; k is part * each + i with part = l / 16 % parts. row(e, l / 16) gives the rows
// of the sums; the column is l % 16.
template <class Element, unsigned wave, unsigned parts, class Sum, int sums, class Operand,
          class Row>
shim_vector<Sum, sums> shim_multiply(const Operand& a, const Operand& b, shim_vector<Sum, sums> c,
                                     Row row) {
  constexpr unsigned each = sizeof(Operand) / sizeof(Element);
  static_assert(2 * sizeof(Operand) <= sizeof(shim::machine.slots[0]));
  unsigned char* own = shim::machine.slots[shim::machine.thread.x];
  std::memcpy(own, &a, sizeof a);
  std::memcpy(own + sizeof a, &b, sizeof b);
  shim::barrier();
  const unsigned lane = shim::machine.thread.x % wave, first = shim::machine.thread.x - lane;
  const auto operand = [&](unsigned from, unsigned side, unsigned i) {
    Element x;
    std::memcpy(&x,
                shim::machine.slots[first + from] + side * sizeof(Operand) + i * sizeof(Element),
                sizeof x);
    return shim_element(x);
  };
  for (unsigned e = 0; e < sums; ++e) {
    double sum = c.x[e];
    for (unsigned part = 0; part < parts; ++part)
      for (unsigned i = 0; i < each; ++i)
        sum += operand(part * 16 + row(e, lane / 16), 0, i) * operand(part * 16 + lane % 16, 1, i);
    c.x[e] = static_cast<Sum>(sum);
  }
  shim::barrier();
  return c;
}

inline unsigned shim_mfma_row(unsigned e, unsigned group) { return 4 * group + e; }
inline unsigned shim_gfx11_row(unsigned e, unsigned group) { return 2 * e + group; }
inline unsigned shim_gfx12_row(unsigned e, unsigned group) { return 8 * group + e; }

inline prism_floatv4 __builtin_amdgcn_mfma_f32_16x16x16f16(prism_halfv4 a, prism_halfv4 b,
                                                           prism_floatv4 c, int, int, int) {
  return shim_multiply<uint16_t, 64, 4>(a, b, c, shim_mfma_row);
}
inline prism_floatv4 __builtin_amdgcn_mfma_f32_16x16x8bf16(prism_shortv2 a, prism_shortv2 b,
                                                           prism_floatv4 c, int, int, int) {
  return shim_multiply<short, 64, 4>(a, b, c, shim_mfma_row);
}
inline prism_floatv4 __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(prism_shortv4 a, prism_shortv4 b,
                                                               prism_floatv4 c, int, int, int) {
  return shim_multiply<short, 64, 4>(a, b, c, shim_mfma_row);
}
inline prism_intv4 __builtin_amdgcn_mfma_i32_16x16x16i8(int a, int b, prism_intv4 c, int, int,
                                                        int) {
  return shim_multiply<int8_t, 64, 4>(a, b, c, shim_mfma_row);
}
inline prism_intv4 __builtin_amdgcn_mfma_i32_16x16x32_i8(long a, long b, prism_intv4 c, int, int,
                                                         int) {
  return shim_multiply<int8_t, 64, 4>(a, b, c, shim_mfma_row);
}
inline prism_floatv8 __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(prism_halfv16 a, prism_halfv16 b,
                                                                prism_floatv8 c) {
  return shim_multiply<uint16_t, 32, 1>(a, b, c, shim_gfx11_row);
}
inline prism_floatv8 __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(prism_shortv16 a, prism_shortv16 b,
                                                                 prism_floatv8 c) {
  return shim_multiply<short, 32, 1>(a, b, c, shim_gfx11_row);
}
inline prism_intv8 __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(bool, prism_intv4 a, bool,
                                                              prism_intv4 b, prism_intv8 c, bool) {
  return shim_multiply<int8_t, 32, 1>(a, b, c, shim_gfx11_row);
}
inline prism_floatv8 __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(prism_halfv8 a,
                                                                      prism_halfv8 b,
                                                                      prism_floatv8 c) {
  return shim_multiply<uint16_t, 32, 2>(a, b, c, shim_gfx12_row);
}
inline prism_floatv8 __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(prism_shortv8 a,
                                                                       prism_shortv8 b,
                                                                       prism_floatv8 c) {
  return shim_multiply<short, 32, 2>(a, b, c, shim_gfx12_row);
}
inline prism_intv8 __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(bool, prism_intv2 a, bool,
                                                                    prism_intv2 b, prism_intv8 c,
                                                                    bool) {
  return shim_multiply<int8_t, 32, 2>(a, b, c, shim_gfx12_row);
}
