// A JSON schema as a document: its references, and schemas combined by allOf.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "prism/error.h"

namespace prism::llm::json_schema {

using Json = nlohmann::ordered_json;

// place: where in the document, as a JSON pointer.
[[noreturn]] void fail(const std::string& place, const std::string& what,
                       ErrorCode code = ErrorCode::kInvalidArgument);

// The value of a keyword, or null.
const Json* find(const Json& schema, const char* key);

// Throws if schemas are nested too deep.
void check_depth(int depth, const std::string& place);

class Document {
 public:
  explicit Document(const Json& root) : root_(root) {}  // keeps a reference

  const Json& root() const { return root_; }

  // The target of a reference like "#/a/b", or null.
  const Json* target_of(const std::string& reference) const;

  // Merges schemas into one: combines properties and requirements; other keywords must not
  // conflict.
  Json merged(const Json& schema, const Json& several, const std::string& place, int depth);

 private:
  const Json& root_;
  int merges_ = 0;
};

}  // namespace prism::llm::json_schema
