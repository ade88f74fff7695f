// Implements the methods of strings, lists and mappings.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "llm/template/template_runtime.h"
#include "llm/tokenizer/text_encoder.h"
#include "llm/tokenizer/unicode.h"
#include "llm/tokenizer/utf8.h"

namespace prism::llm::jinja {
namespace {

using Kind = Value::Kind;

constexpr std::array kStringMethods = {
    "strip",        "lstrip",       "rstrip",     "split",   "rsplit",  "splitlines", "startswith",
    "endswith",     "upper",        "lower",      "title",   "replace", "join",       "find",
    "rfind",        "count",        "format",     "isdigit", "isalpha", "isalnum",    "isspace",
    "removeprefix", "removesuffix", "capitalize", "isupper", "islower", "index"};
constexpr std::array kDictMethods = {"get", "items", "keys", "values", "copy"};
constexpr std::array kListMethods = {"index", "count", "copy"};

const std::string& need_string(const Value& value, const char* what) {
  if (!value.is(Kind::string))
    fail(fmt::format("{} needs a string, found {}", what, value.kind_name()));
  return value.as_string();
}

bool is_blank(uint32_t code) { return is_white_space(code) || (code >= 0x1c && code <= 0x1f); }

// Splits at most `most` times (-1: no limit). Without a separator: at runs of white space.
std::vector<std::string_view> split(std::string_view text, const std::string* separator,
                                    int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  if (separator) {
    while (most != 0) {
      const size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
      if (at == text.npos) break;
      parts.push_back(from_right ? text.substr(at + separator->size()) : text.substr(0, at));
      text = from_right ? text.substr(0, at) : text.substr(at + separator->size());
      --most;
    }
    parts.push_back(text);
  } else {
    std::string blanks = " \t\n\v\f\r";
    while (true) {
      const size_t start = text.find_first_not_of(blanks), last = text.find_last_not_of(blanks);
      if (start == text.npos) break;
      const size_t cut =
          from_right ? text.find_last_of(blanks, last) : text.find_first_of(blanks, start);
      if (most == 0 || cut == text.npos || (from_right && cut < start)) {
        parts.push_back(from_right ? text.substr(start, last + 1 - start) : text.substr(start));
        break;
      }
      parts.push_back(from_right ? text.substr(cut + 1, last - cut)
                                 : text.substr(start, cut - start));
      text = from_right ? text.substr(0, cut) : text.substr(cut);
      --most;
    }
    // The remainder of a white-space split has no trailing white space.
    if (!parts.empty() && !from_right && most != 0) {
      const size_t last = parts.back().find_last_not_of(blanks);
      parts.back() = parts.back().substr(0, last + 1);
    }
  }
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

bool starts_or_ends(const std::string& text, const Value& with, bool at_start) {
  if (with.is(Kind::list)) {
    return std::ranges::any_of(
        with.as_list(), [&](const Value& each) { return starts_or_ends(text, each, at_start); });
  }
  const std::string& part = need_string(with, at_start ? "startswith" : "endswith");
  return at_start ? text.starts_with(part) : text.ends_with(part);
}

// "{} and {name}": arguments in order or by name.
std::string format_braces(const std::string& text, const Arguments& arguments) {
  std::string out;
  size_t next = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if ((c == '{' || c == '}') && at + 1 < text.size() && text[at + 1] == c) {
      out += c;
      ++at;
    } else if (c == '{') {
      const size_t end = text.find('}', at);
      if (end == text.npos) fail("format(): { without }");
      const std::string name = text.substr(at + 1, end - at - 1);
      const bool digits = !name.empty() && name.size() < 6 &&
                          std::ranges::all_of(name, [](char d) { return d >= '0' && d <= '9'; });
      if (name.find_first_of(":!.[") != name.npos)
        fail("format(): only {}, {0} and {name} are supported");
      const size_t place = name.empty() ? next++ : digits ? std::stoul(name) : SIZE_MAX;
      const Value value = arguments.get(place, name);
      if (value.is(Kind::undefined)) fail(fmt::format("format(): no argument for {{{}}}", name));
      out += to_text(value);
      at = end;
    } else {
      out += c;
    }
  }
  return out;
}

bool all_characters(const std::string& text, bool (*is)(uint32_t)) {
  if (text.empty()) return false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    if (!is(next.code)) return false;
    at += next.bytes;
  }
  return true;
}
bool is_digit(uint32_t code) { return code >= '0' && code <= '9'; }
bool is_alpha(uint32_t code) {
  return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
         (code >= 0x80 && !is_punctuation(code) && !is_blank(code) && !is_control(code));
}

Value string_method(Runtime& runtime, const std::string& text, const std::string& name,
                    const Arguments& arguments) {
  const Value first = arguments.get(0, ""), second = arguments.get(1, "");
  runtime.charge(text.size());
  if (name == "strip") return runtime.string(strip(text, first, true, true));
  if (name == "lstrip") return runtime.string(strip(text, first, true, false));
  if (name == "rstrip") return runtime.string(strip(text, first, false, true));
  if (name == "split" || name == "rsplit") {
    const Value by = arguments.get(0, "sep"), most = arguments.get(1, "maxsplit");
    const bool blank = by.is(Kind::undefined) || by.is(Kind::none);
    if (!blank && need_string(by, "split").empty()) fail("split(): the separator is empty");
    List parts;
    for (const std::string_view part :
         split(text, blank ? nullptr : &by.as_string(), most.is_integral() ? most.as_integer() : -1,
               name == "rsplit"))
      parts.push_back(Value::string(std::string(part)));
    return runtime.list(std::move(parts));
  }
  if (name == "splitlines") {
    List lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
      lines.push_back(Value::string(text.substr(at, end - at)));
      at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
    }
    return runtime.list(std::move(lines));
  }
  if (name == "startswith") return Value::boolean(starts_or_ends(text, first, true));
  if (name == "endswith") return Value::boolean(starts_or_ends(text, first, false));
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize" ||
      name == "replace")
    return runtime.filter(name, Value::string(text), arguments);
  if (name == "join") {
    Arguments with;
    with.given = {Value::string(text)};
    return runtime.filter("join", first, with);
  }
  if (name == "find" || name == "rfind" || name == "index" || name == "count") {
    const std::string& part = need_string(first, name.c_str());
    if (name == "count") {
      if (part.empty()) return Value::integer(static_cast<int64_t>(character_starts(text).size()));
      return Value::integer(static_cast<int64_t>(split(text, &part, -1, false).size()) - 1);
    }
    const size_t at = name == "rfind" ? text.rfind(part) : text.find(part);
    if (at == text.npos && name == "index") fail("index(): not found");
    if (at == text.npos) return Value::integer(-1);
    return Value::integer(static_cast<int64_t>(character_starts(text.substr(0, at)).size()) - 1);
  }
  if (name == "format") return runtime.string(format_braces(text, arguments));
  if (name == "isdigit") return Value::boolean(all_characters(text, is_digit));
  if (name == "isalpha") return Value::boolean(all_characters(text, is_alpha));
  if (name == "isalnum")
    return Value::boolean(
        all_characters(text, [](uint32_t code) { return is_digit(code) || is_alpha(code); }));
  if (name == "isspace") return Value::boolean(all_characters(text, is_blank));
  if (name == "isupper" || name == "islower") {
    const std::string other =
        to_text(runtime.filter(name == "isupper" ? "lower" : "upper", Value::string(text), {}));
    const std::string same =
        to_text(runtime.filter(name == "isupper" ? "upper" : "lower", Value::string(text), {}));
    return Value::boolean(text == same && text != other);
  }
  if (name == "removeprefix") {
    const std::string& part = need_string(first, "removeprefix");
    return runtime.string(text.starts_with(part) ? text.substr(part.size()) : text);
  }
  const std::string& part = need_string(first, "removesuffix");
  return runtime.string(text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text);
}

}  // namespace

std::string strip(std::string_view text, const Value& characters, bool left, bool right) {
  const bool blank = !characters.is(Kind::string);
  const auto goes = [&](size_t at, size_t bytes) {
    if (blank) return is_blank(utf8_at(text, at).code);
    return characters.as_string().find(text.substr(at, bytes)) != std::string::npos;
  };
  const std::vector<size_t> starts = character_starts(text);
  size_t first = 0, last = starts.size() - 1;
  while (left && first < last && goes(starts[first], starts[first + 1] - starts[first])) ++first;
  while (right && last > first && goes(starts[last - 1], starts[last] - starts[last - 1])) --last;
  return std::string(text.substr(starts[first], starts[last] - starts[first]));
}

bool has_method(const Value& of, std::string_view name) {
  switch (of.kind()) {
    case Kind::string:
      return std::ranges::find(kStringMethods, name) != kStringMethods.end();
    case Kind::dict:
      return std::ranges::find(kDictMethods, name) != kDictMethods.end();
    case Kind::list:
      return std::ranges::find(kListMethods, name) != kListMethods.end();
    default:
      return false;
  }
}

Value call_method(Runtime& runtime, const Value& of, const std::string& name,
                  const Arguments& arguments) {
  if (of.is(Kind::string)) return string_method(runtime, of.as_string(), name, arguments);
  if (name == "copy") return of;
  if (of.is(Kind::list)) {
    const Value wanted = arguments.get(0, "");
    int64_t count = 0;
    runtime.charge(of.as_list().size());
    for (size_t i = 0; i < of.as_list().size(); ++i) {
      if (!equal(of.as_list()[i], wanted)) continue;
      if (name == "index") return Value::integer(static_cast<int64_t>(i));
      ++count;
    }
    if (name == "index") fail("index(): the value is not in the list");
    return Value::integer(count);
  }
  const Dict& dict = of.as_dict();
  runtime.charge(dict.items.size());
  if (name == "get") {
    if (const Value* found = dict.find(arguments.get(0, "key"))) return *found;
    const Value otherwise = arguments.get(1, "default");
    return otherwise.is(Kind::undefined) ? Value::none() : otherwise;
  }
  List items;
  for (const auto& [key, value] : dict.items)
    items.push_back(name == "keys" ? key : name == "values" ? value : Value::list({key, value}));
  return runtime.list(std::move(items));
}

}  // namespace prism::llm::jinja
