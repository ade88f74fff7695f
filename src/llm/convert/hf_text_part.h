// The text part of models that also see images: its settings and tensors under the names that
// models of text alone have.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace prism::llm {

// If config.json is of such a model, keeps the settings of its text part and returns true.
bool keep_text_part(Json& config);

// The name of a tensor of such a model; nothing for those of its other parts.
std::optional<std::string> text_tensor_name(std::string_view name);

}  // namespace prism::llm
