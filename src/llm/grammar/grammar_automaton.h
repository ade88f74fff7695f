// A grammar as a lazily built automaton: interned sets of stacks with their transitions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "llm/grammar/grammar_rules.h"
#include "llm/tokenizer/partial_character.h"

namespace prism::llm {

// A state is a set of stacks: every parse of the text so far. Texts with the same continuations
// share a state, so loops return to states with known transitions, and a walk over a vocabulary is
// mostly table lookups.
class GrammarAutomaton {
 public:
  using StateId = uint32_t;
  static constexpr StateId kDead = 0;  // the text cannot be parsed

  explicit GrammarAutomaton(std::shared_ptr<const GrammarRules> rules);

  StateId start() const { return start_; }
  StateId step(StateId from, uint32_t code) {
    if (code < 128) {
      const StateId known = states_[from].ascii[code];
      if (known != kUnknown) return known;
    }
    return step_slowly(from, code);
  }
  // Whether some character of the range can follow.
  bool may_follow(StateId from, uint32_t first, uint32_t last) const;
  bool may_end(StateId state) const { return states_[state].may_end; }
  bool has_next(StateId state) const { return !states_[state].tops.empty(); }

  size_t states() const { return states_.size(); }
  uint64_t work() const { return work_; }  // stacks and intervals visited so far
  // Drops every state but one, which gets a new id; called when there are too many.
  StateId forget_but(StateId state);

 private:
  static constexpr StateId kUnknown = UINT32_MAX;
  static constexpr uint32_t kBottom = 0;  // the stack below the first frame

  // A stack frame: the next symbol to match, its repetition count, and the frame below.
  struct Frame {
    uint32_t symbol = 0, count = 0, below = kBottom;
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  struct FrameHash {
    size_t operator()(const Frame& f) const;
  };
  struct ListHash {
    size_t operator()(const std::vector<uint32_t>& list) const;
  };
  struct State {
    std::vector<uint32_t> tops;  // frames waiting for a character set, ascending
    bool may_end = false;
    std::array<StateId, 128> ascii;
    std::unordered_map<uint32_t, StateId> others;  // by the first code point of an interval
    std::vector<uint32_t> borders;                 // starts of intervals of equivalent characters
  };

  void clear();
  uint32_t frame(const Frame& frame);
  uint32_t after(uint32_t symbol, uint32_t below);  // the frame at the symbol, or the one below
  StateId intern(std::vector<uint32_t> tops, bool may_end);
  // The state of all continuations of these frames that consume no character.
  StateId close(std::vector<uint32_t> frames);
  StateId step_slowly(StateId from, uint32_t code);
  void find_borders(State& state);

  std::shared_ptr<const GrammarRules> rules_;
  std::vector<Frame> frames_;
  std::unordered_map<Frame, uint32_t, FrameHash> frame_ids_;
  std::vector<State> states_;
  std::unordered_map<std::vector<uint32_t>, StateId, ListHash> state_ids_;
  std::vector<uint32_t> seen_;  // by frame: the last closure that visited it
  uint32_t closing_ = 0;
  uint64_t work_ = 0;
  StateId start_ = kDead;
};

}  // namespace prism::llm
