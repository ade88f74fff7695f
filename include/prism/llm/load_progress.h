// The progress of loading a model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#pragma GCC visibility push(default)

namespace prism::llm {

struct LoadProgress {
  uint64_t bytes_done = 0, bytes_total = 0;  // of the file's tensors
};
// Called after each tensor; returning false cancels the load with kInvalidArgument.
using LoadCallback = std::function<bool(const LoadProgress&)>;

}  // namespace prism::llm

#pragma GCC visibility pop
