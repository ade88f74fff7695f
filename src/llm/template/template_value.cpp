// Implements template values: comparison, printing and conversion as in Python.
#include "llm/template/template_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "llm/tokenizer/unicode.h"
#include "prism/error.h"

namespace prism::llm::jinja {

// --- contents

struct Value::Contents {
  Contents() = default;
  Contents(const Contents&) = delete;
  virtual ~Contents() = default;
  Contents* next_released = nullptr;
};
struct Value::Text : Contents {
  explicit Text(std::string value) : text(std::move(value)) {}
  std::string text;
};
struct Value::Items : Contents {
  explicit Items(List value) : items(std::move(value)) {}
  List items;
};
struct Value::Mapping : Contents {
  explicit Mapping(Dict value) : dict(std::move(value)) {}
  Dict dict;
};
struct Value::Function : Text {
  Function(std::string name, Callable value) : Text(std::move(name)), call(std::move(value)) {}
  Callable call;
};

template <class Type>
Value::Value(Kind kind, std::unique_ptr<Type> contents)
    : kind_(kind), contents_(contents.release(), &Value::release) {}

void Value::release(Contents* contents) noexcept {
  if (!contents) return;
  // Contents whose owners die with other contents wait in this list. Deleting them at once would
  // recurse as deeply as the values are nested.
  struct Released {
    Contents* first = nullptr;
    bool in_progress = false;
  };
  thread_local Released released;
  contents->next_released = std::exchange(released.first, contents);
  if (std::exchange(released.in_progress, true)) return;
  while (Contents* next = released.first) {
    released.first = next->next_released;
    delete next;
  }
  released.in_progress = false;
}

void check_depth(int depth) {
  if (depth > kDeepestValue) fail(fmt::format("values are nested deeper than {}", kDeepestValue));
}

namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

void append_quoted(std::string_view text, TextBuilder* out) {
  const bool has_single = text.find('\'') != text.npos, has_double = text.find('"') != text.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  *out += quote;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    const char c = text[at];
    if (c == '\n')
      *out += "\\n";
    else if (c == '\r')
      *out += "\\r";
    else if (c == '\t')
      *out += "\\t";
    else if (c == '\\' || c == quote)
      (*out += '\\') += c;
    else if (next.code < 0x20 || next.code == 0x7f)
      *out += fmt::format("\\x{:02x}", next.code);
    else
      *out += text.substr(at, next.bytes);
    at += next.bytes;
  }
  *out += quote;
}

void append_repr(const Value& value, int depth, TextBuilder* out) {
  check_depth(depth);
  out->charge_step();
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
      append_quoted(value.as_string(), out);
      return;
    case Kind::function:
      ((*out += "<function ") += value.as_string()) += '>';
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

const Value* Dict::find(Budget& budget, std::string_view key) const {
  budget.charge(items.size());
  for (const auto& item : items) {
    if (item.first.is(Value::Kind::string) && same(budget, item.first.as_string(), key))
      return &item.second;
  }
  return nullptr;
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  if (key.is(Value::Kind::string)) return find(budget, std::string_view(key.as_string()));
  for (const auto& item : items)
    if (equal(budget, item.first, key)) return &item.second;
  return nullptr;
}

void Dict::set(Budget& budget, Value key, Value value) {
  // As in Python; it also keeps searches from walking into nested keys.
  if (key.is(Value::Kind::list) || key.is(Value::Kind::dict))
    fail(fmt::format("{} cannot be a key", key.kind_name()));
  if (const Value* found = find(budget, key)) {
    *const_cast<Value*>(found) = std::move(value);
    return;
  }
  budget.charge(2 * sizeof(Value));
  items.emplace_back(std::move(key), std::move(value));
}

Value Value::undefined(std::string name) {
  return {Kind::undefined, std::make_unique<Text>(std::move(name))};
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
  return {Kind::string, std::make_unique<Text>(std::move(value))};
}
Value Value::list(List value) { return {Kind::list, std::make_unique<Items>(std::move(value))}; }
Value Value::dict(Dict value) { return {Kind::dict, std::make_unique<Mapping>(std::move(value))}; }
Value Value::space(Dict value) {
  return {Kind::space, std::make_unique<Mapping>(std::move(value))};
}
Value Value::function(std::string name, Callable call) {
  return {Kind::function, std::make_unique<Function>(std::move(name), std::move(call))};
}

const std::string& Value::as_string() const { return static_cast<Text&>(*contents_).text; }
const List& Value::as_list() const { return static_cast<Items&>(*contents_).items; }
const Dict& Value::as_dict() const { return static_cast<Mapping&>(*contents_).dict; }
Dict& Value::as_space() const { return static_cast<Mapping&>(*contents_).dict; }
const Callable& Value::as_function() const { return static_cast<Function&>(*contents_).call; }

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
  if (!is(Kind::undefined) || !contents_ || as_string().empty()) return kind_name();
  return fmt::format("\"{}\", which is not defined,", as_string());
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
      return !as_string().empty();
    case Kind::list:
      return !as_list().empty();
    case Kind::dict:
      return !as_dict().items.empty();
    default:
      return true;
  }
}

Value Arguments::get(Budget& budget, size_t place, std::string_view name) const {
  if (place < given.size()) return given[place];
  for (const auto& [key, value] : named)
    if (same(budget, key, name)) return value;
  return {};
}

bool equal(Budget& budget, const Value& a, const Value& b, int depth) {
  check_depth(depth);
  budget.charge(kStep);
  using Kind = Value::Kind;
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
    return a.as_number() == b.as_number();
  }
  if (a.kind() != b.kind()) return false;
  if (a.shares(b)) return true;
  switch (a.kind()) {
    case Kind::string:
      return same(budget, a.as_string(), b.as_string());
    case Kind::list:
      return std::ranges::equal(a.as_list(), b.as_list(), [&](const Value& x, const Value& y) {
        return equal(budget, x, y, depth + 1);
      });
    case Kind::dict: {
      if (a.as_dict().items.size() != b.as_dict().items.size()) return false;
      return std::ranges::all_of(a.as_dict().items, [&](const auto& item) {
        const Value* other = b.as_dict().find(budget, item.first);
        return other && equal(budget, item.second, *other, depth + 1);
      });
    }
    case Kind::space:
    case Kind::function:
      return false;  // each is equal only to itself
    default:
      return true;  // none, undefined
  }
}

bool less(Budget& budget, const Value& a, const Value& b, int depth) {
  check_depth(depth);
  budget.charge(kStep);
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() < b.as_integer();
    return a.as_number() < b.as_number();
  }
  if (a.is(Value::Kind::string) && b.is(Value::Kind::string)) {
    budget.charge(std::min(a.as_string().size(), b.as_string().size()));
    return a.as_string() < b.as_string();
  }
  if (a.is(Value::Kind::list) && b.is(Value::Kind::list)) {
    // The first items that differ decide.
    const auto [x, y] = std::ranges::mismatch(
        a.as_list(), b.as_list(),
        [&](const Value& p, const Value& q) { return equal(budget, p, q, depth + 1); });
    if (y == b.as_list().end()) return false;
    return x == a.as_list().end() || less(budget, *x, *y, depth + 1);
  }
  fail(fmt::format("{} and {} have no order", a.kind_name(), b.kind_name()));
}

void append_text(const Value& value, TextBuilder* out) {
  if (value.is(Value::Kind::string))
    *out += value.as_string();
  else if (!value.is(Value::Kind::undefined))
    append_repr(value, out);
}

std::string to_text(Budget& budget, const Value& value) {
  TextBuilder out(&budget);
  append_text(value, &out);
  return out.take();
}

void append_repr(const Value& value, TextBuilder* out) { append_repr(value, 0, out); }

}  // namespace prism::llm::jinja
