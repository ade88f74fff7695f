// The doubles' entry to a kernel compiled against tests/shim; included after its text.
#pragma once

#include <type_traits>

namespace prism_double {

// Matches the declaration in host_kernels.cpp.
struct Entry {
  const char* name;
  const char* arguments;
  const char* (*run)(const unsigned* grid, unsigned threads, void** values);
};

template <class Argument>
constexpr char kind_of() {
  if (std::is_pointer_v<Argument>) return 'p';
#ifdef PRISM_SHIM_PARAMS_AS_BLOCK
  return std::is_reference_v<Argument> ? 'b' : '.';
#else
  return '4';
#endif
}

template <class... Arguments>
const char* kinds_of(void (*)(Arguments...)) {
  static const char text[] = {kind_of<Arguments>()..., '\0'};
  return text;
}

template <auto kernel, class... Arguments>
const char* run_kernel(void (*)(Arguments...), const unsigned* grid, unsigned threads,
                       void** values) {
  constexpr char kKinds[] = {kind_of<Arguments>()..., '\0'};
  void* buffers[sizeof...(Arguments) + 1];
  unsigned words[sizeof...(Arguments) + 1];
  const unsigned* params = words;
  for (size_t i = 0, buffer = 0, word = 0; i < sizeof...(Arguments); ++i)
    if (kKinds[i] == 'p')
      buffers[buffer++] = *static_cast<void**>(values[i]);
    else if (kKinds[i] == 'b')
      params = static_cast<unsigned*>(values[i]);
    else if (kKinds[i] == '4')
      words[word++] = *static_cast<unsigned*>(values[i]);
  return shim::run<kernel>({{grid[0], grid[1], grid[2]}, threads, 32, buffers, params});
}

template <auto kernel>
const char* run(const unsigned* grid, unsigned threads, void** values) {
  return run_kernel<kernel>(kernel, grid, threads, values);
}

}  // namespace prism_double
