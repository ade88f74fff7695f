// What printed CUDA text needs to run on the host: included before it by cuda_double_kernels.cpp. A
// group's threads are fibers of one host thread; each barrier and each exchange between lanes lets
// the others catch up.
#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#define PRISM_SHIM  // the text leaves out functions that are inline assembly on a device
#define __device__
#define __global__
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __shared__ thread_local

struct PrismDim {
  unsigned x, y, z;
};
inline thread_local PrismDim threadIdx, blockIdx, blockDim, gridDim;
thread_local unsigned char prism_dynamic_shared[256 << 10] __attribute__((aligned(16)));

namespace prism_fibers {

struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(64 << 10);
  bool done = false;
};
inline thread_local ucontext_t scheduler;
inline thread_local std::vector<Fiber>* fibers;
inline thread_local void (*body)(void**);
inline thread_local void** arguments;
inline thread_local uint64_t exchanged[1024];

inline void start() {
  body(arguments);
  (*fibers)[threadIdx.x].done = true;
  swapcontext(&(*fibers)[threadIdx.x].context, &scheduler);
}

inline void meet() { swapcontext(&(*fibers)[threadIdx.x].context, &scheduler); }

// Every lane's value, then what the caller makes of its subgroup's 32.
template <class T, class Use>
T exchange(T value, Use&& use) {
  std::memcpy(&exchanged[threadIdx.x], &value, sizeof(T));
  meet();
  const auto lane = [](unsigned which) {
    T other;
    std::memcpy(&other, &exchanged[(threadIdx.x & ~31u) | (which & 31u)], sizeof(T));
    return other;
  };
  const T result = use(lane);
  meet();
  return result;
}

inline void run_group(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) {
    Fiber& fiber = (*fibers)[i];
    fiber.done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, start, 0);
  }
  for (bool left = true; left;) {
    left = false;
    for (unsigned i = 0; i < threads; ++i) {
      if ((*fibers)[i].done) continue;
      threadIdx = {i, 0, 0};
      swapcontext(&scheduler, &(*fibers)[i].context);
      left = left || !(*fibers)[i].done;
    }
  }
}

template <class... Arguments>
struct Call {
  static std::string_view kinds() {
    static const char text[] = {(std::is_pointer_v<Arguments> ? 'p'
                                 : sizeof(Arguments) == 4     ? '4'
                                                              : '8')...,
                                '\0'};
    return text;
  }
  template <size_t... I>
  static void call(void (*kernel)(Arguments...), void** values, std::index_sequence<I...>) {
    kernel(*static_cast<Arguments*>(values[I])...);
  }
};

template <auto Kernel, class... Arguments>
void call_kernel(void** values) {
  Call<Arguments...>::call(Kernel, values, std::index_sequence_for<Arguments...>());
}

template <auto Kernel, class... Arguments>
void (*caller(void (*)(Arguments...)))(void**) {
  return &call_kernel<Kernel, Arguments...>;
}
template <class... Arguments>
const char* kinds_of(void (*)(Arguments...)) {
  return Call<Arguments...>::kinds().data();
}

inline void run_grid(void (*kernel)(void**), const unsigned* grid, unsigned threads,
                     void** values) {
  thread_local std::vector<Fiber> own(1024);
  fibers = &own;
  body = kernel;
  arguments = values;
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {threads, 1, 1};
  for (unsigned z = 0; z < grid[2]; ++z)
    for (unsigned y = 0; y < grid[1]; ++y)
      for (unsigned x = 0; x < grid[0]; ++x) {
        blockIdx = {x, y, z};
        run_group(threads);
      }
}

}  // namespace prism_fibers

inline void __syncthreads() { prism_fibers::meet(); }
template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return prism_fibers::exchange(value,
                                [=](const auto& of) { return of(static_cast<unsigned>(lane)); });
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return prism_fibers::exchange(
      value, [=](const auto& of) { return of(threadIdx.x ^ static_cast<unsigned>(mask)); });
}
template <class T>
T __reduce_add_sync(unsigned, T value) {
  return prism_fibers::exchange(value, [](const auto& of) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 32; ++i) sum += static_cast<unsigned>(of(i));
    return static_cast<T>(sum);
  });
}
template <class T>
T __reduce_max_sync(unsigned, T value) {
  return prism_fibers::exchange(value, [](const auto& of) {
    T most = of(0);
    for (unsigned i = 1; i < 32; ++i) most = most < of(i) ? of(i) : most;
    return most;
  });
}
template <class T>
T __reduce_min_sync(unsigned, T value) {
  return prism_fibers::exchange(value, [](const auto& of) {
    T least = of(0);
    for (unsigned i = 1; i < 32; ++i) least = of(i) < least ? of(i) : least;
    return least;
  });
}

inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline int __popc(int x) { return __builtin_popcount(static_cast<unsigned>(x)); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>((int64_t{a} * b) >> 32); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

// Fibers of one thread never run at the same moment, so plain operations are atomic.
template <class T>
T atomicAdd(T* p, T x) {
  return std::exchange(*p, static_cast<T>(*p + x));
}
template <class T>
T atomicMin(T* p, T x) {
  return std::exchange(*p, x < *p ? x : *p);
}
template <class T>
T atomicMax(T* p, T x) {
  return std::exchange(*p, *p < x ? x : *p);
}
template <class T>
T atomicExch(T* p, T x) {
  return std::exchange(*p, x);
}
template <class T>
T atomicCAS(T* p, T expected, T x) {
  return std::exchange(*p, *p == expected ? x : *p);
}

// In their place.
inline void prism_wait_previous() {}
inline void prism_launch_next() {}
// Set by the double when it has opened the kernel's library, to the conversions every device must
// reproduce.
extern "C" {
float (*prism_double_widen)(uint16_t);
uint16_t (*prism_double_narrow)(float);
}
inline float prism_f32_from_f16(unsigned short x) { return prism_double_widen(x); }
inline unsigned short prism_f16_from_f32(float x) { return prism_double_narrow(x); }
inline unsigned prism_pack_f16(float low, float high) {
  return unsigned{prism_double_narrow(low)} | (unsigned{prism_double_narrow(high)} << 16);
}
