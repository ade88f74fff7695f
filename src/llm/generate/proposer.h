// Proposes the next tokens of texts, which the model then checks in one batch (speculation.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "llm/model/decode.h"

namespace prism::llm {

struct ProposalRequest {
  int64_t text = 0;                 // its id, for as long as it grows
  std::span<const int32_t> tokens;  // the prompt and the tokens generated since; at least one
  int64_t count = 0;                // tokens wanted, at most
  Sampling sampling = {};           // how the model chooses them
};

struct Proposal {
  std::vector<int32_t> tokens;
  // Proposals of one grade are about equally likely to be right; acceptance is measured for each.
  size_t grade = 0;
};

class Proposer {
 public:
  static constexpr size_t kGrades = 3;

  virtual ~Proposer() = default;
  // One proposal for each request, in order; empty where there is nothing to propose.
  virtual std::vector<Proposal> propose(std::span<const ProposalRequest> requests) = 0;
  // Whether a proposal costs next to nothing, so that it can be made and then dropped.
  virtual bool is_free() const = 0;
  // The measured time of a proposed token; texts of one call share it.
  virtual double seconds_per_token() const { return 0; }
  virtual void forget(int64_t text) = 0;  // the text has ended
};

}  // namespace prism::llm
