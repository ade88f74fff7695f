// OpenCL C for the host compiler, compiled as C++.
#pragma once

#include "fibers.h"
#include "math_names.h"
#include "vectors.h"

#define __kernel
#define __global
#define __local  // local arrays are already declared static
#define __private
#define restrict __restrict__
#define reqd_work_group_size(x, y, z) unused  // clang accepts it on OpenCL kernels only
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define cl_khr_subgroup_shuffle 1

inline size_t get_group_id(unsigned axis) {
  return axis == 0   ? shim::machine.block.x
         : axis == 1 ? shim::machine.block.y
                     : shim::machine.block.z;
}
inline size_t get_num_groups(unsigned axis) { return shim::machine.launch.groups[axis]; }
inline size_t get_local_id(unsigned) { return shim::machine.thread.x; }
inline void barrier(int) { shim::barrier(); }

#define PRISM_SHIM_AS(type)        \
  template <class T>               \
  type as_##type(T x) {            \
    return std::bit_cast<type>(x); \
  }
#define PRISM_SHIM_MAKE(type)                                                                  \
  inline type##2 prism_make_##type##2(type x, type y) { return {x, y}; }                       \
  inline type##4 prism_make_##type##4(type x, type y, type z, type w) { return {x, y, z, w}; } \
  PRISM_SHIM_AS(type) PRISM_SHIM_AS(type##2) PRISM_SHIM_AS(type##4)
PRISM_SHIM_MAKE(char)
PRISM_SHIM_MAKE(uchar)
PRISM_SHIM_MAKE(short)
PRISM_SHIM_MAKE(ushort)
PRISM_SHIM_MAKE(int)
PRISM_SHIM_MAKE(uint)
PRISM_SHIM_MAKE(long)
PRISM_SHIM_MAKE(ulong)
PRISM_SHIM_MAKE(half)
PRISM_SHIM_MAKE(float)
PRISM_SHIM_MAKE(double)

template <class T>
T mul_hi(T a, T b) {
  return shim::multiply_high(a, b);
}
inline int dot_4x8packed_ss_int(uint a, uint b) { return shim::dot4(a, b, true); }
inline uint dot_4x8packed_uu_uint(uint a, uint b) {
  return static_cast<uint>(shim::dot4(a, b, false));
}
inline float vload_half(size_t at, const half* p) { return p[at]; }
inline void vstore_half_rte(float x, size_t at, half* p) { p[at] = half(x); }

template <class T>
T atomic_add(volatile T* p, T x) {
  return shim::atomic_sum(p, x);
}
template <class T>
T atomic_min(volatile T* p, T x) {
  return shim::atomic_smaller(p, x);
}
template <class T>
T atomic_max(volatile T* p, T x) {
  return shim::atomic_larger(p, x);
}
template <class T>
T atomic_and(volatile T* p, T x) {
  return shim::atomic_both(p, x);
}
template <class T>
T atomic_or(volatile T* p, T x) {
  return shim::atomic_either(p, x);
}
template <class T>
T atomic_xor(volatile T* p, T x) {
  return shim::atomic_differing(p, x);
}
template <class T>
T atomic_xchg(volatile T* p, T x) {
  return shim::replace(p, x);
}
template <class T>
T atomic_cmpxchg(volatile T* p, T expected, T x) {
  return shim::atomic_compare(p, expected, x);
}
using atomic_float = float;
enum { memory_order_relaxed, memory_scope_device, memory_scope_work_group };
inline float atomic_fetch_add_explicit(volatile atomic_float* p, float x, int, int) {
  return shim::atomic_sum(p, x);
}

inline uint get_sub_group_size() { return shim::machine.launch.subgroup_size; }
inline uint get_sub_group_id() { return shim::machine.thread.x / get_sub_group_size(); }
inline uint get_sub_group_local_id() { return shim::machine.thread.x % get_sub_group_size(); }
template <class T>
T sub_group_shuffle(T x, uint lane) {
  return shim::shuffle(x, lane, get_sub_group_size());
}
template <class T>
T sub_group_shuffle_xor(T x, uint mask) {
  return sub_group_shuffle(x, get_sub_group_local_id() ^ mask);
}
// PTX's shuffles of words.
inline void prism_device_fence() {}
inline uint prism_ptx_shuffle(uint x, uint lane) { return shim::shuffle(x, lane & 31u, 32u); }
inline uint prism_ptx_shuffle_xor(uint x, uint mask) {
  return prism_ptx_shuffle(x, (shim::machine.thread.x & 31u) ^ mask);
}
#define PRISM_SHIM_SUBGROUP(name, expression)                       \
  template <class T>                                                \
  T prism_shim_##name(T a, T b) {                                   \
    return static_cast<T>(expression);                              \
  }                                                                 \
  template <class T>                                                \
  T sub_group_reduce_##name(T x) {                                  \
    for (uint mask = get_sub_group_size() / 2; mask > 0; mask /= 2) \
      x = prism_shim_##name(x, sub_group_shuffle_xor(x, mask));     \
    return x;                                                       \
  }                                                                 \
  template <class T>                                                \
  T sub_group_scan_inclusive_##name(T x) {                          \
    const uint lane = get_sub_group_local_id();                     \
    for (uint step = 1; step < get_sub_group_size(); step *= 2) {   \
      const T below = sub_group_shuffle(x, lane - step);            \
      if (lane >= step) x = prism_shim_##name(below, x);            \
    }                                                               \
    return x;                                                       \
  }
inline int prism_shim_add(int a, int b) { return shim::wrapping_add(a, b); }
inline long prism_shim_add(long a, long b) { return shim::wrapping_add(a, b); }
PRISM_SHIM_SUBGROUP(add, a + b)
PRISM_SHIM_SUBGROUP(min, b < a ? b : a)
PRISM_SHIM_SUBGROUP(max, a < b ? b : a)
