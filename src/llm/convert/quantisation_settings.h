// The settings of quantised Hugging Face folders.
#pragma once

#include "base/json.h"

namespace prism::llm {

// Whether the settings describe 8-bit weights with scales: FP8 in blocks, by rows or as a whole,
// and 8-bit integers by rows or as a whole.
bool has_scaled_weights(const JsonView& quantization_config);

// Whether the weights of experts have blocks of MXFP4.
bool has_mxfp4_weights(const JsonView& quantization_config);

}  // namespace prism::llm
