// Converts template values from and to JSON text.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "llm/template/template_value.h"
#include "llm/tokenizer/utf8.h"

namespace prism::llm::jinja {
namespace {

using Json = nlohmann::ordered_json;

Value convert(const Json& json, int depth, const std::string& what) {
  if (depth > kDeepestValue) fail(fmt::format("{}: nested deeper than {}", what, kDeepestValue));
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > INT64_MAX) return Value::number(json.get<double>());
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value::number(json.get<double>());
    case Json::value_t::string:
      return Value::string(json.get<std::string>());
    case Json::value_t::array: {
      List list;
      for (const Json& item : json) list.push_back(convert(item, depth + 1, what));
      return Value::list(std::move(list));
    }
    case Json::value_t::object: {
      Dict dict;
      for (const auto& [key, item] : json.items())
        dict.items.emplace_back(Value::string(key), convert(item, depth + 1, what));
      return Value::dict(std::move(dict));
    }
    default:
      return Value::none();
  }
}

void append_quoted(std::string_view text, bool ensure_ascii, std::string* out) {
  *out += '"';
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    const char c = text[at];
    if (c == '"' || c == '\\')
      (*out += '\\') += c;
    else if (c == '\n')
      *out += "\\n";
    else if (c == '\r')
      *out += "\\r";
    else if (c == '\t')
      *out += "\\t";
    else if (c == '\b')
      *out += "\\b";
    else if (c == '\f')
      *out += "\\f";
    else if (next.code < 0x20 || (ensure_ascii && next.code >= 0x7f && next.code < 0x10000))
      *out += fmt::format("\\u{:04x}", next.code);
    else if (ensure_ascii && next.code >= 0x10000)
      *out += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (next.code >> 10),
                          0xdc00 + (next.code & 0x3ff));
    else
      *out += text.substr(at, next.bytes);
    at += next.bytes;
  }
  *out += '"';
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {
    if (style_.item_separator.empty()) style_.item_separator = style_.indent >= 0 ? "," : ", ";
    if (style_.key_separator.empty()) style_.key_separator = ": ";
  }

  void put(const Value& value, int depth) {
    if (depth > kDeepestValue) fail(fmt::format("tojson: nested deeper than {}", kDeepestValue));
    using Kind = Value::Kind;
    switch (value.kind()) {
      case Kind::none:
        out += "null";
        return;
      case Kind::boolean:
        out += value.as_integer() ? "true" : "false";
        return;
      case Kind::integer:
        out += std::to_string(value.as_integer());
        return;
      case Kind::number:
        put_number(value);
        return;
      case Kind::string:
        append_quoted(value.as_string(), style_.ensure_ascii, &out);
        return;
      case Kind::list:
        put_items('[', ']', value.as_list(), depth,
                  [&](const Value& item) { put(item, depth + 1); });
        return;
      case Kind::dict:
        put_dict(value.as_dict(), depth);
        return;
      default:
        fail(fmt::format("tojson: JSON cannot represent {}", value.kind_name()));
    }
  }

  std::string out;

 private:
  void put_number(const Value& value) {
    const double number = value.as_number();
    if (std::isnan(number))
      out += "NaN";
    else if (std::isinf(number))
      out += number > 0 ? "Infinity" : "-Infinity";
    else
      out += to_repr(value);
  }
  void put_dict(const Dict& dict, int depth) {
    std::vector<std::pair<std::string, const Value*>> items;
    for (const auto& [key, item] : dict.items) {
      if (key.is(Value::Kind::string)) {
        items.emplace_back(key.as_string(), &item);
      } else {
        JsonWriter other(style_);
        other.put(key, depth + 1);  // 1 becomes "1", true "true"
        items.emplace_back(other.out, &item);
      }
    }
    if (style_.sort_keys)
      std::ranges::stable_sort(items, {}, [](const auto& item) { return item.first; });
    put_items('{', '}', items, depth, [&](const auto& item) {
      append_quoted(item.first, style_.ensure_ascii, &out);
      out += style_.key_separator;
      put(*item.second, depth + 1);
    });
  }
  template <class Items, class Put>
  void put_items(char open, char close, const Items& items, int depth, const Put& put_one) {
    out += open;
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) out += style_.item_separator;
      new_line(depth + 1);
      put_one(item);
    }
    if (!first) new_line(depth);
    out += close;
  }
  void new_line(int depth) {
    if (style_.indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(depth * style_.indent), ' ');
  }

  JsonStyle style_;
};

}  // namespace

Value from_json(std::string_view text, const std::string& what) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    fail(fmt::format("{}: {}", what, error.what()));
  }
  return convert(json, 0, what);
}

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.put(value, 0);
  return std::move(writer.out);
}

}  // namespace prism::llm::jinja
