// Implements template values: comparison, printing and conversion as in Python.
#include "llm/template/template_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "llm/tokenizer/unicode.h"
#include "llm/tokenizer/utf8.h"
#include "prism/error.h"

namespace prism::llm::jinja {

void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "chat template: " + message);
}

namespace {

void check_depth(int depth) {
  if (depth > kDeepestValue) fail(fmt::format("values are nested deeper than {}", kDeepestValue));
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(std::string_view text) {
  const bool has_single = text.find('\'') != text.npos, has_double = text.find('"') != text.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    const char c = text[at];
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\' || c == quote)
      (out += '\\') += c;
    else if (next.code < 0x20 || next.code == 0x7f)
      out += fmt::format("\\x{:02x}", next.code);
    else
      out += text.substr(at, next.bytes);
    at += next.bytes;
  }
  return out += quote;
}

void append_repr(const Value& value, int depth, std::string* out) {
  check_depth(depth);
  using Kind = Value::Kind;
  switch (value.kind()) {
    case Kind::undefined:
      *out += "Undefined";
      return;
    case Kind::none:
      *out += "None";
      return;
    case Kind::boolean:
      *out += value.as_integer() ? "True" : "False";
      return;
    case Kind::integer:
      *out += std::to_string(value.as_integer());
      return;
    case Kind::number:
      *out += number_text(value.as_number());
      return;
    case Kind::string:
      *out += quoted(value.as_string());
      return;
    case Kind::function:
      *out += "<function " + value.as_string() + ">";
      return;
    case Kind::list: {
      *out += '[';
      for (const Value& item : value.as_list()) {
        if (&item != value.as_list().data()) *out += ", ";
        append_repr(item, depth + 1, out);
      }
      *out += ']';
      return;
    }
    case Kind::dict:
    case Kind::space: {
      *out += '{';
      bool first = true;
      for (const auto& [key, item] : value.as_dict().items) {
        if (!std::exchange(first, false)) *out += ", ";
        append_repr(key, depth + 1, out);
        *out += ": ";
        append_repr(item, depth + 1, out);
      }
      *out += '}';
      return;
    }
  }
}

}  // namespace

const Value* Dict::find(std::string_view key) const {
  for (const auto& item : items)
    if (item.first.is(Value::Kind::string) && item.first.as_string() == key) return &item.second;
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is(Value::Kind::string)) return find(std::string_view(key.as_string()));
  for (const auto& item : items)
    if (equal(item.first, key)) return &item.second;
  return nullptr;
}

void Dict::set(Value key, Value value) {
  if (const Value* found = find(key))
    *const_cast<Value*>(found) = std::move(value);
  else
    items.emplace_back(std::move(key), std::move(value));
}

Value Value::undefined(std::string name) {
  Value value;
  value.string_ = std::make_shared<const std::string>(std::move(name));
  return value;
}
Value Value::boolean(bool value) {
  Value out(Kind::boolean);
  out.integer_ = value;
  return out;
}
Value Value::integer(int64_t value) {
  Value out(Kind::integer);
  out.integer_ = value;
  return out;
}
Value Value::number(double value) {
  Value out(Kind::number);
  out.number_ = value;
  return out;
}
Value Value::string(std::string value) {
  Value out(Kind::string);
  out.string_ = std::make_shared<const std::string>(std::move(value));
  return out;
}
Value Value::list(List value) {
  Value out(Kind::list);
  out.list_ = std::make_shared<const List>(std::move(value));
  return out;
}
Value Value::dict(Dict value) {
  Value out(Kind::dict);
  out.dict_ = std::make_shared<Dict>(std::move(value));
  return out;
}
Value Value::space(Dict value) {
  Value out = dict(std::move(value));
  out.kind_ = Kind::space;
  return out;
}
Value Value::function(std::string name, Callable call) {
  Value out(Kind::function);
  out.string_ = std::make_shared<const std::string>(std::move(name));
  out.function_ = std::make_shared<const Callable>(std::move(call));
  return out;
}

bool Value::is_number() const { return is_integral() || is(Kind::number); }
double Value::as_number() const {
  return is(Kind::number) ? number_ : static_cast<double>(integer_);
}

const char* Value::kind_name() const {
  static constexpr const char* kNames[] = {
      "an undefined value", "none",   "a boolean", "an integer",  "a number",
      "a string",           "a list", "a mapping", "a namespace", "a function"};
  return kNames[static_cast<size_t>(kind_)];
}

std::string Value::description() const {
  if (!is(Kind::undefined) || !string_ || string_->empty()) return kind_name();
  return fmt::format("\"{}\", which is not defined,", *string_);
}

bool Value::truthy() const {
  switch (kind_) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return integer_ != 0;
    case Kind::number:
      return number_ != 0;
    case Kind::string:
      return !string_->empty();
    case Kind::list:
      return !list_->empty();
    case Kind::dict:
      return !dict_->items.empty();
    default:
      return true;
  }
}

Value Arguments::get(size_t place, std::string_view name) const {
  if (place < given.size()) return given[place];
  for (const auto& [key, value] : named)
    if (key == name) return value;
  return {};
}

bool equal(const Value& a, const Value& b, int depth) {
  check_depth(depth);
  using Kind = Value::Kind;
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
    return a.as_number() == b.as_number();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::string:
      return a.as_string() == b.as_string();
    case Kind::list:
      return a.as_list().size() == b.as_list().size() &&
             std::equal(a.as_list().begin(), a.as_list().end(), b.as_list().begin(),
                        [&](const Value& x, const Value& y) { return equal(x, y, depth + 1); });
    case Kind::dict: {
      if (a.as_dict().items.size() != b.as_dict().items.size()) return false;
      return std::ranges::all_of(a.as_dict().items, [&](const auto& item) {
        const Value* other = b.as_dict().find(item.first);
        return other && equal(item.second, *other, depth + 1);
      });
    }
    case Kind::space:
      return &a.as_dict() == &b.as_dict();
    case Kind::function:
      return &a.as_function() == &b.as_function();
    default:
      return true;  // none, undefined
  }
}

bool less(const Value& a, const Value& b, int depth) {
  check_depth(depth);
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() < b.as_integer();
    return a.as_number() < b.as_number();
  }
  if (a.is(Value::Kind::string) && b.is(Value::Kind::string)) return a.as_string() < b.as_string();
  if (a.is(Value::Kind::list) && b.is(Value::Kind::list)) {
    return std::lexicographical_compare(
        a.as_list().begin(), a.as_list().end(), b.as_list().begin(), b.as_list().end(),
        [&](const Value& x, const Value& y) { return less(x, y, depth + 1); });
  }
  fail(fmt::format("{} and {} have no order", a.kind_name(), b.kind_name()));
}

std::string to_text(const Value& value) {
  if (value.is(Value::Kind::string)) return value.as_string();
  if (value.is(Value::Kind::undefined)) return "";
  return to_repr(value);
}

std::string to_repr(const Value& value) {
  std::string out;
  append_repr(value, 0, &out);
  return out;
}

}  // namespace prism::llm::jinja
