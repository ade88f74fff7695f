// The table of shared JSON grammar rules.
#include "llm/grammar/json_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>

#include <fmt/format.h>

namespace prism::llm {
namespace {

// The rules by name. Space is at most one blank, or a line end and an indent: a model that may
// write any number of blanks sometimes writes nothing else.
const std::map<std::string, std::string>& all_rules() {
  static const std::map<std::string, std::string> rules = {
      {"space", R"(| " " | "\n" [ \t]{0,20})"},
      {"char", R"([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))"},
      {"string", R"("\"" char* "\"")"},
      {"boolean", R"("true" | "false")"},
      {"null", R"("null")"},
      {"integer", R"("-"? ("0" | [1-9] [0-9]{0,15}))"},
      {"number", R"("-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?)"},
      {"value", "object | array | string | number | boolean | null"},
      {"pair", R"(string space ":" space value)"},
      {"object", R"("{" space (pair (space "," space pair)*)? space "}")"},
      {"array", R"("[" space (value (space "," space value)*)? space "]")"},
      {"date", R"([0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]))"},
      {"time", R"(([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,9})? )"
               R"(("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9]))"},
      {"date-time", R"(date "T" time)"},
      {"uuid", R"([0-9a-fA-F]{8} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{4} "-" )"
               R"([0-9a-fA-F]{12})"},
      {"octet", R"("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9] [0-9] | [1-9]? [0-9])"},
      {"ipv4", R"(octet "." octet "." octet "." octet)"},
      {"email", R"([A-Za-z0-9._+-]{1,64} "@" label ("." label)+)"},
      {"label", R"([A-Za-z0-9] ([A-Za-z0-9-]{0,61} [A-Za-z0-9])?)"},
      {"hostname", R"(label ("." label)*)"},
      {"uri", R"([A-Za-z] [A-Za-z0-9+.-]{0,20} ":" [A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+)"},
  };
  return rules;
}

constexpr std::array kStringFormats = {"date", "time",  "date-time", "uuid",
                                       "ipv4", "email", "hostname",  "uri"};

}  // namespace

const std::string& json_rule(const std::string& name) { return all_rules().at(name); }

std::vector<std::string> json_rules_in(const std::string& name) {
  const std::string& body = json_rule(name);
  std::vector<std::string> found;
  for (size_t at = 0; at < body.size();) {
    if (body[at] == '"' || body[at] == '[') {  // skip literals and classes, which contain no names
      const char close = body[at] == '"' ? '"' : ']';
      for (++at; at < body.size() && body[at] != close; ++at)
        if (body[at] == '\\') ++at;
      ++at;
      continue;
    }
    size_t end = at;
    while (end < body.size() && (std::isalpha(static_cast<uint8_t>(body[end])) || body[end] == '-'))
      ++end;
    if (end > at) found.push_back(body.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return found;
}

std::span<const char* const> json_formats() { return kStringFormats; }

bool is_json_format(const std::string& name) {
  return std::ranges::find(kStringFormats, name) != kStringFormats.end();
}

std::string grammar_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (result += '\\') += c;
    else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F)
      result += fmt::format("\\x{:02X}", static_cast<uint8_t>(c));
    else
      result += c;
  }
  return result + "\"";
}

}  // namespace prism::llm
