// Implements Grammar and GrammarMatcher: token masks from a walk over the vocabulary trie, cached
// by state.
#include "prism/llm/grammar.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "llm/grammar/grammar_automaton.h"
#include "llm/grammar/grammar_rules.h"
#include "llm/grammar/json_schema.h"
#include "llm/grammar/vocabulary_trie.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

// The work limit of the automaton for one mask. A mask of 150,000 tokens inside a JSON string takes
// some hundreds, since its states repeat; a grammar that needs this many is too ambiguous to be
// useful.
constexpr uint64_t kMaximumWork = 5'000'000;
constexpr size_t kMaximumStates = 30000;  // at least 0.6 KiB each
constexpr size_t kMaximumMasks = 256;     // 19 KiB each for 150,000 tokens

// The position of a text: a state, and possibly the first bytes of a character.
struct Place {
  GrammarAutomaton::StateId state = GrammarAutomaton::kDead;
  PartialCharacter partial;
};

// Advances and returns true if the byte may come next. Otherwise the place must not be used again.
bool put(GrammarAutomaton& automaton, Place& place, uint8_t byte) {
  if (byte < 0x80 && place.partial.missing == 0) {  // the common case
    place.state = automaton.step(place.state, byte);
    return place.state != GrammarAutomaton::kDead;
  }
  PartialCharacter partial = place.partial;
  if (!partial.put(byte)) return false;
  if (partial.missing > 0) {
    if (!automaton.may_follow(place.state, partial.first, partial.last)) return false;
    place.partial = partial;
    return true;
  }
  const auto next = automaton.step(place.state, partial.first);
  if (next == GrammarAutomaton::kDead) return false;
  place = {next, {}};
  return true;
}

}  // namespace

Grammar Grammar::parse(std::string_view text, std::string_view root,
                       const std::map<std::string, Grammar>& parts) {
  std::map<std::string, const GrammarRules*> rules;
  for (const auto& [name, part] : parts) rules[name] = &part.rules();
  Grammar grammar;
  grammar.rules_ = std::make_shared<const GrammarRules>(parse_grammar(text, root, rules));
  return grammar;
}

Grammar Grammar::from_json_schema(std::string_view schema) {
  return parse(json_schema_to_grammar(schema));
}

bool Grammar::matches(std::string_view text) const {
  GrammarAutomaton automaton(rules_);
  Place place{automaton.start(), {}};
  for (const char c : text) {
    if (!put(automaton, place, static_cast<uint8_t>(c))) return false;
    if (automaton.states() > kMaximumStates) place.state = automaton.forget_but(place.state);
  }
  return place.partial.missing == 0 && automaton.may_end(place.state);
}

struct GrammarMatcher::State {
  State(const Grammar& grammar, std::shared_ptr<const VocabularyTrie> words,
        std::vector<int32_t> ends)
      : automaton(grammar.shared_rules()),
        vocabulary(std::move(words)),
        end_tokens(std::move(ends)) {
    place.state = automaton.start();
  }

  std::vector<uint64_t> make_mask() {
    std::vector<uint64_t> mask((vocabulary->tokens() + 63) / 64, 0);
    const auto allow = [&](int32_t token) {
      mask[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
    };
    const uint64_t work_before = automaton.work();
    const std::span<const VocabularyTrie::Node> nodes = vocabulary->nodes();
    std::vector<Place> path(vocabulary->depth() + 1);
    path[0] = place;
    for (uint32_t i = 0; i < nodes.size();) {
      const VocabularyTrie::Node& node = nodes[i];
      Place at = path[node.depth - 1u];
      if (!put(automaton, at, node.byte)) {
        i = node.end;
        continue;
      }
      path[node.depth] = at;
      for (int32_t token = node.token; token >= 0; token = vocabulary->next_same(token))
        allow(token);
      ++i;
      if (automaton.work() - work_before > kMaximumWork)
        throw Error(ErrorCode::kNotSupported,
                    fmt::format("grammar: computing the allowed tokens took more than {} "
                                "steps; make its rules less ambiguous",
                                kMaximumWork));
    }
    const bool end = may_end();
    for (const int32_t token : end_tokens) {
      if (token < 0 || static_cast<size_t>(token) >= vocabulary->tokens()) continue;
      if (end)
        allow(token);
      else
        mask[static_cast<size_t>(token) / 64] &= ~(uint64_t{1} << (token % 64));
    }
    return mask;
  }

  bool may_end() const { return place.partial.missing == 0 && automaton.may_end(place.state); }

  void shrink() {
    if (automaton.states() <= kMaximumStates) return;
    place.state = automaton.forget_but(place.state);
    masks.clear();
  }

  GrammarAutomaton automaton;
  std::shared_ptr<const VocabularyTrie> vocabulary;
  std::vector<int32_t> end_tokens;
  Place place;
  std::unordered_map<GrammarAutomaton::StateId, std::vector<uint64_t>> masks;
  std::vector<uint64_t> partial_mask;  // inside a character: rare, so not cached
};

GrammarMatcher::GrammarMatcher(const Grammar& grammar,
                               std::shared_ptr<const VocabularyTrie> vocabulary,
                               std::vector<int32_t> end_tokens)
    : state_(std::make_unique<State>(grammar, std::move(vocabulary), std::move(end_tokens))) {}
GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;

std::span<const uint64_t> GrammarMatcher::allowed() {
  State& s = *state_;
  s.shrink();
  if (s.place.partial.missing > 0) return s.partial_mask = s.make_mask();
  const auto known = s.masks.find(s.place.state);
  if (known != s.masks.end()) return known->second;
  if (s.masks.size() >= kMaximumMasks) s.masks.clear();
  return s.masks[s.place.state] = s.make_mask();
}

bool GrammarMatcher::accept(int32_t token) {
  State& s = *state_;
  if (std::ranges::find(s.end_tokens, token) != s.end_tokens.end()) return s.may_end();
  if (token < 0 || static_cast<size_t>(token) >= s.vocabulary->tokens()) return false;
  const std::string& text = s.vocabulary->text(token);
  return !text.empty() && accept_text(text);
}

bool GrammarMatcher::accept_text(std::string_view bytes) {
  State& s = *state_;
  Place place = s.place;
  for (const char c : bytes)
    if (!put(s.automaton, place, static_cast<uint8_t>(c))) return false;
  s.place = place;
  s.shrink();
  return true;
}

bool GrammarMatcher::may_end() const { return state_->may_end(); }

bool GrammarMatcher::must_end() const {
  return state_->may_end() && !state_->automaton.has_next(state_->place.state);
}

void GrammarMatcher::reset() { state_->place = {state_->automaton.start(), {}}; }

}  // namespace prism::llm
