// Converts template values from and to JSON text.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "llm/template/template_value.h"

namespace prism::llm::jinja {
namespace {

// Builds a value from the events of the JSON parser.
class JsonReader {
 public:
  JsonReader(Budget* budget, const std::string& what) : budget_(*budget), what_(what) {}

  // --- called by the parser, which stops when one returns false
  bool null() { return put(Value::none()); }
  bool boolean(bool value) { return put(Value::boolean(value)); }
  bool number_integer(int64_t value) { return put(Value::integer(value)); }
  bool number_unsigned(uint64_t value) {
    return put(value > INT64_MAX ? Value::number(static_cast<double>(value))
                                 : Value::integer(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string&) { return put(Value::number(value)); }
  bool string(std::string& text) {
    budget_.charge(kContentsBytes + text.size());
    return put(Value::string(std::move(text)));
  }
  bool binary(const std::vector<uint8_t>&) { return false; }  // not in texts
  bool start_object(size_t) { return start(); }
  bool start_array(size_t) { return start(); }
  bool key(std::string& text) {
    budget_.charge(kContentsBytes + text.size());
    open_.back().key = Value::string(std::move(text));
    return true;
  }
  bool end_object() {
    Dict dict = std::move(open_.back().dict);
    open_.pop_back();
    return put(Value::dict(std::move(dict)));
  }
  bool end_array() {
    List list = std::move(open_.back().list);
    open_.pop_back();
    return put(Value::list(std::move(list)));
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    fail(fmt::format("{}: {}", what_, error.what()));
  }

  Value result;

 private:
  // An array, or an object whose key was read last.
  struct Open {
    List list;
    Dict dict;
    Value key;
  };
  bool start() {
    if (open_.size() > kDeepestValue)
      fail(fmt::format("{}: nested deeper than {}", what_, kDeepestValue));
    budget_.charge(kContentsBytes);
    open_.emplace_back();
    return true;
  }
  bool put(Value value) {
    budget_.charge(sizeof(Value));
    if (open_.empty())
      result = std::move(value);
    else if (open_.back().key.is(Value::Kind::string))
      open_.back().dict.set(budget_, std::exchange(open_.back().key, {}), std::move(value));
    else
      open_.back().list.push_back(std::move(value));
    return true;
  }

  Budget& budget_;
  const std::string& what_;
  std::vector<Open> open_;
};

void append_quoted(std::string_view text, bool ensure_ascii, TextBuilder* out) {
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
  JsonWriter(Budget* budget, const JsonStyle& style)
      : out(budget), budget_(*budget), style_(style) {
    if (style_.item_separator.empty()) style_.item_separator = style_.indent >= 0 ? "," : ", ";
    if (style_.key_separator.empty()) style_.key_separator = ": ";
  }

  void put(const Value& value, int depth) {
    if (depth > kDeepestValue) fail(fmt::format("tojson: nested deeper than {}", kDeepestValue));
    out.charge_step();
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

  TextBuilder out;

 private:
  void put_number(const Value& value) {
    const double number = value.as_number();
    if (std::isnan(number))
      out += "NaN";
    else if (std::isinf(number))
      out += number > 0 ? "Infinity" : "-Infinity";
    else
      append_repr(value, &out);
  }
  void put_dict(const Dict& dict, int depth) {
    std::vector<std::pair<std::string, const Value*>> items;
    for (const auto& [key, item] : dict.items) {
      budget_.charge(sizeof(items[0]));
      if (key.is(Value::Kind::string)) {
        budget_.charge(key.as_string().size());
        items.emplace_back(key.as_string(), &item);
      } else {
        JsonWriter other(&budget_, style_);
        other.put(key, depth + 1);  // 1 becomes "1", true "true"
        items.emplace_back(other.out.take(), &item);
      }
    }
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
        budget_.charge(kStep + std::min(a.first.size(), b.first.size()));
        return a.first < b.first;
      });
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

  Budget& budget_;
  JsonStyle style_;
};

}  // namespace

Value from_json(Budget& budget, std::string_view text, const std::string& what) {
  budget.charge(text.size());
  JsonReader reader(&budget, what);
  nlohmann::json::sax_parse(text, &reader);
  return std::move(reader.result);
}

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  JsonWriter writer(&budget, style);
  writer.put(value, 0);
  return writer.out.take();
}

}  // namespace prism::llm::jinja
