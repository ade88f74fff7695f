// Implements code point sets and the check for left recursion.
#include "llm/grammar/grammar_rules.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "prism/error.h"

namespace prism::llm {
namespace {

constexpr CodeRange kSurrogates = {0xD800, 0xDFFF};

CodeSet joined(CodeSet ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  CodeSet result;
  for (const CodeRange& each : ranges) {
    if (!result.empty() && each.first <= result.back().last + 1)
      result.back().last = std::max(result.back().last, each.last);
    else
      result.push_back(each);
  }
  return result;
}

CodeSet others(const CodeSet& ranges) {
  CodeSet result;
  uint32_t next = 0;
  for (const CodeRange& each : ranges) {
    if (each.first > next) result.push_back({next, each.first - 1});
    next = each.last + 1;
  }
  if (next <= kLastCodePoint) result.push_back({next, kLastCodePoint});
  return result;
}

using Kind = GrammarSymbol::Kind;

// The rules that match the empty text. Each alternative counts its non-nullable symbols; a rule
// found nullable decrements the counts of its uses, so the work is linear in the grammar.
std::vector<bool> nullable_rules(const GrammarRules& rules) {
  struct Use {
    uint32_t rule, alternative;
  };
  std::vector<std::vector<Use>> uses(rules.rules.size());
  std::vector<std::vector<uint32_t>> waiting(rules.rules.size());
  std::vector<bool> nullable(rules.rules.size(), false);
  std::vector<uint32_t> found;
  const auto mark = [&](uint32_t rule) {
    if (!nullable[rule]) nullable[rule] = true, found.push_back(rule);
  };
  for (uint32_t r = 0; r < rules.rules.size(); ++r) {
    const auto& alternatives = rules.rules[r].alternatives;
    waiting[r].assign(alternatives.size(), 0);
    for (uint32_t a = 0; a < alternatives.size(); ++a) {
      for (uint32_t at = alternatives[a]; rules.symbols[at].kind != Kind::end; ++at) {
        const GrammarSymbol& symbol = rules.symbols[at];
        if (symbol.kind == Kind::repeat && symbol.minimum == 0) continue;
        ++waiting[r][a];
        if (symbol.kind != Kind::characters) uses[symbol.index].push_back({r, a});
      }
      if (waiting[r][a] == 0) mark(r);
    }
  }
  while (!found.empty()) {
    const uint32_t rule = found.back();
    found.pop_back();
    for (const Use& use : uses[rule])
      if (--waiting[use.rule][use.alternative] == 0) mark(use.rule);
  }
  return nullable;
}

}  // namespace

CodeSet make_code_set(CodeSet ranges, bool inverted) {
  CodeSet set = joined(std::move(ranges));
  if (inverted) set = others(set);
  CodeSet gap = others(set);
  gap.push_back(kSurrogates);
  return others(joined(std::move(gap)));
}

bool contains(const CodeSet& set, uint32_t code) {
  const auto after = std::ranges::upper_bound(set, code, {}, &CodeRange::first);
  return after != set.begin() && std::prev(after)->last >= code;
}

void reject_left_recursion(const GrammarRules& rules) {
  const std::vector<bool> nullable = nullable_rules(rules);
  std::vector<std::vector<uint32_t>> begins(rules.rules.size());  // rules each rule may begin with
  for (size_t r = 0; r < rules.rules.size(); ++r) {
    for (uint32_t at : rules.rules[r].alternatives) {
      for (; rules.symbols[at].kind != Kind::end; ++at) {
        const GrammarSymbol& symbol = rules.symbols[at];
        if (symbol.kind == Kind::characters) break;
        if (symbol.maximum != 0 || symbol.kind == Kind::rule) begins[r].push_back(symbol.index);
        const bool skippable =
            nullable[symbol.index] || (symbol.kind == Kind::repeat && symbol.minimum == 0);
        if (!skippable) break;
      }
    }
  }
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(rules.rules.size(), kNew);
  struct Visit {
    uint32_t rule;
    size_t next;
  };
  for (uint32_t start = 0; start < rules.rules.size(); ++start) {
    if (state[start] != kNew) continue;
    std::vector<Visit> path = {{start, 0}};
    state[start] = kOpen;
    while (!path.empty()) {
      Visit& top = path.back();
      if (top.next == begins[top.rule].size()) {
        state[top.rule] = kDone;
        path.pop_back();
        continue;
      }
      const uint32_t next = begins[top.rule][top.next++];
      if (state[next] == kOpen) {
        std::vector<std::string> names;
        auto from = std::ranges::find(path, next, &Visit::rule);
        for (; from != path.end(); ++from) names.push_back(rules.rules[from->rule].name);
        names.push_back(rules.rules[next].name);
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("grammar: the rule \"{}\" begins with itself ({}), which never "
                                "ends; write it as a repetition, such as item (\",\" item)*",
                                names.front(), fmt::join(names, " -> ")));
      }
      if (state[next] == kNew) {
        state[next] = kOpen;
        path.push_back({next, 0});
      }
    }
  }
}

}  // namespace prism::llm
