// How the doubles call a kernel that was compiled against tests/shim: included behind its text.
#pragma once

#include <type_traits>

namespace prism_double {

// As host_kernels.cpp declares it.
struct Entry {
  const char* name;
  const char* arguments;
  const char* (*run)(const unsigned* grid, unsigned threads, void** values);
};

template <class... Arguments>
const char* kinds_of(void (*)(Arguments...)) {
  static const char text[] = {(std::is_pointer_v<Arguments> ? 'p' : '4')..., '\0'};
  return text;
}

template <auto kernel, class... Arguments>
const char* run_kernel(void (*)(Arguments...), const unsigned* grid, unsigned threads,
                       void** values) {
  constexpr bool kPointer[] = {std::is_pointer_v<Arguments>..., false};
  void* buffers[sizeof...(Arguments) + 1];
  unsigned params[sizeof...(Arguments) + 1];
  for (size_t i = 0, buffer = 0, param = 0; i < sizeof...(Arguments); ++i)
    if (kPointer[i])
      buffers[buffer++] = *static_cast<void**>(values[i]);
    else
      params[param++] = *static_cast<unsigned*>(values[i]);
  return shim::run<kernel>({{grid[0], grid[1], grid[2]}, threads, 32, buffers, params});
}

template <auto kernel>
const char* run(const unsigned* grid, unsigned threads, void** values) {
  return run_kernel<kernel>(kernel, grid, threads, values);
}

}  // namespace prism_double
