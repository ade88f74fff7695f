// CUDA for the host compiler: the language features and PTX prelude functions that printed CUDA
// uses.
#pragma once

#include "fibers.h"
#include "numbers.h"
#include "shim_weights.h"

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define threadIdx shim::machine.thread
#define blockIdx shim::machine.block
#define gridDim shim::machine.grid

alignas(16) inline unsigned char prism_dynamic_shared[256 << 10];

inline void __syncthreads() { shim::barrier(); }
inline unsigned __umulhi(unsigned a, unsigned b) { return shim::multiply_high(a, b); }
inline int __mulhi(int a, int b) { return shim::multiply_high(a, b); }
inline int __popc(int x) { return __builtin_popcount(static_cast<unsigned>(x)); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __dp4a(int a, int b, int c) {
  return shim::wrapping_add(shim::dot4(static_cast<unsigned>(a), static_cast<unsigned>(b), true),
                            c);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return static_cast<unsigned>(shim::dot4(a, b, false)) + c;
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
template <class T>
T __ldg(const T* p) {
  return *p;
}

template <class T>
T __shfl_sync(unsigned, T x, int lane) {
  return shim::shuffle(x, static_cast<unsigned>(lane), 32);
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask) {
  return shim::shuffle(x, (shim::machine.thread.x % 32) ^ static_cast<unsigned>(mask), 32);
}
#define PRISM_SHIM_REDUCE(name, expression)      \
  template <class T>                             \
  T __reduce_##name##_sync(unsigned, T a) {      \
    for (int mask = 16; mask > 0; mask /= 2) {   \
      const T b = __shfl_xor_sync(~0u, a, mask); \
      a = static_cast<T>(expression);            \
    }                                            \
    return a;                                    \
  }
PRISM_SHIM_REDUCE(add, static_cast<unsigned>(a) + static_cast<unsigned>(b))
PRISM_SHIM_REDUCE(min, b < a ? b : a)
PRISM_SHIM_REDUCE(max, a < b ? b : a)
PRISM_SHIM_REDUCE(and, a& b)
PRISM_SHIM_REDUCE(or, a | b)
PRISM_SHIM_REDUCE(xor, a ^ b)

template <class T>
T atomicAdd(T* p, T x) {
  return shim::atomic_sum<T>(p, x);
}
template <class T>
T atomicMin(T* p, T x) {
  return shim::atomic_smaller<T>(p, x);
}
template <class T>
T atomicMax(T* p, T x) {
  return shim::atomic_larger<T>(p, x);
}
template <class T>
T atomicAnd(T* p, T x) {
  return shim::atomic_both<T>(p, x);
}
template <class T>
T atomicOr(T* p, T x) {
  return shim::atomic_either<T>(p, x);
}
template <class T>
T atomicXor(T* p, T x) {
  return shim::atomic_differing<T>(p, x);
}
template <class T>
T atomicExch(T* p, T x) {
  return shim::replace<T>(p, x);
}
template <class T>
T atomicCAS(T* p, T expected, T x) {
  return shim::atomic_compare<T>(p, expected, x);
}

// --- prelude functions whose printed form is PTX
inline float prism_f32_from_f16(unsigned short x) { return shim::f16_value(x); }
inline unsigned short prism_f16_from_f32(float x) { return shim::f16_bits(x); }
inline unsigned prism_pack_f16(float low, float high) {
  return shim::f16_bits(low) | static_cast<unsigned>(shim::f16_bits(high)) << 16;
}
inline unsigned prism_pack_bf16(float low, float high) {
  return shim::bf16_bits(low) | static_cast<unsigned>(shim::bf16_bits(high)) << 16;
}
inline unsigned prism_fma_f16x2(unsigned a, unsigned b, unsigned c) {
  unsigned result = 0;
  for (unsigned shift = 0; shift < 32; shift += 16) {
    const auto half = [&](unsigned x) {
      return shim::f16_value(static_cast<unsigned short>(x >> shift));
    };
    result |= static_cast<unsigned>(shim::f16_bits(std::fma(half(a), half(b), half(c)))) << shift;
  }
  return result;
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selectors) {
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned selector = selectors >> (4 * i);
    const unsigned word = selector & 4 ? high : low;
    result |= (word >> ((selector & 3) * 8) & 0xffu) << (8 * i);
  }
  return result;
}
inline void prism_wait_previous() {}
inline void prism_launch_next() {}
inline void prism_device_fence() {}

// A copy is done when it is waited for, so that a missing wait is detected.
inline void prism_async_copy_bytes(void* to, const void* from, unsigned bytes, bool copies) {
  if (reinterpret_cast<uintptr_t>(to) % bytes ||
      (copies && reinterpret_cast<uintptr_t>(from) % bytes))
    shim::machine.failure = "an async copy is not aligned to its size";
  shim::current().open.push_back({to, from, bytes, copies});
}
template <class T>
void prism_async_copy_4(T* to, unsigned index, const void* from, bool copies) {
  prism_async_copy_bytes(to + index, from, 4, copies);
}
template <class T>
void prism_async_copy_8(T* to, unsigned index, const void* from, bool copies) {
  prism_async_copy_bytes(to + index, from, 8, copies);
}
template <class T>
void prism_async_copy_16(T* to, unsigned index, const void* from, bool copies) {
  prism_async_copy_bytes(to + index, from, 16, copies);
}
inline void prism_async_commit() {
  shim::current().batches.push_back(std::exchange(shim::current().open, {}));
}
template <int under_way>
void prism_async_wait() {
  std::vector<std::vector<shim::Copy>>& batches = shim::current().batches;
  while (batches.size() > under_way) {
    for (const shim::Copy& copy : batches.front())
      copy.copies ? std::memcpy(copy.to, copy.from, copy.bytes)
                  : std::memset(copy.to, 0, copy.bytes);
    batches.erase(batches.begin());
  }
}

// --- matrix instructions, following PTX's lane-to-element tables
inline void prism_load_matrices(unsigned (&x)[4], const void* row, bool transposed) {
  if (reinterpret_cast<uintptr_t>(row) % 16)
    shim::machine.failure = "a row of ldmatrix is not aligned to 16 bytes";
  const unsigned lane = shim::machine.thread.x % 32;
  for (unsigned m = 0; m < 4; ++m) {
    unsigned short pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned r = transposed ? 2 * (lane % 4) + i : lane / 4,
                     c = transposed ? lane / 4 : 2 * (lane % 4) + i;
      const void* start = shim::shuffle(row, 8 * m + r, 32);
      std::memcpy(&pair[i], static_cast<const char*>(start) + 2 * c, 2);
    }
    x[m] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
}
template <class T>
void prism_load_matrix(unsigned (&x)[4], const T* array, unsigned index) {
  prism_load_matrices(x, array + index, false);
}
template <class T>
void prism_load_matrix_transposed(unsigned (&x)[4], const T* array, unsigned index) {
  prism_load_matrices(x, array + index, true);
}

inline unsigned prism_transpose_8x8(unsigned x) {
  const unsigned lane = shim::machine.thread.x % 32, column = lane / 4;
  unsigned result = 0;
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned word = shim::shuffle(x, (2 * (lane % 4) + i) * 4 + column / 2, 32);
    result |= ((word >> (column % 2 * 16)) & 0xffffu) << (16 * i);
  }
  return result;
}

// Operands of mma.m16n8k16 (k32 for bytes): word r of lane 4g+t holds `each` elements along k.
template <class Sum, class Decode>
void prism_multiply_words(Sum (&c)[8], const unsigned (&a)[4], const unsigned (&b)[4],
                          unsigned each, Decode decode) {
  struct Words {
    unsigned a[4], b[4];
  } own;
  std::memcpy(own.a, a, sizeof own.a);
  std::memcpy(own.b, b, sizeof own.b);
  std::memcpy(shim::machine.slots[shim::machine.thread.x], &own, sizeof own);
  shim::barrier();
  const unsigned lane = shim::machine.thread.x % 32, first = shim::machine.thread.x - lane;
  const auto words = [&](unsigned from) {
    Words w;
    std::memcpy(&w, shim::machine.slots[first + from], sizeof w);
    return w;
  };
  for (unsigned e = 0; e < 8; ++e) {
    const unsigned row = lane / 4 + (e & 2) * 4, column = 2 * (lane % 4) + (e & 1) + (e & 4) * 2;
    Sum sum = c[e];
    for (unsigned k = 0; k < 8 * each; ++k) {
      const unsigned upper = k / (4 * each), t = k % (4 * each) / each, part = k % each;
      const unsigned wa = words(row % 8 * 4 + t).a[upper * 2 + row / 8];
      const unsigned wb = words(column % 8 * 4 + t).b[column / 8 * 2 + upper];
      sum = static_cast<Sum>(sum + decode(wa, part) * decode(wb, part));
    }
    c[e] = sum;
  }
  shim::barrier();
}
inline void prism_multiply_f16(float (&c)[8], const unsigned (&a)[4], const unsigned (&b)[4]) {
  prism_multiply_words(c, a, b, 2, [](unsigned w, unsigned i) {
    return shim::f16_value(static_cast<uint16_t>(w >> (16 * i)));
  });
}
inline void prism_multiply_bf16(float (&c)[8], const unsigned (&a)[4], const unsigned (&b)[4]) {
  prism_multiply_words(c, a, b, 2, [](unsigned w, unsigned i) {
    return std::bit_cast<float>((w >> (16 * i)) << 16);
  });
}
inline void prism_multiply_i8(int (&c)[8], const unsigned (&a)[4], const unsigned (&b)[4]) {
  prism_multiply_words(c, a, b, 4, [](unsigned w, unsigned i) {
    return static_cast<int>(static_cast<int8_t>(w >> (8 * i)));
  });
}
