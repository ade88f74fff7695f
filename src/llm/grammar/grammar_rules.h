// A grammar as data: rules made of character sets, references and repetitions, in one flat array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

inline constexpr uint32_t kLastCodePoint = 0x10FFFF;
inline constexpr uint32_t kNoMaximum = UINT32_MAX;

struct CodeRange {
  uint32_t first = 0, last = 0;
  friend bool operator==(const CodeRange&, const CodeRange&) = default;
};
using CodeSet = std::vector<CodeRange>;  // sorted, disjoint, without surrogates

// Sorts and joins ranges and removes surrogates. inverted: returns the complement.
CodeSet make_code_set(CodeSet ranges, bool inverted);
bool contains(const CodeSet& set, uint32_t code);

struct GrammarSymbol {
  enum class Kind : uint8_t { end, characters, rule, repeat };
  Kind kind = Kind::end;
  uint32_t index = 0;                 // of the set, or of the referenced or repeated rule
  uint32_t minimum = 0, maximum = 0;  // of a repetition; kNoMaximum: unlimited
};

struct GrammarRule {
  std::string name;
  std::vector<uint32_t> alternatives;  // start of each in symbols; each ends with `end`
};

struct GrammarRules {
  std::vector<GrammarSymbol> symbols;
  std::vector<GrammarRule> rules;
  std::vector<CodeSet> sets;
  uint32_t root = 0;
};

// Parses GBNF. The text may use the roots of `parts` like rules of these names. Throws
// kInvalidArgument with line and column for wrong syntax and for rules that are missing, defined
// twice or left-recursive.
GrammarRules parse_grammar(std::string_view text, std::string_view root = "root",
                           const std::map<std::string, const GrammarRules*>& parts = {});

// Throws kInvalidArgument naming the rules if one of them begins with itself.
void reject_left_recursion(const GrammarRules& rules);

}  // namespace prism::llm
