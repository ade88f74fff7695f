// Translates JSON schemas to GBNF grammars.
#pragma once

#include <string>
#include <string_view>

namespace prism::llm {

// Supports type, properties, required, additionalProperties, items, prefixItems, minItems,
// maxItems, enum, const, anyOf, oneOf, allOf, $ref within the document, minLength, maxLength,
// pattern, format, minimum, maximum, exclusiveMinimum, exclusiveMaximum. Properties come in the
// order of the schema; others are allowed only by additionalProperties, or if the schema names
// none. Throws kInvalidArgument for an invalid schema, and kNotSupported naming keyword and
// location for one that a grammar cannot express.
std::string json_schema_to_grammar(std::string_view schema);

// A grammar for any JSON value.
std::string json_grammar();

}  // namespace prism::llm
