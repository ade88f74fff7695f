// Proposes what followed the last tokens where they occurred before in the same text: the prompt or
// the answer so far. Good for answers that quote or edit their input.
#pragma once

#include <array>
#include <map>
#include <unordered_map>

#include "llm/generate/proposer.h"

namespace prism::llm {

class NgramProposer : public Proposer {
 public:
  std::vector<Proposal> propose(std::span<const ProposalRequest> requests) override;
  bool is_free() const override { return true; }
  void forget(int64_t text) override { texts_.erase(text); }

 private:
  // Lengths of the sequences that are looked up, the longest first, each a grade of its own. Two
  // tokens recur in any prose ("of the"); three are mostly a repetition.
  static constexpr std::array<size_t, kGrades> kLengths = {12, 6, 3};

  // For each length, where a sequence last occurred: its hash, and the position after it.
  struct Index {
    std::array<std::unordered_map<uint64_t, size_t>, kGrades> ends;
    size_t indexed = 0;  // sequences that end before or at this position are in `ends`

    void add(std::span<const int32_t> tokens);
    Proposal find(std::span<const int32_t> tokens, size_t count) const;
  };
  std::map<int64_t, Index> texts_;
};

}  // namespace prism::llm
