// Tests the choice of proposals by acceptance and step times.
#include "llm/generate/speculation.h"

#include <gtest/gtest.h>

namespace prism::llm {
namespace {

StepTimes line(double first, double row, int64_t most = 64) {
  StepTimes times;
  for (int64_t rows = 1; rows <= most; ++rows)
    times.learn(rows, first + row * static_cast<double>(rows - 1));
  return times;
}

TEST(StepTimes, EstimatesBetweenAndBeyond) {
  StepTimes times;
  EXPECT_FALSE(times.knows(1));
  times.learn(2, 1.0);
  times.learn(6, 3.0);
  EXPECT_TRUE(times.knows(2));
  EXPECT_FALSE(times.knows(3));
  EXPECT_DOUBLE_EQ(times.seconds(2), 1.0);
  EXPECT_DOUBLE_EQ(times.seconds(1), 1.0);
  EXPECT_DOUBLE_EQ(times.seconds(4), 2.0);
  EXPECT_DOUBLE_EQ(times.seconds(8), 4.0);
}

TEST(StepTimes, FollowsChangesAndForgetsOldTimes) {
  StepTimes times;
  times.learn(8, 1.0);
  times.learn(1, 1.0);
  times.learn(1, 100.0);  // one outlier
  EXPECT_LT(times.seconds(1), 1.5);
  for (int i = 0; i < 300; ++i) times.learn(1, 2.0);
  EXPECT_NEAR(times.seconds(1), 2.0, 0.01);
  EXPECT_FALSE(times.knows(8));
}

TEST(ChooseCounts, MoreRowsHaveToPay) {
  // A row more costs as much as a step: nothing pays.
  EXPECT_EQ(choose_counts(std::vector<Offer>{{8, 0.9}}, line(1, 1), 0, 64)[0], 0);
  // Rows cost nothing: all pay.
  EXPECT_EQ(choose_counts(std::vector<Offer>{{8, 0.9}}, line(1, 0), 0, 64)[0], 8);
  EXPECT_EQ(choose_counts(std::vector<Offer>{{8, 0.9}}, line(1, 0), 0, 5)[0], 4);
  EXPECT_EQ(choose_counts(std::vector<Offer>{{0, 0.9}}, line(1, 0), 0, 64)[0], 0);
  // The best number by the formula for expected tokens, (1 - r^(k+1)) / (1 - r) / (1 + k / 10).
  EXPECT_EQ(choose_counts(std::vector<Offer>{{15, 0.5}}, line(1, 0.1), 0, 64)[0], 2);
  EXPECT_EQ(choose_counts(std::vector<Offer>{{15, 0.8}}, line(1, 0.1), 0, 64)[0], 6);
  EXPECT_EQ(choose_counts(std::vector<Offer>{{15, 0.05}}, line(1, 0.1), 0, 64)[0], 0);
  // What a proposal costs counts too.
  EXPECT_EQ(choose_counts(std::vector<Offer>{{15, 0.8}}, line(1, 0.1), 0.8, 64)[0], 0);
}

TEST(ChooseCounts, TextsShareAStep) {
  const std::vector<Offer> offers = {{4, 0.9}, {0, 0.9}, {4, 0.1}, {2, 0.8}};
  const std::vector<int64_t> counts = choose_counts(offers, line(1, 0.1), 0, 64);
  EXPECT_EQ(counts, (std::vector<int64_t>{4, 0, 0, 2}));
  // The likeliest come first if rows are few.
  EXPECT_EQ(choose_counts(offers, line(1, 0.1), 0, 6), (std::vector<int64_t>{2, 0, 0, 0}));
}

TEST(Acceptance, TriesAgainLaterAndLater) {
  Acceptance acceptance;
  const double first = acceptance.rate();
  for (int i = 0; i < 10; ++i) acceptance.learn(4, 4);
  EXPECT_GT(acceptance.rate(), 0.95);
  for (int i = 0; i < 20; ++i) acceptance.learn(4, 0);
  EXPECT_LT(acceptance.rate(), 0.1);
  int pause = 0, longer = 0;
  for (; acceptance.rate() < first; ++pause) acceptance.skip();
  for (int i = 0; i < 10; ++i) acceptance.learn(4, 0);
  for (; acceptance.rate() < first; ++longer) acceptance.skip();
  EXPECT_EQ(longer, 2 * pause);
}

// Proposes the numbers that follow the last token.
class Counting : public Proposer {
 public:
  explicit Counting(bool is_free, bool* forgot = nullptr) : is_free_(is_free), forgot_(forgot) {}
  std::vector<Proposal> propose(std::span<const ProposalRequest> requests) override {
    std::vector<Proposal> proposals;
    for (const ProposalRequest& each : requests) {
      proposals.emplace_back();
      for (int32_t i = 1; i <= each.count; ++i)
        proposals.back().tokens.push_back(each.tokens.back() + i);
    }
    return proposals;
  }
  bool is_free() const override { return is_free_; }
  void forget(int64_t) override {
    if (forgot_) *forgot_ = true;
  }

 private:
  bool is_free_;
  bool* forgot_;
};

TEST(Speculation, SwitchesItselfOffAndOnAgain) {
  for (const bool is_free : {true, false}) {
    Speculation speculation(std::make_unique<Counting>(is_free));
    const std::vector<int32_t> tokens = {1, 2, 3};
    const ProposalRequest request{7, tokens, 6};
    const auto propose = [&] { return speculation.propose(std::span(&request, 1), 64); };
    EXPECT_TRUE(propose().empty());  // the time of a plain step is not known
    for (const int64_t rows : {1, 2, 4, 8})
      speculation.learn_step(rows, 1 + 0.05 * static_cast<double>(rows));
    const Speculation::Proposals first = propose();
    ASSERT_TRUE(first.contains(7));
    EXPECT_EQ(first.at(7).front(), 4);
    EXPECT_TRUE(speculation.pays(std::span(&request, 1), 64));
    int checks = 0, steps = 0;
    for (; steps < 2000; ++steps) {
      const Speculation::Proposals now = propose();
      if (now.empty()) {
        speculation.learn_step(1, 1.05);
        continue;
      }
      ++checks;
      speculation.learn(7, std::ssize(now.at(7)), 0);
    }
    // Never right: few steps are wasted, but some are tried later.
    EXPECT_GT(checks, 3);
    EXPECT_LT(checks, 120);
    // Right from now on: it is on again after the pause at most.
    int plain = 0;
    for (int i = 0; i < 1000; ++i) {
      const Speculation::Proposals now = propose();
      if (now.empty()) {
        ++plain;
        speculation.learn_step(1, 1.05);
      } else {
        const int64_t count = std::ssize(now.at(7));
        speculation.learn(7, count, count);
        speculation.learn_step(1 + count, 1.05 + 0.05 * static_cast<double>(count));
      }
    }
    EXPECT_LT(plain, 600);
  }
}

TEST(Speculation, TextsWithoutProposalsAreLeftOut) {
  bool forgot = false;
  Speculation speculation(std::make_unique<Counting>(true, &forgot), SpeculationPolicy::always);
  const std::vector<int32_t> tokens = {1, 2, 3};
  const std::vector<ProposalRequest> requests = {{1, tokens, 0}, {2, tokens, 3}};
  const Speculation::Proposals proposals = speculation.propose(requests, 64);
  EXPECT_EQ(proposals.size(), 1u);
  EXPECT_EQ(proposals.at(2), (std::vector<int32_t>{4, 5, 6}));
  speculation.forget(2);
  EXPECT_TRUE(forgot);
}

}  // namespace
}  // namespace prism::llm
