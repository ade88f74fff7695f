// JSON schema to grammar: the texts a schema allows, as GBNF.
#pragma once

#include <string>
#include <string_view>

namespace prism::llm {

// type, properties, required, additionalProperties, items, prefixItems, minItems, maxItems, enum,
// const, anyOf, oneOf, allOf, $ref within the document, minLength, maxLength, pattern, format,
// minimum, maximum, exclusiveMinimum, exclusiveMaximum. Properties come in the order of the schema;
// ones it does not name only where additionalProperties says so, or where it names none. Throws
// kInvalidArgument for what is no schema, and kNotSupported naming keyword and place for one that a
// grammar cannot hold to.
std::string json_schema_to_grammar(std::string_view schema);

// Any JSON value: a grammar of its own.
std::string json_grammar();

}  // namespace prism::llm
