// Where the parts of a model go: a device for each layer, the cache's type and length.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/device.h"
#include "prism/element_type.h"

#pragma GCC visibility push(default)

namespace prism::llm {

struct Placement {
  std::vector<Device> layers;   // one a layer, first to last
  Device embedding, output;     // the token table; the last norm and the product to logits
  std::vector<Device> experts;  // of each layer of a mixture; empty: as layers
  ElementType kv_type = DType::f16;
  int64_t context = 0;  // tokens that the cache holds
};

}  // namespace prism::llm

#pragma GCC visibility pop
