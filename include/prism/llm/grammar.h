// Output that keeps to a grammar: which tokens may come next, and where the text may end.
//
//   const Grammar grammar = Grammar::parse(R"(root ::= "yes" | "no")");
//   GrammarMatcher matcher(grammar, vocabulary, {2});
//   const int32_t token = sampler.sample(logits, matcher.allowed());
//   matcher.accept(token);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

struct GrammarRules;   // a grammar as data
class VocabularyTrie;  // the texts of a vocabulary as a tree

// Copies share the rules.
class Grammar {
 public:
  // GBNF (docs/llm.md has its forms). Throws kInvalidArgument with line and column.
  static Grammar parse(std::string_view text, std::string_view root = "root");
  // What a JSON schema describes. Throws kInvalidArgument and kNotSupported naming the place.
  static Grammar from_json_schema(std::string_view schema);
  const GrammarRules& rules() const { return *rules_; }
  const std::shared_ptr<const GrammarRules>& shared_rules() const { return rules_; }

  // Whether the whole text is one of the grammar's.
  bool matches(std::string_view text) const;

 private:
  std::shared_ptr<const GrammarRules> rules_;
};

// One text on its way through a grammar. Not for several threads at once.
class GrammarMatcher {
 public:
  // end_tokens are allowed where the text may end.
  GrammarMatcher(const Grammar& grammar, std::shared_ptr<const VocabularyTrie> vocabulary,
                 std::vector<int32_t> end_tokens);
  ~GrammarMatcher();
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;

  // A bit a token; valid until the next call. Throws kNotSupported for a grammar with so many ways
  // to read one text that the work has no sensible bound.
  std::span<const uint64_t> allowed();
  // Whether the token may come next; the matcher goes on only then. An end token changes nothing.
  bool accept(int32_t token);
  bool accept_text(std::string_view bytes);
  bool may_end() const;   // the text so far is one of the grammar's
  bool must_end() const;  // and nothing can follow it
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::llm
