// The placement of a model: the device of each part, and the type and length of the KV cache.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/device.h"
#include "prism/element_type.h"

#pragma GCC visibility push(default)

namespace prism::llm {

struct Placement {
  std::vector<Device> layers;   // one per layer, first to last
  Device embedding, output;     // token embedding; final norm and output matrix
  std::vector<Device> experts;  // experts of each layer of a mixture; empty: same as layers
  ElementType kv_type = DType::f16;
  int64_t context = 0;  // tokens that the KV cache holds
};

}  // namespace prism::llm

#pragma GCC visibility pop
