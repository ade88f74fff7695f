// Implements the lazily built automaton of a grammar.
#include "llm/grammar/grammar_automaton.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {
namespace {

using Kind = GrammarSymbol::Kind;

// The limit of parallel parses of one text. Real grammars have a few dozen; each costs memory per
// state.
constexpr size_t kMaximumStacks = 20000;

size_t mix(size_t hash, uint32_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15u ^ (hash >> 29);
}

}  // namespace

size_t GrammarAutomaton::FrameHash::operator()(const Frame& f) const {
  return mix(mix(mix(17, f.symbol), f.count), f.below);
}

size_t GrammarAutomaton::ListHash::operator()(const std::vector<uint32_t>& list) const {
  size_t hash = list.size();
  for (const uint32_t each : list) hash = mix(hash, each);
  return hash;
}

GrammarAutomaton::GrammarAutomaton(std::shared_ptr<const GrammarRules> rules)
    : rules_(std::move(rules)) {
  clear();
  std::vector<uint32_t> first;
  for (const uint32_t at : rules_->rules[rules_->root].alternatives)
    first.push_back(frame({at, 0, kBottom}));
  start_ = close(std::move(first));
}

void GrammarAutomaton::clear() {
  frames_.assign(1, {});  // kBottom
  frame_ids_.clear();
  seen_.assign(1, 0);
  closing_ = 0;
  states_.clear();
  state_ids_.clear();
  intern({}, false);  // kDead
}

uint32_t GrammarAutomaton::frame(const Frame& value) {
  const auto [entry, fresh] = frame_ids_.try_emplace(value, static_cast<uint32_t>(frames_.size()));
  if (fresh) {
    frames_.push_back(value);
    seen_.push_back(0);
  }
  return entry->second;
}

// Does not push a completed frame: tail recursion needs no deeper stack.
uint32_t GrammarAutomaton::after(uint32_t symbol, uint32_t below) {
  return rules_->symbols[symbol].kind == Kind::end ? below : frame({symbol, 0, below});
}

GrammarAutomaton::StateId GrammarAutomaton::intern(std::vector<uint32_t> tops, bool may_end) {
  std::vector<uint32_t> key = tops;
  key.push_back(may_end ? 1 : 0);
  const auto [entry, fresh] =
      state_ids_.try_emplace(std::move(key), static_cast<StateId>(states_.size()));
  if (fresh) {
    State& state = states_.emplace_back();
    state.tops = std::move(tops);
    state.may_end = may_end;
    state.ascii.fill(entry->second == kDead ? kDead : kUnknown);
    find_borders(state);
  }
  return entry->second;
}

GrammarAutomaton::StateId GrammarAutomaton::close(std::vector<uint32_t> open) {
  ++closing_;
  std::vector<uint32_t> tops;
  bool may_end = false;
  size_t visited = 0;
  while (!open.empty()) {
    const uint32_t id = open.back();
    open.pop_back();
    if (id == kBottom) {
      may_end = true;
      continue;
    }
    if (seen_[id] == closing_) continue;
    seen_[id] = closing_;
    if (++visited > kMaximumStacks)
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("grammar: one text can be parsed in more than {} ways at once; make "
                              "its rules less ambiguous",
                              kMaximumStacks));
    const Frame top = frames_[id];
    const GrammarSymbol& symbol = rules_->symbols[top.symbol];
    switch (symbol.kind) {
      case Kind::end:
        open.push_back(top.below);
        break;
      case Kind::characters:
        tops.push_back(id);
        break;
      case Kind::rule: {
        const uint32_t next = after(top.symbol + 1, top.below);
        for (const uint32_t at : rules_->rules[symbol.index].alternatives)
          open.push_back(after(at, next));
        break;
      }
      case Kind::repeat: {
        if (top.count >= symbol.minimum) open.push_back(after(top.symbol + 1, top.below));
        if (top.count >= symbol.maximum) break;
        // Without a maximum the count saturates at the minimum, which closes the loop.
        const uint32_t count =
            symbol.maximum == kNoMaximum ? std::min(top.count + 1, symbol.minimum) : top.count + 1;
        const uint32_t again = frame({top.symbol, count, top.below});
        for (const uint32_t at : rules_->rules[symbol.index].alternatives)
          open.push_back(after(at, again));
        break;
      }
    }
  }
  work_ += visited;
  std::ranges::sort(tops);
  return intern(std::move(tops), may_end);
}

void GrammarAutomaton::find_borders(State& state) {
  std::vector<uint32_t> sets;  // many stacks wait for the same few sets
  for (const uint32_t top : state.tops) sets.push_back(rules_->symbols[frames_[top].symbol].index);
  std::ranges::sort(sets);
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  state.borders = {0};
  for (const uint32_t set : sets)
    for (const CodeRange& range : rules_->sets[set]) {
      state.borders.push_back(range.first);
      state.borders.push_back(range.last + 1);
    }
  std::ranges::sort(state.borders);
  state.borders.erase(std::unique(state.borders.begin(), state.borders.end()), state.borders.end());
  work_ += state.borders.size();
}

GrammarAutomaton::StateId GrammarAutomaton::step_slowly(StateId from, uint32_t code) {
  const std::vector<uint32_t>& borders = states_[from].borders;
  const auto border = std::prev(std::ranges::upper_bound(borders, code));
  const uint32_t interval = *border;
  const uint32_t end = std::next(border) == borders.end() ? kLastCodePoint + 1 : *std::next(border);
  const auto known = states_[from].others.find(interval);
  if (known != states_[from].others.end()) return known->second;
  std::vector<uint32_t> next;
  work_ += states_[from].tops.size();
  for (const uint32_t top : states_[from].tops) {
    const Frame at = frames_[top];
    if (contains(rules_->sets[rules_->symbols[at.symbol].index], interval))
      next.push_back(after(at.symbol + 1, at.below));
  }
  const StateId result = next.empty() ? kDead : close(std::move(next));
  State& state = states_[from];  // interning may have moved the states
  state.others.emplace(interval, result);
  for (uint32_t c = interval; c < std::min(end, 128u); ++c) state.ascii[c] = result;
  return result;
}

bool GrammarAutomaton::may_follow(StateId from, uint32_t first, uint32_t last) const {
  for (const uint32_t top : states_[from].tops) {
    const CodeSet& set = rules_->sets[rules_->symbols[frames_[top].symbol].index];
    const auto range = std::ranges::lower_bound(set, first, {}, &CodeRange::last);
    if (range != set.end() && range->first <= last) return true;
  }
  return false;
}

GrammarAutomaton::StateId GrammarAutomaton::forget_but(StateId state) {
  const std::vector<uint32_t> tops = states_[state].tops;
  const bool may_end = states_[state].may_end;
  const std::vector<Frame> old = std::move(frames_);
  clear();
  std::vector<uint32_t> moved(old.size(), UINT32_MAX);
  moved[kBottom] = kBottom;
  const auto move = [&](uint32_t top) {
    std::vector<uint32_t> path;  // iterative, because a stack may be deep
    for (uint32_t at = top; moved[at] == UINT32_MAX; at = old[at].below) path.push_back(at);
    for (; !path.empty(); path.pop_back()) {
      const Frame& f = old[path.back()];
      moved[path.back()] = frame({f.symbol, f.count, moved[f.below]});
    }
    return moved[top];
  };
  std::vector<uint32_t> kept;
  for (const uint32_t top : tops) kept.push_back(move(top));
  std::vector<uint32_t> first;
  for (const uint32_t at : rules_->rules[rules_->root].alternatives)
    first.push_back(frame({at, 0, kBottom}));
  start_ = close(std::move(first));
  std::ranges::sort(kept);
  return tops.empty() && !may_end ? kDead : intern(std::move(kept), may_end);
}

}  // namespace prism::llm
