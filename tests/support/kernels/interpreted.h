// Runs kernels on the interpreter, as written and after lowering, for comparison.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism::test {

using Contents = std::vector<std::vector<std::byte>>;  // one per buffer, in binding order

struct Launch {
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<uint32_t> params;
  Contents buffers;  // before the launch
};

// The buffers after the launch, in checked mode: a violation throws.
Contents interpreted(const ir::Kernel& kernel, const Launch& launch, uint32_t subgroup_size);

// The same after lowering, with the grid folded and buffers split if the capabilities require it.
Contents interpreted_lowered(const ir::Kernel& kernel, const Launch& launch,
                             const ir::Capabilities& capabilities);

// "buffer y, element 3: 0x00000001, expected 0x00000002"; empty if all bytes are equal.
std::string first_difference(const ir::Kernel& kernel, const Contents& right,
                             const Contents& found);

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace prism::test
