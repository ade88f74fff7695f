// Where the layers of a model that is being trained compute in bf16.
#pragma once

#include <cstdint>

#include "prism/device.h"
#include "prism/dtype.h"

namespace prism::llm {

// The type of layers: bf16 where the vendor's library has matrix instructions for it, else f32.
// bf16 takes half of the memory for what gradients need, and products with the narrow factors of an
// adapter a third of the time.
DType layer_type(const Device& device);

// The type of attention over sequences of so many tokens in layers of the given type: bf16 also
// where only Prism's own kernels have matrix instructions for it. The gradient's kernels are many
// times as fast with them; the products with quantised weights before and after are rounded, too.
DType attention_type(const Device& device, DType layers, int64_t head_dim, int64_t tokens);

}  // namespace prism::llm
