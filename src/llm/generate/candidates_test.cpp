// Tests each filter against double arithmetic on a full sort.
#include "llm/generate/candidates.h"
#include "support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace prism::llm {
namespace {

struct Reference {
  int32_t id;
  double logit, p;
};

class CandidatesTest : public ::testing::Test {
 protected:
  // Normally distributed logits; some are equal, some minus infinity, some NaN.
  std::vector<float> logits(size_t count, double spread) {
    std::normal_distribution<float> normal(0, static_cast<float>(spread));
    std::vector<float> all(count);
    for (float& each : all) each = normal(random_);
    if (count > 10) {
      all[count / 2] = all[count / 3];
      all[count / 4] = -std::numeric_limits<float>::infinity();
      all[count / 5] = std::numeric_limits<float>::quiet_NaN();
    }
    return all;
  }
  // Most likely first.
  static std::vector<Reference> reference(const std::vector<float>& logits) {
    std::vector<Reference> all;
    for (size_t i = 0; i < logits.size(); ++i)
      if (std::isfinite(logits[i])) all.push_back({static_cast<int32_t>(i), logits[i], 0});
    std::ranges::sort(all, [](const Reference& a, const Reference& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
    double sum = 0;
    for (Reference& each : all) sum += each.p = std::exp(each.logit - all[0].logit);
    for (Reference& each : all) each.p /= sum;
    return all;
  }
  static Candidates all_of(const std::vector<float>& logits) {
    Candidates candidates;
    take_all(logits, &candidates);
    return candidates;
  }
  static std::vector<int32_t> ids(Candidates candidates) {
    sort_front(candidates, candidates.list.size());
    std::vector<int32_t> result;
    for (const Candidate& each : candidates.list) result.push_back(each.id);
    return result;
  }
  static std::vector<int32_t> first(const std::vector<Reference>& all, size_t count) {
    std::vector<int32_t> result;
    for (size_t i = 0; i < std::min(count, all.size()); ++i) result.push_back(all[i].id);
    return result;
  }
  const uint32_t seed_ = test_seed();
  std::mt19937 random_{seed_};
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};

TEST_F(CandidatesTest, TopKIsTheFrontOfTheFullSort) {
  for (const size_t count : {1, 2, 11, 997, 40009})
    for (const size_t k : {1, 2, 40, 997, 100000}) {
      const auto values = logits(count, 3);
      const auto expected = first(reference(values), k);
      Candidates taken;
      taken.list.assign(7, {-5, 1e9f});  // leftovers of an earlier call must not matter
      take_top_k(values, k, &taken);
      EXPECT_EQ(ids(taken), expected) << count << " " << k;
      EXPECT_EQ(taken.sorted, taken.list.size());
      Candidates kept = all_of(values);
      keep_top_k(kept, k);
      EXPECT_EQ(ids(kept), expected) << count << " " << k;
    }
}

TEST_F(CandidatesTest, TopKOfEqualLogitsTakesTheLowestIds) {
  const std::vector<float> values(1000, 1.5f);
  Candidates taken;
  take_top_k(values, 3, &taken);
  EXPECT_EQ(ids(taken), (std::vector<int32_t>{0, 1, 2}));
}

TEST_F(CandidatesTest, AscendingLogitsAreNoTrap) {
  std::vector<float> values(50000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Candidates taken;
  take_top_k(values, 5, &taken);
  EXPECT_EQ(ids(taken), (std::vector<int32_t>{49999, 49998, 49997, 49996, 49995}));
}

TEST_F(CandidatesTest, TopPKeepsTheFewestThatReachIt) {
  for (const size_t count : {1, 2, 13, 5003})
    for (const double spread : {0.01, 1.0, 4.0})
      for (const double p : {1e-6, 0.3, 0.9, 0.999999, 1.0}) {
        const auto values = logits(count, spread);
        const auto all = reference(values);
        Candidates kept = all_of(values);
        keep_top_p(kept, p);
        const size_t n = kept.list.size();
        ASSERT_GE(n, 1u);
        EXPECT_EQ(ids(kept), first(all, n));
        double sum = 0;
        for (size_t i = 0; i < n; ++i) sum += all[i].p;
        EXPECT_GE(sum, p - 1e-9);
        if (n > 1) {
          EXPECT_LT(sum - all[n - 1].p, p + 1e-9);
        }
      }
}

TEST_F(CandidatesTest, MinPKeepsTheShareOfTheLikeliest) {
  for (const size_t count : {1, 2, 13, 5003})
    for (const bool sorted : {false, true})
      for (const double p : {0.0, 1e-5, 0.05, 0.5, 1.0}) {
        const auto values = logits(count, 2);
        const auto all = reference(values);
        Candidates kept = all_of(values);
        if (sorted) sort_front(kept, kept.list.size());
        keep_min_p(kept, p);
        const size_t n = kept.list.size();
        ASSERT_GE(n, 1u);
        EXPECT_EQ(ids(kept), first(all, n));
        EXPECT_GE(all[n - 1].p, all[0].p * p * (1 - 1e-5));
        if (n < all.size()) {
          EXPECT_LT(all[n].p, all[0].p * p * (1 + 1e-5));
        }
      }
}

TEST_F(CandidatesTest, TypicalKeepsTheSurprisesNearestToTheEntropy) {
  for (const size_t count : {1, 2, 13, 3001})
    for (const double p : {0.1, 0.5, 0.95}) {
      const auto values = logits(count, 2);
      auto all = reference(values);
      double entropy = 0;
      for (const Reference& each : all) entropy -= each.p * std::log(each.p);
      const auto distance = [&](const Reference& each) {
        return std::abs(-std::log(each.p) - entropy);
      };
      Candidates kept = all_of(values);
      keep_typical(kept, p);
      std::map<int32_t, bool> is_kept;
      for (const Candidate& each : kept.list) is_kept[each.id] = true;
      double sum = 0, worst_kept = 0, worst_p = 0, best_dropped = 1e300;
      for (const Reference& each : all) {
        if (is_kept[each.id]) {
          sum += each.p;
          if (distance(each) >= worst_kept) worst_kept = distance(each), worst_p = each.p;
        } else {
          best_dropped = std::min(best_dropped, distance(each));
        }
      }
      EXPECT_LE(worst_kept, best_dropped + 1e-9);
      if (kept.list.size() < all.size()) {
        EXPECT_GE(sum, p - 1e-9);
      }
      if (kept.list.size() > 1) {
        EXPECT_LT(sum - worst_p, p + 1e-9);
      }
    }
}

TEST_F(CandidatesTest, TopNSigmaKeepsAFewStandardDeviations) {
  for (const double n : {0.5, 1.0, 2.0}) {
    const auto values = logits(4001, 3);
    const auto all = reference(values);
    double mean = 0, variance = 0;
    for (const Reference& each : all) mean += each.logit / static_cast<double>(all.size());
    for (const Reference& each : all)
      variance += (each.logit - mean) * (each.logit - mean) / static_cast<double>(all.size());
    const double bar = all[0].logit - n * std::sqrt(variance);
    Candidates kept = all_of(values);
    keep_top_n_sigma(kept, n);
    const size_t count = kept.list.size();
    EXPECT_EQ(ids(kept), first(all, count));
    EXPECT_GE(all[count - 1].logit, bar - 1e-4);
    EXPECT_LT(all[count].logit, bar + 1e-4);
  }
}

TEST_F(CandidatesTest, ExcludingTopChoicesLeavesTheLeastOfThem) {
  // Probabilities 0.4, 0.3, 0.2 and 0.1 in shuffled order.
  const std::vector<float> values = {std::log(0.2f), std::log(0.4f), std::log(0.1f),
                                     std::log(0.3f)};
  for (const auto& [threshold, expected] :
       std::vector<std::pair<double, std::vector<int32_t>>>{{0.05, {2}},
                                                            {0.15, {0, 2}},
                                                            {0.25, {3, 0, 2}},
                                                            {0.35, {1, 3, 0, 2}},
                                                            {0.6, {1, 3, 0, 2}}}) {
    Candidates kept = all_of(values);
    drop_top_choices(kept, threshold);
    EXPECT_EQ(ids(kept), expected) << threshold;
  }
}

TEST_F(CandidatesTest, DynamicTemperatureFollowsTheEntropy) {
  for (const double spread : {0.1, 1.0, 5.0}) {
    const auto values = logits(503, spread);
    const auto all = reference(values);
    double entropy = 0;
    for (const Reference& each : all) entropy -= each.p * std::log(each.p);
    const double share = entropy / std::log(static_cast<double>(all.size()));
    const double t = 0.3 + (1.7 - 0.3) * std::pow(share, 1.5);
    Candidates scaled = all_of(values);
    apply_dynamic_temperature(scaled, 0.3, 1.7, 1.5);
    for (const Candidate& each : scaled.list) {
      const double before = values[static_cast<size_t>(each.id)];
      EXPECT_NEAR(each.logit, before / t, 1e-4 * (1 + std::abs(before / t)));
    }
  }
}

TEST_F(CandidatesTest, TemperatureZeroKeepsTheLikeliest) {
  const auto values = logits(301, 2);
  Candidates kept = all_of(values);
  apply_temperature(kept, 0);
  EXPECT_EQ(ids(kept), first(reference(values), 1));
}

TEST_F(CandidatesTest, LogSumExpIsExact) {
  const std::vector<float> values = {1000.0f, 1001.0f, 999.0f};
  const double expected = 1000 + std::log(1 + std::exp(1.0) + std::exp(-1.0));
  EXPECT_NEAR(log_sum_exp(values), expected, 1e-9);
}

}  // namespace
}  // namespace prism::llm
