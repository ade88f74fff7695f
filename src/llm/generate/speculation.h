// Speculation: decides which proposed tokens the model checks in a step, so that it computes
// several tokens of a text in one batch where that is faster.
//
// A step computes the logits of a text's last token and of its proposals. The text then chooses its
// tokens row by row, by its own sampler and random numbers, as it would without speculation, and
// stops at the first token that differs from the proposal. So a proposal x is accepted with the
// probability p(x) that the sampler gives it, and a rejected one is replaced by a draw from
// p without x: rejection sampling against a proposal of one token. What is more, the token is the
// one that the same seed gives without speculation; only rounding can differ, because batches of
// other sizes may run other kernels.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "llm/generate/proposer.h"
#include "llm/generate/step_times.h"

namespace prism::llm {

// The share of proposed tokens that a text accepts, measured with more weight on the last ones.
class Acceptance {
 public:
  double rate() const { return accepted_ / tried_; }
  // A check of proposals: `accepted` were right, then one was wrong if accepted < proposed.
  void learn(int64_t proposed, int64_t accepted);
  // Proposals were not checked because that does not pay. After a while they get another chance,
  // later and later.
  void skip();

 private:
  static constexpr double kFirstAccepted = 1.4, kFirstTried = 2;  // what a new text is trusted with
  static constexpr int64_t kFirstPause = 32, kLongestPause = 512;  // steps
  double accepted_ = kFirstAccepted, tried_ = kFirstTried;
  int64_t skipped_ = 0, pause_ = kFirstPause;
};

// What a text could have checked.
struct Offer {
  int64_t available = 0;  // proposed tokens
  double rate = 0;        // of acceptance
};
// The numbers of proposed tokens that give the most tokens per second when all offers share a step
// of at most `most_rows` rows; all 0 if a step without proposals is best. proposal_seconds: what a
// proposed token costs before it is checked.
std::vector<int64_t> choose_counts(std::span<const Offer> offers, const StepTimes& times,
                                   double proposal_seconds, int64_t most_rows);

enum class SpeculationPolicy : uint8_t {
  measured,  // checks the proposals that pay
  always,    // checks all of them
};

class Speculation {
 public:
  explicit Speculation(std::unique_ptr<Proposer> proposer,
                       SpeculationPolicy policy = SpeculationPolicy::measured)
      : proposer_(std::move(proposer)), policy_(policy) {}
  static constexpr int64_t kMostProposed = 15;  // for one text and step

  // Proposals by text, for texts of which all are decoded in one step; texts without are absent.
  using Proposals = std::map<int64_t, std::vector<int32_t>>;
  Proposals propose(std::span<const ProposalRequest> texts, int64_t most_rows);
  // Whether propose() would probably give any; cheap.
  bool pays(std::span<const ProposalRequest> texts, int64_t most_rows);

  void learn(int64_t text, int64_t proposed, int64_t accepted);  // after propose()
  void learn_step(int64_t rows, double seconds) { times_.learn(rows, seconds); }
  void forget(int64_t text);  // it has ended

 private:
  struct Text {
    std::array<Acceptance, Proposer::kGrades> acceptance;
    size_t grade = 0;  // of its last proposal
  };
  struct Choice {
    std::vector<Proposal> proposals;  // of a free proposer
    std::vector<int64_t> counts;
  };
  Choice choose(std::span<const ProposalRequest> texts, int64_t most_rows);

  std::unique_ptr<Proposer> proposer_;
  SpeculationPolicy policy_;
  std::map<int64_t, Text> texts_;
  StepTimes times_;
};

}  // namespace prism::llm
