// Implements the filters of templates.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/utf8.h"
#include "llm/template/template_runtime.h"
#include "llm/tokenizer/text_encoder.h"
#include "llm/tokenizer/unicode.h"

namespace prism::llm::jinja {
namespace {

using Kind = Value::Kind;

// One application of a filter: its input, and positional and named arguments.
struct Use {
  Runtime& runtime;
  const std::string& name;
  const Value& input;
  const Arguments& arguments;

  Budget& budget() const { return runtime.budget(); }
  Value get(size_t place, std::string_view key) const {
    return arguments.get(budget(), place, key);
  }
  bool flag(size_t place, std::string_view key, bool otherwise = false) const {
    const Value value = get(place, key);
    return value.is(Kind::undefined) ? otherwise : value.truthy();
  }
  int64_t integer(size_t place, std::string_view key, int64_t otherwise) const {
    const Value value = get(place, key);
    return value.is_integral() ? value.as_integer() : otherwise;
  }
  std::string text() const { return to_text(budget(), input); }
  Value string(TextBuilder* out) const { return runtime.string(out); }
  [[noreturn]] void refuse() const { fail(fmt::format("{} of {}", name, input.kind_name())); }
};

template <class Change>
TextBuilder change_characters(Budget* budget, const std::string& text, const Change& change) {
  TextBuilder out(budget);
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    out.append_character(change(next.code));
    at += next.bytes;
  }
  return out;
}

Value folded(const Use& use, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::string)) return value;
  TextBuilder out = change_characters(&use.budget(), value.as_string(), lower_case);
  return use.string(&out);
}

Value change_case(const Use& use) {
  bool start = true;  // title: of every word; capitalize: of the text
  TextBuilder out = change_characters(&use.budget(), use.text(), [&](uint32_t code) {
    if (use.name == "upper") return upper_case(code);
    if (use.name == "lower") return lower_case(code);
    const uint32_t changed = start ? upper_case(code) : lower_case(code);
    const bool letter = lower_case(code) != upper_case(code) || code >= 0x80;
    start = use.name == "title" ? !letter : false;
    return changed;
  });
  return use.string(&out);
}

Value length(const Use& use) {
  switch (use.input.kind()) {
    case Kind::undefined:
      return Value::integer(0);
    case Kind::string:
      return Value::integer(
          static_cast<int64_t>(character_count(use.budget(), use.input.as_string())));
    case Kind::list:
      return Value::integer(static_cast<int64_t>(use.input.as_list().size()));
    case Kind::dict:
      return Value::integer(static_cast<int64_t>(use.input.as_dict().items.size()));
    default:
      use.refuse();
  }
}

Value default_value(const Use& use) {
  const bool empty = use.flag(1, "boolean") ? !use.input.truthy() : use.input.is(Kind::undefined);
  if (!empty) return use.input;
  const Value otherwise = use.get(0, "default_value");
  return otherwise.is(Kind::undefined) ? Value::string("") : otherwise;
}

Value join(const Use& use) {
  const Value attribute = use.get(1, "attribute"), between = use.get(0, "d");
  TextBuilder out(&use.budget());
  bool first = true;
  for (const Value& item : use.runtime.iterate(use.input)) {
    if (!std::exchange(first, false)) append_text(between, &out);
    append_text(attribute.is(Kind::undefined) ? item : use.runtime.path(item, attribute), &out);
  }
  return use.string(&out);
}

Value first_or_last(const Use& use) {
  const List items = use.runtime.iterate(use.input);
  if (items.empty()) return use.runtime.undefined(use.name);
  return use.name == "first" ? items.front() : items.back();
}

Value reverse(const Use& use) {
  List items = use.runtime.iterate(use.input);
  std::ranges::reverse(items);
  if (!use.input.is(Kind::string)) return use.runtime.list(std::move(items));
  TextBuilder out(&use.budget());
  for (const Value& item : items) out += item.as_string();
  return use.string(&out);
}

// The arguments from `place` on.
Arguments rest(const Use& use, size_t place) {
  const Arguments& all = use.arguments;
  use.budget().charge(all.given.size(), sizeof(Value));
  Arguments out;
  if (place < all.given.size())
    out.given.assign(all.given.begin() + static_cast<ptrdiff_t>(place), all.given.end());
  for (const auto& each : all.named) {
    use.budget().charge(sizeof(each) + each.first.size());
    out.named.push_back(each);
  }
  return out;
}

Value map(const Use& use) {
  const Value attribute = use.get(SIZE_MAX, "attribute"), otherwise = use.get(SIZE_MAX, "default");
  List out;
  if (!use.input.truthy()) return use.runtime.list({});  // also for none
  const bool by_filter = attribute.is(Kind::undefined);
  if (by_filter && use.arguments.given.empty()) fail("map needs a filter or an attribute");
  const std::string filter = by_filter ? to_text(use.budget(), use.arguments.given[0]) : "";
  const Arguments arguments = by_filter ? rest(use, 1) : Arguments();
  for (const Value& item : use.runtime.iterate(use.input)) {
    Value value =
        by_filter ? use.runtime.filter(filter, item, arguments) : use.runtime.path(item, attribute);
    if (!by_filter && value.is(Kind::undefined) && !otherwise.is(Kind::undefined))
      value = otherwise;
    use.budget().charge(sizeof(Value));
    out.push_back(std::move(value));
  }
  return use.runtime.list(std::move(out));
}

// select, reject, selectattr, rejectattr
Value select(const Use& use) {
  const bool by_attribute = use.name.ends_with("attr"), keep = use.name.starts_with("select");
  const size_t place = by_attribute ? 1 : 0;
  if (by_attribute && use.arguments.given.empty()) fail(use.name + " needs an attribute");
  List out;
  if (!use.input.truthy()) return use.runtime.list({});  // also for none
  const bool by_test = place < use.arguments.given.size();
  const std::string test = by_test ? to_text(use.budget(), use.arguments.given[place]) : "";
  const Arguments arguments = by_test ? rest(use, place + 1) : Arguments();
  for (Value& item : use.runtime.iterate(use.input)) {
    const Value value = by_attribute ? use.runtime.path(item, use.arguments.given[0]) : item;
    const bool holds = by_test ? use.runtime.test(test, value, arguments) : value.truthy();
    if (holds != keep) continue;
    use.budget().charge(sizeof(Value));
    out.push_back(std::move(item));
  }
  return use.runtime.list(std::move(out));
}

using Keyed = std::vector<std::pair<Value, Value>>;  // sort key, item

Value sorted(const Use& use, Keyed items, bool reversed) {
  // less() may throw, which a merge sort allows.
  std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
    return reversed ? less(use.budget(), b.first, a.first) : less(use.budget(), a.first, b.first);
  });
  List out;
  for (auto& item : items) out.push_back(std::move(item.second));
  return use.runtime.list(std::move(out));
}

// What a sort takes for each item: the pair, its copy and the result.
constexpr size_t kSorted = 5 * sizeof(Value);

Value sort(const Use& use) {
  const Value attribute = use.get(2, "attribute");
  const bool case_sensitive = use.flag(1, "case_sensitive"), reversed = use.flag(0, "reverse");
  Keyed items;
  for (const Value& item : use.runtime.iterate(use.input)) {
    use.budget().charge(kSorted);
    const Value key = attribute.is(Kind::undefined) ? item : use.runtime.path(item, attribute);
    items.emplace_back(folded(use, key, case_sensitive), item);
  }
  return sorted(use, std::move(items), reversed);
}

Value dictsort(const Use& use) {
  if (!use.input.is(Kind::dict)) use.refuse();
  const Value by = use.get(1, "by");
  const bool by_value = by.is(Kind::string) && by.as_string() == "value";
  const bool case_sensitive = use.flag(0, "case_sensitive"), reversed = use.flag(2, "reverse");
  Keyed items;
  for (const auto& [key, value] : use.input.as_dict().items) {
    use.budget().charge(kSorted + 2 * sizeof(Value));
    items.emplace_back(folded(use, by_value ? value : key, case_sensitive),
                       use.runtime.list({key, value}));
  }
  return sorted(use, std::move(items), reversed);
}

Value unique(const Use& use) {
  const Value attribute = use.get(1, "attribute");
  const bool case_sensitive = use.flag(0, "case_sensitive");
  List keys, out;
  for (const Value& item : use.runtime.iterate(use.input)) {
    const Value key =
        folded(use, attribute.is(Kind::undefined) ? item : use.runtime.path(item, attribute),
               case_sensitive);
    if (std::ranges::any_of(keys,
                            [&](const Value& each) { return equal(use.budget(), each, key); }))
      continue;
    use.budget().charge(2 * sizeof(Value));
    keys.push_back(key);
    out.push_back(item);
  }
  return use.runtime.list(std::move(out));
}

Value extreme(const Use& use) {
  List items = use.runtime.iterate(use.input);
  if (items.empty()) return use.runtime.undefined(use.name);
  const Value* best = &items[0];
  for (const Value& item : items) {
    const bool better =
        use.name == "min" ? less(use.budget(), item, *best) : less(use.budget(), *best, item);
    if (better) best = &item;
  }
  return *best;
}

Value sum(const Use& use) {
  const Value attribute = use.get(0, "attribute");
  double total = 0;
  int64_t whole = 0;
  bool integral = true;
  for (const Value& item : use.runtime.iterate(use.input)) {
    const Value value = attribute.is(Kind::undefined) ? item : use.runtime.path(item, attribute);
    if (!value.is_number()) fail(fmt::format("sum: {} is not a number", value.kind_name()));
    total += value.as_number();
    integral = integral && value.is_integral();
    if (integral && __builtin_add_overflow(whole, value.as_integer(), &whole))
      fail("sum: the result is too large");
  }
  return integral ? Value::integer(whole) : Value::number(total);
}

Value to_integer(const Use& use) {
  const Value otherwise = use.get(0, "default");
  if (use.input.is_integral()) return Value::integer(use.input.as_integer());
  if (use.input.is(Kind::number)) {
    const double number = use.input.as_number();
    if (std::isfinite(number) && std::abs(number) < 9e18)
      return Value::integer(static_cast<int64_t>(number));
  }
  if (use.input.is(Kind::string)) {
    const std::string_view text = strip(use.budget(), use.input.as_string(), {}, true, true);
    const char* end = text.data() + text.size();
    use.budget().charge(2 * text.size());
    int64_t whole = 0;
    if (const auto [at, error] = std::from_chars(text.data(), end, whole);
        error == std::errc() && at == end)
      return Value::integer(whole);
    double number = 0;
    if (const auto [at, error] = std::from_chars(text.data(), end, number);
        error == std::errc() && at == end && std::abs(number) < 9e18)
      return Value::integer(static_cast<int64_t>(number));
  }
  return otherwise.is(Kind::undefined) ? Value::integer(0) : otherwise;
}

Value to_float(const Use& use) {
  if (use.input.is_number()) return Value::number(use.input.as_number());
  if (use.input.is(Kind::string)) {
    const std::string_view text = strip(use.budget(), use.input.as_string(), {}, true, true);
    double number = 0;
    use.budget().charge(text.size());
    const char* end = text.data() + text.size();
    if (const auto [at, error] = std::from_chars(text.data(), end, number);
        error == std::errc() && at == end)
      return Value::number(number);
  }
  const Value otherwise = use.get(0, "default");
  return otherwise.is(Kind::undefined) ? Value::number(0) : otherwise;
}

Value absolute(const Use& use) {
  if (!use.input.is_number()) use.refuse();
  if (use.input.is(Kind::number)) return Value::number(std::abs(use.input.as_number()));
  if (use.input.as_integer() == INT64_MIN) fail("abs: the result is too large");
  return Value::integer(std::abs(use.input.as_integer()));
}

Value round(const Use& use) {
  if (!use.input.is_number()) use.refuse();
  const double scale = std::pow(
      10.0, static_cast<double>(std::clamp<int64_t>(use.integer(0, "precision", 0), -300, 300)));
  const Value method = use.get(1, "method");
  const std::string_view how = method.is(Kind::string) ? method.as_string() : std::string_view();
  const double x = use.input.as_number() * scale;
  return Value::number((how == "ceil"    ? std::ceil(x)
                        : how == "floor" ? std::floor(x)
                                         : std::nearbyint(x)) /
                       scale);
}

Value indent(const Use& use) {
  const Value width = use.get(0, "width");
  TextBuilder spaces(&use.budget());
  if (width.is(Kind::string))
    spaces += width.as_string();
  else
    spaces.append(static_cast<size_t>(std::clamp<int64_t>(use.integer(0, "width", 4), 0, 1000)),
                  ' ');
  const std::string space = spaces.take();
  const bool first = use.flag(1, "first"), blank = use.flag(2, "blank");
  const std::string text = use.text();
  TextBuilder out(&use.budget());
  for (size_t at = 0, line = 0; at <= text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (line > 0) out += '\n';
    if ((line == 0 && first) || (line > 0 && (blank || end > at))) out += space;
    out += std::string_view(text).substr(at, end - at);
    at = end + 1;
  }
  return use.string(&out);
}

Value replace(const Use& use) {
  const std::string text = use.text(), from = to_text(use.budget(), use.get(0, "old")),
                    to = to_text(use.budget(), use.get(1, "new"));
  int64_t most = use.integer(2, "count", -1);
  if (from.empty()) fail("replace: the text to replace is empty");
  TextBuilder out(&use.budget());
  const std::string_view view = text;
  size_t at = 0;
  for (; most != 0; --most) {
    const size_t found = find(use.budget(), view, from, at);
    if (found == view.npos) break;
    (out += view.substr(at, found - at)) += to;
    at = found + from.size();
  }
  out += view.substr(at);
  return use.string(&out);
}

Value tojson(const Use& use) {
  JsonStyle style;
  const Value spaces = use.get(0, "indent");
  if (spaces.is_integral())
    style.indent = static_cast<int>(std::clamp<int64_t>(spaces.as_integer(), 0, 100));
  style.sort_keys = use.flag(SIZE_MAX, "sort_keys");
  style.ensure_ascii = use.flag(SIZE_MAX, "ensure_ascii");
  const Value separators = use.get(SIZE_MAX, "separators");
  if (separators.is(Kind::list) && separators.as_list().size() == 2) {
    style.item_separator = to_text(use.budget(), separators.as_list()[0]);
    style.key_separator = to_text(use.budget(), separators.as_list()[1]);
  }
  return use.runtime.string(to_json(use.budget(), use.input, style));
}

Value items(const Use& use) {
  if (use.input.is(Kind::undefined)) return use.runtime.list({});
  if (!use.input.is(Kind::dict)) use.refuse();
  return call_method(use.runtime, use.input, "items", {});
}

Value escape(const Use& use) {
  TextBuilder out(&use.budget());
  for (const char c : use.text()) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return use.string(&out);
}

// Python's % operator: %s and %d, %i, %f with a precision, %x.
Value format(const Use& use) {
  const std::string text = use.text();
  TextBuilder out(&use.budget());
  size_t next = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    size_t end = text.find_first_not_of("0123456789.", at + 1);
    if (end == text.npos) fail("format: % without a conversion");
    if (text[end] == '%') {
      out += '%';
      at = end;
      continue;
    }
    if (next >= use.arguments.given.size()) fail("format: not enough values");
    const Value value = use.arguments.given[next++];
    const std::string width = text.substr(at + 1, end - at - 1);
    int precision = 6;
    if (const size_t dot = width.find('.'); dot != width.npos && width.size() - dot <= 3)
      precision = static_cast<int>(
          to_integer({use.runtime, use.name, Value::string(width.substr(dot + 1)), {}})
              .as_integer());
    use.budget().charge(kStep + kContentsBytes + width.size());
    if (text[end] == 's')
      append_text(value, &out);
    else if (!value.is_number())
      fail(fmt::format("format: %{} does not apply to {}", text[end], value.kind_name()));
    else if (text[end] == 'd' || text[end] == 'i')
      append_text(to_integer({use.runtime, use.name, value, {}}), &out);
    else if (text[end] == 'f')
      out += fmt::format("{:.{}f}", value.as_number(), precision);
    else if (text[end] == 'x')
      out += fmt::format("{:x}", value.as_integer());
    else
      fail(fmt::format("format: the conversion %{} is not supported", text[end]));
    at = end;
  }
  return use.string(&out);
}

using Filter = Value (*)(const Use&);

const std::map<std::string_view, Filter>& filters() {
  static const std::map<std::string_view, Filter> all = {
      {"upper", change_case},
      {"lower", change_case},
      {"title", change_case},
      {"capitalize", change_case},
      {"length", length},
      {"count", length},
      {"default", default_value},
      {"d", default_value},
      {"join", join},
      {"first", first_or_last},
      {"last", first_or_last},
      {"reverse", reverse},
      {"map", map},
      {"select", select},
      {"reject", select},
      {"selectattr", select},
      {"rejectattr", select},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"min", extreme},
      {"max", extreme},
      {"sum", sum},
      {"int", to_integer},
      {"float", to_float},
      {"abs", absolute},
      {"round", round},
      {"indent", indent},
      {"replace", replace},
      {"tojson", tojson},
      {"items", items},
      {"escape", escape},
      {"e", escape},
      {"format", format},
      {"safe", [](const Use& use) { return use.input; }},
      {"string", [](const Use& use) { return use.runtime.string(use.text()); }},
      {"list", [](const Use& use) { return use.runtime.list(use.runtime.iterate(use.input)); }},
      {"trim",
       [](const Use& use) {
         TextBuilder out(&use.budget());
         out += strip(use.budget(), use.text(), use.get(0, "chars"), true, true);
         return use.string(&out);
       }},
      {"attr",
       [](const Use& use) {
         return use.runtime.attribute(use.input, to_text(use.budget(), use.get(0, "name")));
       }},
  };
  return all;
}

}  // namespace

Value apply_filter(Runtime& runtime, const std::string& name, const Value& input,
                   const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) fail(fmt::format("the filter \"{}\" is not supported", name));
  return found->second({runtime, name, input, arguments});
}

}  // namespace prism::llm::jinja
