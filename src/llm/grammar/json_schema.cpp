// Translates JSON schemas to GBNF.
#include "llm/grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "llm/grammar/json_rules.h"
#include "llm/grammar/regex_grammar.h"
#include "llm/grammar/schema_document.h"
#include "llm/grammar/schema_numbers.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

using json_schema::fail, json_schema::find, json_schema::Json;

constexpr size_t kMaximumRules = 20000;

// Keywords whose constraints a grammar of moderate size cannot express.
constexpr std::array kUnsupported = {"not",
                                     "if",
                                     "patternProperties",
                                     "contains",
                                     "uniqueItems",
                                     "multipleOf",
                                     "minProperties",
                                     "maxProperties",
                                     "propertyNames",
                                     "dependentRequired",
                                     "dependentSchemas",
                                     "unevaluatedProperties",
                                     "$dynamicRef"};

class Converter {
 public:
  explicit Converter(const Json& schema) : document_(schema) {}

  std::string convert() {
    shared("space");
    add("root", "space " + rule_for(document_.root(), "#", "r", 0) + " space");
    std::string text;
    for (const auto& [name, body] : rules_) text += name + " ::= " + body + "\n";
    return text;
  }

 private:
  std::string add(const std::string& name, const std::string& body) {
    if (rules_.size() >= kMaximumRules)
      fail("#", fmt::format("the schema needs more than {} rules", kMaximumRules),
           ErrorCode::kNotSupported);
    rules_[name] = body;
    return name;
  }

  // Returns the name of a shared rule after adding it and its dependencies to the grammar.
  std::string shared(const std::string& name) {
    if (rules_.contains(name)) return name;
    add(name, json_rule(name));
    for (const std::string& other : json_rules_in(name)) shared(other);
    return name;
  }

  uint32_t count(const Json& schema, const char* key, uint32_t otherwise,
                 const std::string& place) const {
    const Json* value = find(schema, key);
    if (!value) return otherwise;
    if (!value->is_number_integer() || value->get<int64_t>() < 0 ||
        value->get<int64_t>() > 1000000000)
      fail(place,
           fmt::format("{} is {}; it must be a number from 0 to 1000000000", key, value->dump()));
    return static_cast<uint32_t>(value->get<int64_t>());
  }

  static std::string repetition(uint32_t minimum, uint32_t maximum) {
    if (maximum == UINT32_MAX) return minimum == 0 ? "*" : fmt::format("{{{},}}", minimum);
    return fmt::format("{{{},{}}}", minimum, maximum);
  }

  static void check_format(const Json& schema, const std::string& place) {
    const Json* const format = find(schema, "format");
    if (!format) return;
    if (!format->is_string()) fail(place, "format must be a string");
    if (!is_json_format(format->get<std::string>()))
      fail(place,
           fmt::format("a grammar cannot express the format {}; supported are {}. Leave it out and "
                       "check the answer for it",
                       format->dump(), fmt::join(json_formats(), ", ")),
           ErrorCode::kNotSupported);
    for (const char* key : {"pattern", "minLength", "maxLength"})
      if (schema.contains(key))
        fail(place, fmt::format("a grammar cannot express a format and {} together", key),
             ErrorCode::kNotSupported);
  }

  // The name of the rule for a schema. name: for a rule created for it.
  std::string rule_for(const Json& schema, const std::string& place, const std::string& name,
                       int depth) {
    json_schema::check_depth(depth, place);
    if (schema.is_boolean()) {
      if (!schema.get<bool>())
        fail(place, "a schema of false allows no value", ErrorCode::kNotSupported);
      return shared("value");
    }
    if (!schema.is_object())
      fail(place,
           fmt::format("a schema must be an object, true or false; found {}", schema.type_name()));
    for (const char* key : kUnsupported)
      if (const Json* value = find(schema, key); value && *value != Json(false))
        fail(place,
             fmt::format("a grammar cannot express \"{}\"; leave it out and check the "
                         "answer for it",
                         key),
             ErrorCode::kNotSupported);
    check_format(schema, place);

    if (const Json* target = find(schema, "$ref")) return reference(*target, place, depth);
    if (const Json* value = find(schema, "const")) return add(name, grammar_literal(value->dump()));
    if (const Json* values = find(schema, "enum")) {
      if (!values->is_array() || values->empty()) fail(place, "enum must be a list of values");
      std::vector<std::string> ways;
      for (const Json& each : *values) ways.push_back(grammar_literal(each.dump()));
      return add(name, fmt::format("{}", fmt::join(ways, " | ")));
    }
    for (const char* key : {"anyOf", "oneOf"})
      if (const Json* several = find(schema, key))
        return any_of(schema, *several, key, place, name, depth);
    if (const Json* several = find(schema, "allOf"))
      return rule_for(document_.merged(schema, *several, place, depth), place, name, depth + 1);

    const Json* type = find(schema, "type");
    if (type && type->is_array()) {
      if (type->empty()) fail(place, "type is an empty list");
      std::vector<std::string> ways;
      for (size_t i = 0; i < type->size(); ++i) {
        Json one = schema;
        one["type"] = (*type)[i];
        ways.push_back(rule_for(one, place, fmt::format("{}-{}", name, i), depth + 1));
      }
      return add(name, fmt::format("{}", fmt::join(ways, " | ")));
    }
    return of_type(schema, type_of(schema, place), place, name, depth);
  }

  // The type, or if there is none the type that other keywords imply.
  static std::string type_of(const Json& schema, const std::string& place) {
    if (const Json* type = find(schema, "type")) {
      if (!type->is_string()) fail(place, "type must be a name or a list of names");
      return type->get<std::string>();
    }
    for (const char* key : {"properties", "additionalProperties", "required"})
      if (schema.contains(key)) return "object";
    for (const char* key : {"items", "prefixItems", "minItems", "maxItems"})
      if (schema.contains(key)) return "array";
    for (const char* key : {"pattern", "format", "minLength", "maxLength"})
      if (schema.contains(key)) return "string";
    for (const char* key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (schema.contains(key)) return "number";
    return "any";
  }

  std::string of_type(const Json& schema, const std::string& type, const std::string& place,
                      const std::string& name, int depth) {
    if (type == "any") return shared("value");
    if (type == "object") return object(schema, place, name, depth);
    if (type == "array") return array(schema, place, name, depth);
    if (type == "string") return string(schema, place, name);
    if (type == "integer" || type == "number") return number(schema, type, place, name);
    if (type == "boolean" || type == "null") return shared(type);
    fail(place,
         fmt::format("\"{}\" is not a type; supported are object, array, string, number, integer, "
                     "boolean and null",
                     type));
  }

  std::string reference(const Json& target, const std::string& place, int depth) {
    if (!target.is_string()) fail(place, "$ref must be a string");
    const std::string to = target.get<std::string>();
    const auto known = references_.find(to);
    if (known != references_.end()) return known->second;
    if (!to.starts_with("#"))
      fail(place,
           fmt::format("$ref \"{}\" points outside the document; only #/... is supported", to),
           ErrorCode::kNotSupported);
    const Json* found = document_.target_of(to);
    if (!found) fail(place, fmt::format("$ref \"{}\" has no target in the document", to));
    // The name is registered before the rule is made, so a schema may contain itself.
    const std::string name = fmt::format("ref{}", references_.size());
    references_[to] = name;
    add(name, "");
    const std::string body = rule_for(*found, to, name + "-r", depth + 1);
    return add(name, body);
  }

  std::string any_of(const Json& schema, const Json& several, const char* key,
                     const std::string& place, const std::string& name, int depth) {
    if (!several.is_array() || several.empty())
      fail(place, fmt::format("{} must be a list of schemas", key));
    Json rest = schema;
    rest.erase(key);
    std::vector<std::string> ways;
    for (size_t i = 0; i < several.size(); ++i) {
      // The sibling keywords apply to each alternative.
      const std::string here = fmt::format("{}/{}/{}", place, key, i);
      const bool alone = type_of(rest, place) == "any" && !rest.contains("allOf");
      const Json one =
          alone ? several[i] : document_.merged(rest, Json::array({several[i]}), here, depth);
      ways.push_back(rule_for(one, here, fmt::format("{}-{}", name, i), depth + 1));
    }
    return add(name, fmt::format("{}", fmt::join(ways, " | ")));
  }

  std::string string(const Json& schema, const std::string& place, const std::string& name) {
    const Json* pattern = find(schema, "pattern");
    if (pattern) {
      if (!pattern->is_string()) fail(place, "pattern must be a string");
      if (schema.contains("minLength") || schema.contains("maxLength"))
        fail(place,
             "a grammar cannot express a pattern and a length together; put the length into the "
             "pattern",
             ErrorCode::kNotSupported);
      try {
        return add(name,
                   fmt::format(R"("\"" {} "\"")",
                               regex_to_grammar(pattern->get<std::string>(), shared("char"))));
      } catch (const Error& error) {
        fail(place, error.what(), error.code());
      }
    }
    if (const Json* format = find(schema, "format"))
      return add(name, fmt::format(R"("\"" {} "\"")", shared(format->get<std::string>())));
    const uint32_t least = count(schema, "minLength", 0, place);
    const uint32_t most = count(schema, "maxLength", UINT32_MAX, place);
    if (least > most) fail(place, "minLength exceeds maxLength");
    if (least == 0 && most == UINT32_MAX) return shared("string");
    return add(name, fmt::format(R"("\"" {}{} "\"")", shared("char"), repetition(least, most)));
  }

  std::string number(const Json& schema, const std::string& type, const std::string& place,
                     const std::string& name) {
    const auto rule = json_schema::number_rule(schema, type, place);
    return rule ? add(name, *rule) : shared(type);
  }

  std::string array(const Json& schema, const std::string& place, const std::string& name,
                    int depth) {
    const Json* items = find(schema, "items");
    const Json* first = find(schema, "prefixItems");
    if (items && items->is_array()) first = items, items = nullptr;  // older spelling
    if (first && !first->is_array()) fail(place, "prefixItems must be a list of schemas");
    const uint32_t least = count(schema, "minItems", 0, place);
    uint32_t most = count(schema, "maxItems", UINT32_MAX, place);
    if (least > most) fail(place, "minItems exceeds maxItems");
    shared("space");
    const std::string comma = R"(space "," space )";
    if (first) {
      // A tuple: its items, then additional ones if allowed.
      std::string body;
      for (size_t i = 0; i < first->size(); ++i)
        body += (i ? comma : "") +
                rule_for((*first)[i], fmt::format("{}/prefixItems/{}", place, i),
                         fmt::format("{}-{}", name, i), depth + 1) +
                " ";
      const auto fixed = static_cast<uint32_t>(first->size());
      if (items && *items != Json(false) && most > fixed && fixed > 0) {
        const std::string item = rule_for(*items, place + "/items", name + "-item", depth + 1);
        body += fmt::format("({}{}){} ", comma, item,
                            repetition(least > fixed ? least - fixed : 0,
                                       most == UINT32_MAX ? most : most - fixed));
      }
      return add(name, fmt::format(R"("[" space {}space "]")", body));
    }
    if (most == 0) return add(name, R"("[" space "]")");
    const std::string item =
        items ? rule_for(*items, place + "/items", name + "-item", depth + 1) : shared("value");
    const std::string list =
        fmt::format("{} ({}{}){}", item, comma, item,
                    repetition(least > 0 ? least - 1 : 0, most == UINT32_MAX ? most : most - 1));
    return add(name, least == 0 ? fmt::format(R"("[" space ({})? space "]")", list)
                                : fmt::format(R"("[" space {} space "]")", list));
  }

  // Matches names other than those listed: texts that leave the trie of the names at some point.
  std::string other_name(const std::string& name, const std::vector<std::string>& names) {
    shared("char");
    std::map<std::string, std::set<std::string>> children;  // the next characters after a prefix
    std::set<std::string> whole;
    for (const std::string& full : names) {
      const std::string text = Json(full).dump();
      const std::string inside = text.substr(1, text.size() - 2);
      whole.insert(inside);
      children[""];
      for (size_t at = 0; at < inside.size();) {
        size_t next = at + 1;  // one character, or one escape sequence
        if (inside[at] == '\\')
          next = std::min(inside.size(), at + (inside[at + 1] == 'u' ? 6 : 2));
        while (next < inside.size() && (static_cast<uint8_t>(inside[next]) & 0xC0) == 0x80) ++next;
        children[inside.substr(0, at)].insert(inside.substr(at, next - at));
        children[inside.substr(0, next)];
        at = next;
      }
    }
    std::map<std::string, std::string> rule_names;
    for (const auto& [start, next] : children)
      rule_names[start] = fmt::format("{}-{}", name, rule_names.size());
    for (const auto& [start, next] : children) {
      std::vector<std::string> ways;
      std::string taken;
      for (const std::string& each : next) {
        ways.push_back(grammar_literal(each) + " " + rule_names.at(start + each));
        if (each[0] == '\\') continue;  // only listed names contain a backslash
        for (const char c : each)
          taken += c == ']' || c == '^' || c == '-' || c == '[' ? std::string("\\") + c
                                                                : std::string(1, c);
      }
      ways.push_back(fmt::format(R"([^"\\\x7F\x00-\x1F{}] char*)", taken));
      if (!whole.contains(start)) ways.emplace_back("\"\"");
      add(rule_names[start], fmt::format("{}", fmt::join(ways, " | ")));
    }
    return add(name, fmt::format(R"("\"" {} "\"")", rule_names.at("")));
  }

  std::string object(const Json& schema, const std::string& place, const std::string& name,
                     int depth) {
    const Json* properties = find(schema, "properties");
    const Json* extra = find(schema, "additionalProperties");
    if (properties && !properties->is_object()) fail(place, "properties must be an object");
    shared("space");
    std::set<std::string> required;
    if (const Json* list = find(schema, "required")) {
      if (!list->is_array()) fail(place, "required must be a list of names");
      for (const Json& each : *list) {
        if (!each.is_string()) fail(place, "required must be a list of names");
        required.insert(each.get<std::string>());
      }
    }
    struct Property {
      std::string name, rule;
      bool is_required;
    };
    std::vector<Property> list;
    if (properties)
      for (const auto& [key, of] : properties->items()) {
        const bool must = required.erase(key) > 0;
        if (of == Json(false) && !must) continue;
        const std::string value = rule_for(of, fmt::format("{}/properties/{}", place, key),
                                           fmt::format("{}-{}", name, list.size()), depth + 1);
        list.push_back(
            {key,
             add(fmt::format("{}-{}-pair", name, list.size()),
                 fmt::format(R"({} space ":" space {})", grammar_literal(Json(key).dump()), value)),
             must});
      }
    // Required properties without a schema.
    for (const std::string& key : required)
      list.push_back({key,
                      add(fmt::format("{}-{}-pair", name, list.size()),
                          fmt::format(R"({} space ":" space {})", grammar_literal(Json(key).dump()),
                                      shared("value"))),
                      true});

    const bool open = extra ? *extra != Json(false) : !properties && list.empty();
    std::string other;
    if (open) {
      std::vector<std::string> names;
      for (const Property& each : list) names.push_back(each.name);
      const std::string key = names.empty() ? shared("string") : other_name(name + "-key", names);
      const std::string value =
          extra && extra->is_object()
              ? rule_for(*extra, place + "/additionalProperties", name + "-extra", depth + 1)
              : shared("value");
      other = add(name + "-other", fmt::format(R"({} space ":" space {})", key, value));
    }
    // Builds the rules from last to first: the continuation after a property (after) and without
    // one so far (none). Linear in the number of properties, whichever are optional.
    std::string after = other.empty() ? "\"\"" : fmt::format(R"((space "," space {})*)", other);
    std::string none = other.empty() ? "\"\"" : fmt::format("({} {})?", other, after);
    for (size_t i = list.size(); i-- > 0;) {
      const Property& each = list[i];
      const std::string here = fmt::format("{}-{}", name, i);
      const std::string begin = fmt::format("{} {}", each.rule, after);
      none = add(here + "-first", each.is_required ? begin : fmt::format("{} | {}", begin, none));
      after = add(here + "-after",
                  each.is_required ? fmt::format(R"(space "," space {} {})", each.rule, after)
                                   : fmt::format(R"((space "," space {})? {})", each.rule, after));
    }
    return add(name, fmt::format(R"("{{" space {} space "}}")", none));
  }

  json_schema::Document document_;
  std::map<std::string, std::string> rules_;
  std::map<std::string, std::string> references_;
};

}  // namespace

std::string json_schema_to_grammar(std::string_view schema) {
  Json document;
  try {
    document = Json::parse(schema);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("JSON schema: the text is not valid JSON: {}", error.what()));
  }
  return Converter(document).convert();
}

std::string json_grammar() { return json_schema_to_grammar("true"); }

}  // namespace prism::llm
