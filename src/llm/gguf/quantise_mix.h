// The named quantisation mixes, such as "Q4_K_M", which assign a type to each tensor of a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/element_type.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

struct QuantiseMix {
  const char* name;    // "Q4_K_M"
  ElementType base;    // type of most tensors
  uint32_t file_type;  // general.file_type in files
};

// Case-insensitive; Q4_K means Q4_K_M and so on. Throws kInvalidArgument listing the names.
const QuantiseMix& quantise_mix(std::string_view name);
std::vector<std::string> quantise_mix_names();

// The type of each tensor in file order, by the customary rules: larger types for the most
// sensitive tensors (attn_v, ffn_down, output), smaller blocks for rows that are not a multiple of
// 256, none for tensors that are not quantised (norms, biases, routers).
std::vector<std::optional<ElementType>> quantised_types(const GgufFile& file,
                                                        const QuantiseMix& mix);

}  // namespace prism::llm
