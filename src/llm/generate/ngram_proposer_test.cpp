// Tests look-up of earlier token sequences.
#include "llm/generate/ngram_proposer.h"

#include <numeric>

#include <gtest/gtest.h>

namespace prism::llm {
namespace {

using Tokens = std::vector<int32_t>;

Proposal propose(NgramProposer& proposer, const Tokens& tokens, int64_t count, int64_t text = 0) {
  const ProposalRequest request{text, tokens, count};
  return proposer.propose(std::span(&request, 1)).at(0);
}

Tokens numbers(int32_t first, int32_t count) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(NgramProposer, ProposesWhatFollowedTheLastTokens) {
  NgramProposer proposer;
  EXPECT_EQ(propose(proposer, {1, 2, 3, 4, 5, 6, 1, 2, 3}, 2).tokens, (Tokens{4, 5}));
  EXPECT_EQ(propose(proposer, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4}, 1).tokens, Tokens{5});
  // Two equal tokens are too few, and a text that never repeats has no proposal.
  EXPECT_EQ(propose(proposer, {7, 8, 9, 5, 8, 9}, 3, 1).tokens, Tokens());
  EXPECT_EQ(propose(proposer, numbers(0, 100), 3, 2).tokens, Tokens());
  EXPECT_EQ(propose(proposer, {1}, 3, 3).tokens, Tokens());
  EXPECT_EQ(propose(proposer, {1, 2, 3, 4, 1, 2, 3}, 0, 4).tokens, Tokens());
}

TEST(NgramProposer, ALongerRepetitionComesFirst) {
  NgramProposer proposer;
  // 10 ... 15 is followed by 16 at first; later 13, 14, 15 alone is followed by 99.
  const Tokens tokens = joined(joined(numbers(10, 8), {13, 14, 15, 99, 50}), numbers(10, 6));
  const Proposal found = propose(proposer, tokens, 2);
  EXPECT_EQ(found.tokens, (Tokens{16, 17}));
  // With only the three tokens in common, the last occurrence counts, and it is a worse grade.
  const Proposal shorter = propose(proposer, joined(tokens, {60, 13, 14, 15}), 1);
  EXPECT_EQ(shorter.tokens, Tokens{60});
  EXPECT_GT(shorter.grade, found.grade);
}

TEST(NgramProposer, ACopyRunsOnIntoItself) {
  NgramProposer proposer;
  EXPECT_EQ(propose(proposer, {5, 6, 5, 6, 5, 6}, 5).tokens, (Tokens{5, 6, 5, 6, 5}));
  EXPECT_EQ(propose(proposer, {4, 4, 4, 4}, 3, 1).tokens, (Tokens{4, 4, 4}));
}

TEST(NgramProposer, FollowsATextThatGrowsShrinksAndEnds) {
  NgramProposer proposer;
  Tokens tokens = joined(numbers(0, 40), numbers(10, 3));
  for (int32_t next = 13; next < 30; ++next) {
    EXPECT_EQ(propose(proposer, tokens, 1).tokens, Tokens{next});
    tokens.push_back(next);
  }
  // The context was shifted: what is left repeats nothing.
  EXPECT_EQ(propose(proposer, numbers(10, 20), 2).tokens, Tokens());
  EXPECT_EQ(propose(proposer, joined(numbers(10, 20), numbers(12, 4)), 2).tokens, (Tokens{16, 17}));
  // A shift that was not seen, because the text has grown since, can only lose proposals.
  const Tokens other = numbers(500, 60);
  EXPECT_EQ(propose(proposer, other, 2).tokens, Tokens());
  proposer.forget(0);
  EXPECT_EQ(propose(proposer, numbers(10, 3), 2).tokens, Tokens());
}

}  // namespace
}  // namespace prism::llm
