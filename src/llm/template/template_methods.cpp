// Implements the methods of strings, lists and mappings.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "llm/template/template_runtime.h"
#include "llm/tokenizer/text_encoder.h"
#include "llm/tokenizer/unicode.h"

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
std::vector<std::string_view> split(Budget& budget, std::string_view text,
                                    const std::string* separator, int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  if (separator) {
    while (most != 0) {
      const size_t at =
          from_right ? rfind(budget, text, *separator) : find(budget, text, *separator);
      budget.charge(sizeof(text));
      if (at == text.npos) break;
      parts.push_back(from_right ? text.substr(at + separator->size()) : text.substr(0, at));
      text = from_right ? text.substr(0, at) : text.substr(at + separator->size());
      --most;
    }
    parts.push_back(text);
  } else {
    constexpr std::string_view kBlanks = " \t\n\v\f\r";
    while (true) {
      if (from_right)
        text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
      else
        text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
      if (text.empty()) break;
      budget.charge(sizeof(text));
      const size_t cut = from_right ? text.find_last_of(kBlanks) : text.find_first_of(kBlanks);
      if (most == 0 || cut == text.npos) {
        parts.push_back(text);
        break;
      }
      parts.push_back(from_right ? text.substr(cut + 1) : text.substr(0, cut));
      text = from_right ? text.substr(0, cut) : text.substr(cut);
      --most;
    }
  }
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

bool starts_or_ends(Budget& budget, const std::string& text, const Value& with, bool at_start) {
  const char* what = at_start ? "startswith" : "endswith";
  const auto holds = [&](const Value& each) {
    const std::string& part = need_string(each, what);
    budget.charge(kStep + std::min(text.size(), part.size()));
    return at_start ? text.starts_with(part) : text.ends_with(part);
  };
  return with.is(Kind::list) ? std::ranges::any_of(with.as_list(), holds) : holds(with);
}

// "{} and {name}": arguments in order or by name.
Value format_braces(Runtime& runtime, const std::string& text, const Arguments& arguments) {
  TextBuilder out(&runtime.budget());
  size_t next = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if ((c == '{' || c == '}') && at + 1 < text.size() && text[at + 1] == c) {
      out += c;
      ++at;
    } else if (c == '{') {
      const size_t end = text.find('}', at);
      if (end == text.npos) fail("format(): { without }");
      runtime.budget().charge(kStep + end - at);
      const std::string name = text.substr(at + 1, end - at - 1);
      const bool digits = !name.empty() && name.size() < 6 &&
                          std::ranges::all_of(name, [](char d) { return d >= '0' && d <= '9'; });
      if (name.find_first_of(":!.[") != name.npos)
        fail("format(): only {}, {0} and {name} are supported");
      const size_t place = name.empty() ? next++ : digits ? std::stoul(name) : SIZE_MAX;
      const Value value = arguments.get(runtime.budget(), place, name);
      if (value.is(Kind::undefined)) fail(fmt::format("format(): no argument for {{{}}}", name));
      append_text(value, &out);
      at = end;
    } else {
      out += c;
    }
  }
  return runtime.string(&out);
}

bool all_characters(Budget& budget, const std::string& text, bool (*is)(uint32_t)) {
  if (text.empty()) return false;
  budget.charge(text.size(), 4);  // each character is searched for in tables
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
  Budget& budget = runtime.budget();
  const Value first = arguments.get(budget, 0, "");
  const auto part_of_text = [&](std::string_view part) {
    budget.charge(part.size());
    return runtime.string(std::string(part));
  };
  // Every method looks at the text at most a few times, or charges more itself.
  budget.charge(text.size());
  if (name == "strip") return part_of_text(strip(budget, text, first, true, true));
  if (name == "lstrip") return part_of_text(strip(budget, text, first, true, false));
  if (name == "rstrip") return part_of_text(strip(budget, text, first, false, true));
  if (name == "split" || name == "rsplit") {
    const Value by = arguments.get(budget, 0, "sep"), most = arguments.get(budget, 1, "maxsplit");
    const bool blank = by.is(Kind::undefined) || by.is(Kind::none);
    if (!blank && need_string(by, "split").empty()) fail("split(): the separator is empty");
    List parts;
    for (const std::string_view part :
         split(budget, text, blank ? nullptr : &by.as_string(),
               most.is_integral() ? most.as_integer() : -1, name == "rsplit")) {
      budget.charge(sizeof(Value));
      parts.push_back(part_of_text(part));
    }
    return runtime.list(std::move(parts));
  }
  if (name == "splitlines") {
    List lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
      budget.charge(sizeof(Value));
      lines.push_back(part_of_text(std::string_view(text).substr(at, end - at)));
      at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
    }
    return runtime.list(std::move(lines));
  }
  if (name == "startswith") return Value::boolean(starts_or_ends(budget, text, first, true));
  if (name == "endswith") return Value::boolean(starts_or_ends(budget, text, first, false));
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize" ||
      name == "replace")
    return runtime.filter(name, part_of_text(text), arguments);
  if (name == "join") {
    Arguments with;
    with.given = {part_of_text(text)};
    return runtime.filter("join", first, with);
  }
  if (name == "find" || name == "rfind" || name == "index" || name == "count") {
    const std::string& part = need_string(first, name.c_str());
    if (name == "count") {
      if (part.empty())
        return Value::integer(static_cast<int64_t>(character_count(budget, text)) + 1);
      return Value::integer(static_cast<int64_t>(split(budget, text, &part, -1, false).size()) - 1);
    }
    const size_t at = name == "rfind" ? rfind(budget, text, part) : find(budget, text, part);
    if (at == text.npos && name == "index") fail("index(): not found");
    if (at == text.npos) return Value::integer(-1);
    return Value::integer(
        static_cast<int64_t>(character_count(budget, std::string_view(text).substr(0, at))));
  }
  if (name == "format") return format_braces(runtime, text, arguments);
  if (name == "isdigit") return Value::boolean(all_characters(budget, text, is_digit));
  if (name == "isalpha") return Value::boolean(all_characters(budget, text, is_alpha));
  if (name == "isalnum")
    return Value::boolean(all_characters(
        budget, text, [](uint32_t code) { return is_digit(code) || is_alpha(code); }));
  if (name == "isspace") return Value::boolean(all_characters(budget, text, is_blank));
  if (name == "isupper" || name == "islower") {
    const Value value = part_of_text(text);
    const Value other = runtime.filter(name == "isupper" ? "lower" : "upper", value, {});
    const Value same = runtime.filter(name == "isupper" ? "upper" : "lower", value, {});
    return Value::boolean(text == same.as_string() && text != other.as_string());
  }
  const std::string& part = need_string(first, name.c_str());
  const bool prefix = name == "removeprefix";
  std::string_view kept = text;
  if (prefix && kept.starts_with(part)) kept.remove_prefix(part.size());
  if (!prefix && kept.ends_with(part)) kept.remove_suffix(part.size());
  return part_of_text(kept);
}

}  // namespace

std::string_view strip(Budget& budget, std::string_view text, const Value& characters, bool left,
                       bool right) {
  const bool blank = !characters.is(Kind::string);
  const size_t cost = blank ? 1 : 1 + characters.as_string().size();
  // The part from the first to the last character that stays.
  size_t first = text.size(), last = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    budget.charge(cost);
    const bool goes =
        blank ? is_blank(next.code)
              : characters.as_string().find(text.substr(at, next.bytes)) != std::string::npos;
    if (!goes) {
      first = std::min(first, at);
      last = at + next.bytes;
    }
    at += next.bytes;
  }
  if (!left) first = 0;
  if (!right) last = text.size();
  return first < last ? text.substr(first, last - first) : std::string_view();
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
    const Value wanted = arguments.get(runtime.budget(), 0, "");
    int64_t count = 0;
    for (size_t i = 0; i < of.as_list().size(); ++i) {
      if (!equal(runtime.budget(), of.as_list()[i], wanted)) continue;
      if (name == "index") return Value::integer(static_cast<int64_t>(i));
      ++count;
    }
    if (name == "index") fail("index(): the value is not in the list");
    return Value::integer(count);
  }
  Budget& budget = runtime.budget();
  const Dict& dict = of.as_dict();
  if (name == "get") {
    if (const Value* found = dict.find(budget, arguments.get(budget, 0, "key"))) return *found;
    const Value otherwise = arguments.get(budget, 1, "default");
    return otherwise.is(Kind::undefined) ? Value::none() : otherwise;
  }
  List items;
  for (const auto& [key, value] : dict.items) {
    budget.charge(3 * sizeof(Value));
    items.push_back(name == "keys" ? key : name == "values" ? value : runtime.list({key, value}));
  }
  return runtime.list(std::move(items));
}

}  // namespace prism::llm::jinja
