// HIP for the host compiler: clang's builtins for AMD GPUs as functions.
#pragma once

#include "fibers.h"
#include "numbers.h"

#define _Float16 shim::half
#define __HIP_MEMORY_SCOPE_AGENT 0
#define amdgpu_flat_work_group_size(least, most) unused  // clang wants it on GPU kernels only

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
// A wave of 64: the low half counts up to 32, the high half goes on from there.
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

// clang knows these names on every target and lets nobody else define them.
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
