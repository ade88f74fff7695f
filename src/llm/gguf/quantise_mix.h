// The named mixes of quantised types: which type each tensor of a model gets under "Q4_K_M".
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
  ElementType base;    // of most tensors
  uint32_t file_type;  // general.file_type in files
};

// By name in any case, Q4_K for Q4_K_M and so on. Throws kInvalidArgument listing the names.
const QuantiseMix& quantise_mix(std::string_view name);
std::vector<std::string> quantise_mix_names();

// The type of each of the file's tensors, in its order: larger types for the tensors whose errors
// cost most (values, the way down, the output), as is customary; a type of smaller blocks where
// rows are no multiple of 256; none for tensors that stay as they are (norms, biases, routers).
std::vector<std::optional<ElementType>> quantised_types(const GgufFile& file,
                                                        const QuantiseMix& mix);

}  // namespace prism::llm
