// Proposes the tokens that a smaller model chooses, with the settings and random numbers of the
// text, so that both models often choose the same token even when they sample.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "llm/generate/proposer.h"
#include "llm/model/placed_model.h"
#include "prism/llm/gguf.h"
#include "prism/llm/language_model.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

// Throws kInvalidArgument, naming the first difference, unless every token id that both have stands
// for the same text.
void check_same_vocabulary(const Tokenizer& model, const Tokenizer& draft);

class DraftModelProposer : public Proposer {
 public:
  // options: as for the model that checks; its slots are the texts at once. Throws what
  // check_same_vocabulary and loading throw.
  DraftModelProposer(GgufFile file, const LoadOptions& options, const Tokenizer& model);

  std::vector<Proposal> propose(std::span<const ProposalRequest> requests) override;
  bool is_free() const override { return false; }
  double seconds_per_token() const override { return seconds_per_token_; }
  void forget(int64_t text) override;

 private:
  struct Text {
    int32_t slot = 0;
    std::vector<int32_t> cached;  // tokens whose keys and values are in the cache
  };
  // A text with everything but its last token in the cache, or null if that needs more tokens than
  // `left`, which it reduces.
  Text* caught_up(const ProposalRequest& request, int64_t& left);
  Text* find_or_place(int64_t text);

  GgufFile file_;
  PlacedModel placed_;
  int64_t vocabulary_ = 0;  // tokens that both models know
  std::unique_ptr<DecodeLoop> loop_;
  std::vector<bool> is_free_slot_;
  std::map<int64_t, Text> texts_;
  double seconds_per_token_ = 0;
};

}  // namespace prism::llm
