// Grammar rules of a JSON schema's numbers.
#pragma once

#include <optional>
#include <string>

#include "llm/grammar/schema_document.h"

namespace prism::llm::json_schema {

// The rule for numbers within the schema's limits, or nothing if it has none. type: "integer" or
// "number". Throws if no number is within them.
std::optional<std::string> number_rule(const Json& schema, const std::string& type,
                                       const std::string& place);

}  // namespace prism::llm::json_schema
