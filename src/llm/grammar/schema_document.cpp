// References and combined schemas of a JSON schema.
#include "llm/grammar/schema_document.h"

#include <fmt/format.h>

namespace prism::llm::json_schema {
namespace {

constexpr int kMaximumDepth = 128;
// Parts of allOf that refer to each other can double at each step.
constexpr int kMaximumMerges = 10000;

}  // namespace

void fail(const std::string& place, const std::string& what, ErrorCode code) {
  throw Error(code, fmt::format("JSON schema, {}: {}", place, what));
}

const Json* find(const Json& schema, const char* key) {
  const auto found = schema.find(key);
  return found == schema.end() ? nullptr : &*found;
}

void check_depth(int depth, const std::string& place) {
  if (depth > kMaximumDepth)
    fail(place, fmt::format("schemas are nested more than {} deep", kMaximumDepth),
         ErrorCode::kNotSupported);
}

const Json* Document::target_of(const std::string& reference) const {
  if (!reference.starts_with("#")) return nullptr;
  try {
    const Json::json_pointer pointer(reference.substr(1));
    return root_.contains(pointer) ? &root_.at(pointer) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;  // not a valid pointer
  }
}

Json Document::merged(const Json& schema, const Json& several, const std::string& place,
                      int depth) {
  if (!several.is_array()) fail(place, "allOf must be a list of schemas");
  check_depth(depth, place);
  Json all = schema;
  all.erase("allOf");
  for (Json part : several) {
    if (++merges_ > kMaximumMerges)
      fail(place, "the combined schemas refer to each other too often", ErrorCode::kNotSupported);
    for (int followed = 0; part.is_object() && part.contains("$ref"); ++followed) {
      const Json to = part["$ref"];
      const Json* found = to.is_string() ? target_of(to.get<std::string>()) : nullptr;
      if (!found || followed == kMaximumDepth)
        fail(place, fmt::format("$ref {} has no target in the document", to.dump()));
      part = Json(*found);
    }
    if (part == Json(true)) continue;
    if (!part.is_object()) fail(place, "the list contains an entry that is not a schema");
    if (part.contains("allOf")) part = merged(part, part["allOf"], place, depth + 1);
    for (const auto& [key, value] : part.items()) {
      const bool both = all.contains(key);
      if (both && key == "properties" && value.is_object() && all[key].is_object()) {
        for (const auto& [property, of] : value.items())
          all[key][property] = all[key].contains(property)
                                   ? Json{{"allOf", Json::array({all[key][property], of})}}
                                   : of;
      } else if (both && key == "required" && value.is_array() && all[key].is_array()) {
        for (const Json& each : value) all[key].push_back(each);
      } else if (both && all[key] != value && key != "title" && key != "description" &&
                 key != "$defs" && key != "definitions") {
        fail(place, fmt::format("the combined schemas give \"{}\" two different values", key),
             ErrorCode::kNotSupported);
      } else if (!both) {
        all[key] = value;
      }
    }
  }
  return all;
}

}  // namespace prism::llm::json_schema
