// Grammars that constrain output: which tokens may come next, and where the text may end.
//
//   const Grammar grammar = Grammar::parse(R"(root ::= "yes" | "no")");
//   GrammarMatcher matcher(grammar, vocabulary, {2});
//   const int32_t token = sampler.sample(logits, matcher.allowed());
//   matcher.accept(token);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace prism::llm {

struct GrammarRules;   // a grammar as data
class VocabularyTrie;  // the vocabulary as a prefix tree

// Copies share the rules.
class Grammar {
 public:
  // GBNF (see docs/llm.md). The text may use `parts` like rules of these names. Throws
  // kInvalidArgument with line and column.
  static Grammar parse(std::string_view text, std::string_view root = "root",
                       const std::map<std::string, Grammar>& parts = {});
  // A grammar for a JSON schema. Throws kInvalidArgument and kNotSupported naming the location.
  static Grammar from_json_schema(std::string_view schema);
  const GrammarRules& rules() const { return *rules_; }
  const std::shared_ptr<const GrammarRules>& shared_rules() const { return rules_; }

  // Whether the grammar accepts the whole text.
  bool matches(std::string_view text) const;

 private:
  std::shared_ptr<const GrammarRules> rules_;
};

// The state of one text within a grammar. Not thread-safe.
class GrammarMatcher {
 public:
  // end_tokens are allowed where the text may end.
  GrammarMatcher(const Grammar& grammar, std::shared_ptr<const VocabularyTrie> vocabulary,
                 std::vector<int32_t> end_tokens);
  ~GrammarMatcher();
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;

  // One bit per token; valid until the next call. Throws kNotSupported if the grammar is so
  // ambiguous that the work has no reasonable bound.
  std::span<const uint64_t> allowed();
  // Advances and returns true if the token may come next. An end token changes nothing.
  bool accept(int32_t token);
  bool accept_text(std::string_view bytes);
  bool may_end() const;   // the grammar accepts the text so far
  bool must_end() const;  // the same, and nothing can follow it
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::llm

#pragma GCC visibility pop
