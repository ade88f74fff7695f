// Types that a user asks for by the names of tensors: "ffn_down=q6_k".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prism/element_type.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

struct TensorTypeRule {
  std::string pattern;  // a regular expression, found anywhere in a name
  ElementType type;     // one that can be written
};

// Reads PATTERN=TYPE. Throws kInvalidArgument for a text without "=", an expression that is not
// valid, and a type that is unknown or cannot be written.
TensorTypeRule tensor_type_rule(std::string_view text);

// Replaces the types of tensors with two axes or more by those of the first rule that matches.
// types: of all tensors in file order. Throws kInvalidArgument for a rule whose expression matches
// no such tensor, and for rows that are no whole blocks.
void apply_tensor_type_rules(std::span<const TensorTypeRule> rules, const GgufFile& file,
                             std::vector<std::optional<ElementType>>& types);

}  // namespace prism::llm
