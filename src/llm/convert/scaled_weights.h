// 8-bit weights of Hugging Face folders, which have scales in tensors beside them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "llm/convert/hf_folder.h"

namespace prism {
class ThreadPool;
}

namespace prism::llm {

// Elements of F8_E4M3, or integers.
bool is_scaled_weight(const SafetensorsEntry& entry);

// The name of a tensor that belongs to another one, or to activations, which are not quantised
// here.
bool is_scale_name(std::string_view name);

struct WeightScales {
  const SafetensorsEntry* entry = nullptr;
  int64_t rows = 0, columns = 0;  // of the part of a matrix that one scale is for
  int64_t matrix_rows = 0;        // behind which parts begin anew; 0: the weight's own
};

// Finds the scales of this tensor, of which a matrix may be several below each other. Throws
// kCorruptFile naming the tensor if there are none or if they do not fit.
WeightScales scales_of(const HfFolder& folder, const std::string& name,
                       const SafetensorsEntry& weight, int64_t stacked = 1);

// All elements of a weight times their scales.
std::vector<float> scaled_weight(const SafetensorsEntry& weight, const WeightScales& scales,
                                 ThreadPool& pool);

}  // namespace prism::llm
