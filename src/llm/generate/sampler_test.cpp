// Tests whole sampler chains: allowed tokens, frequencies, and reproducibility by seed.
#include "prism/llm/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <random>

#include "prism/error.h"

namespace prism::llm {
namespace {

SamplerOptions plain() {
  SamplerOptions options;
  options.top_k = 0, options.top_p = 1, options.min_p = 0, options.temperature = 1;
  return options;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double each : probabilities) logits.push_back(static_cast<float>(std::log(each)));
  return logits;
}

// Checks that the frequencies of 40,000 draws are within five standard deviations of the expected
// ones. By chance one run in a million would fail; the seed is fixed.
void expect_shares(SamplerOptions options, const std::vector<float>& logits,
                   const std::vector<double>& expected) {
  options.seed = 20;
  Sampler sampler(options);
  constexpr int kDraws = 40000;
  std::vector<int> counts(expected.size(), 0);
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(sampler.sample(logits))];
  for (size_t i = 0; i < expected.size(); ++i) {
    const double bound = 5 * std::sqrt(expected[i] * (1 - expected[i]) / kDraws);
    EXPECT_NEAR(counts[i] / double(kDraws), expected[i], bound) << "token " << i;
  }
}

TEST(Sampler, DrawsByProbability) {
  expect_shares(plain(), logs({0.5, 0.1, 0.3, 0.1}), {0.5, 0.1, 0.3, 0.1});
}

TEST(Sampler, TemperatureSharpens) {
  SamplerOptions options = plain();
  options.temperature = 0.5f;  // probabilities squared
  expect_shares(options, logs({0.5, 0.2, 0.3}), {0.25 / 0.38, 0.04 / 0.38, 0.09 / 0.38});
}

TEST(Sampler, TruncationsRenormalise) {
  SamplerOptions options = plain();
  options.top_k = 2;
  expect_shares(options, logs({0.5, 0.1, 0.3, 0.1}), {0.625, 0, 0.375, 0});
  options = plain();
  options.top_p = 0.75f;
  expect_shares(options, logs({0.5, 0.1, 0.3, 0.1}), {0.625, 0, 0.375, 0});
  options = plain();
  options.min_p = 0.5f;
  expect_shares(options, logs({0.5, 0.1, 0.3, 0.1}), {0.625, 0, 0.375, 0});
}

TEST(Sampler, XtcActsAsOftenAsItSays) {
  SamplerOptions options = plain();
  options.xtc_probability = 0.25f, options.xtc_threshold = 0.2f;
  // Always: 0.5 0.3 0.2. A quarter of the draws exclude token 0: 0.6 0.4.
  expect_shares(options, logs({0.5, 0.305, 0.195}),
                {0.75 * 0.5, 0.75 * 0.305 + 0.25 * 0.61, 0.75 * 0.195 + 0.25 * 0.39});
}

TEST(Sampler, BiasAddsToTheLogit) {
  SamplerOptions options = plain();
  options.logit_bias = {{1, std::log(3.0f)}, {77, 1.0f}};
  expect_shares(options, logs({0.5, 0.25, 0.25}), {0.5 / 1.5, 0.75 / 1.5, 0.25 / 1.5});
  options.logit_bias = {{1, -std::numeric_limits<float>::infinity()}};
  expect_shares(options, logs({0.5, 0.25, 0.25}), {2.0 / 3, 0, 1.0 / 3});
}

TEST(Sampler, MirostatKeepsTheSurpriseNearTau) {
  // A Zipf vocabulary of 5,000 tokens: unfiltered draws have a surprise of about 8.4 bits.
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = -std::log(static_cast<float>(i + 1));
  for (const int version : {1, 2}) {
    SamplerOptions options = plain();
    options.mirostat = version, options.mirostat_tau = 4, options.seed = 3;
    Sampler sampler(options);
    double surprise = 0;
    constexpr int kDraws = 4000;
    // The surprise of drawn tokens among the kept ones: mu settles where its mean is tau.
    std::map<int32_t, int> counts;
    for (int i = 0; i < kDraws; ++i) ++counts[sampler.sample(logits)];
    for (const auto& [token, count] : counts) {
      const double share = double(count) / kDraws;
      surprise -= share * std::log2(share);
    }
    EXPECT_NEAR(surprise, 4, 0.35) << "mirostat " << version;
  }
}

TEST(Sampler, PenaltiesSeeWhatWasAccepted) {
  SamplerOptions options = plain();
  options.temperature = 0;
  options.penalties.presence = 5;
  Sampler sampler(options);
  const std::vector<float> logits = {1, 3, 2};
  std::vector<int32_t> chosen;
  for (int i = 0; i < 4; ++i) {
    chosen.push_back(sampler.sample(logits));
    sampler.accept(chosen.back());
  }
  EXPECT_EQ(chosen, (std::vector<int32_t>{1, 2, 0, 1}));
  sampler.reset();
  EXPECT_EQ(sampler.sample(logits), 1);
}

TEST(Sampler, TheSeedDecidesAndResetRepeats) {
  std::mt19937 random(5);
  std::vector<float> logits(1000);
  for (float& each : logits) each = static_cast<float>(random() % 1000) * 0.004f;
  const auto text = [&](Sampler& sampler) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(sampler.sample(logits));
    return tokens;
  };
  SamplerOptions options = plain();
  options.seed = 1;
  Sampler a(options), b(options);
  options.seed = 1 + (uint64_t{1} << 32);
  Sampler c(options);
  const auto first = text(a);
  EXPECT_EQ(first, text(b));
  EXPECT_NE(first, text(c));
  EXPECT_NE(first, text(a));
  a.reset();
  EXPECT_EQ(first, text(a));
}

TEST(Sampler, OnlyAllowedTokensAreDrawn) {
  const std::vector<float> logits(130, 0.0f);
  const std::vector<uint64_t> allowed = {0, uint64_t{1} << 63, 2};  // 127 and 129
  for (const float temperature : {0.0f, 1.0f}) {
    SamplerOptions options;
    options.temperature = temperature;
    Sampler sampler(options);
    std::map<int32_t, int> counts;
    for (int i = 0; i < 200; ++i) ++counts[sampler.sample(logits, allowed)];
    EXPECT_EQ(counts.size(), temperature == 0 ? 1u : 2u);
    EXPECT_GT(counts[127], 0);
  }
  Sampler sampler;
  EXPECT_THROW(sampler.sample(logits, std::vector<uint64_t>{0, 0, 0}), Error);
}

TEST(Sampler, LogitsThatAreNotFiniteAreErrors) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  SamplerOptions greedy = plain();
  greedy.temperature = 0;
  for (const SamplerOptions& options : {plain(), greedy}) {
    Sampler sampler(options);
    EXPECT_THROW(sampler.sample(std::vector<float>(5, std::nanf(""))), Error);
    EXPECT_THROW(sampler.sample(std::vector<float>(5, -kInfinity)), Error);
    EXPECT_THROW(sampler.sample(std::vector<float>{1, std::nanf(""), 2}), Error);
    EXPECT_THROW(sampler.sample(std::vector<float>{1, 2, kInfinity}), Error);
    EXPECT_THROW(sampler.sample({}), Error);
    EXPECT_EQ(sampler.sample(std::vector<float>{-kInfinity, 2, -kInfinity}), 1);  // excluded tokens
  }
}

TEST(Sampler, TheDistributionIsWhatIsDrawnFrom) {
  SamplerOptions options = plain();
  options.top_k = 3;
  Sampler sampler(options);
  const auto shares = sampler.distribution(logs({0.4, 0.1, 0.3, 0.2}));
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[0].first, 0);
  EXPECT_EQ(shares[2].first, 3);
  EXPECT_NEAR(shares[1].second, 0.3 / 0.9, 1e-6);
}

TEST(Sampler, ChoicesAreThoseOfTheLastToken) {
  SamplerOptions options = plain();
  options.top_k = 3;
  Sampler sampler(options);
  const int32_t token = sampler.sample(logs({0.4, 0.1, 0.3, 0.2, 0}));
  const auto choices = sampler.choices();
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[1].first, 2);
  EXPECT_NEAR(choices[1].second, 0.3 / 0.9, 1e-6);
  EXPECT_TRUE(std::ranges::any_of(choices, [&](const auto& each) { return each.first == token; }));
  options.top_k = 0;
  Sampler all(options);
  all.sample(logs({0.5, 0, 0.5}));
  EXPECT_EQ(all.choices().size(), 2u);  // not the one that never comes
  options.temperature = 0;
  Sampler greedy(options);
  greedy.sample(logs({0.4, 0.6}));
  EXPECT_EQ(greedy.choices(), (std::vector<std::pair<int32_t, double>>{{1, 1.0}}));
}

TEST(Sampler, KnowsWhatADeviceCanDo) {
  EXPECT_TRUE(Sampler().is_simple());
  EXPECT_FALSE(Sampler().is_plain_greedy());
  SamplerOptions options;
  options.temperature = 0;
  EXPECT_TRUE(Sampler(options).is_plain_greedy());
  options.penalties.presence = 1;
  EXPECT_FALSE(Sampler(options).is_simple());
  options = {};
  options.stages = parse_sampler_stages("temperature;top_k");
  EXPECT_FALSE(Sampler(options).is_simple());
}

TEST(Sampler, WrongOptionsAreNamed) {
  SamplerOptions options;
  options.top_p = 1.5f;
  try {
    Sampler sampler(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("top-p is 1.5"), std::string::npos) << error.what();
  }
  EXPECT_THROW(parse_sampler_stages("top_k,topp"), Error);
  std::string many = "top_k";
  for (int i = 0; i < 32; ++i) many += ",top_k";
  EXPECT_THROW(parse_sampler_stages(many), Error);
}

TEST(Sampler, NoOptionMayBeNanOrInfinite) {
  const std::vector<float SamplerOptions::*> floats = {&SamplerOptions::temperature,
                                                       &SamplerOptions::dynamic_range,
                                                       &SamplerOptions::dynamic_exponent,
                                                       &SamplerOptions::top_p,
                                                       &SamplerOptions::min_p,
                                                       &SamplerOptions::typical_p,
                                                       &SamplerOptions::top_n_sigma,
                                                       &SamplerOptions::xtc_probability,
                                                       &SamplerOptions::xtc_threshold,
                                                       &SamplerOptions::mirostat_tau,
                                                       &SamplerOptions::mirostat_eta};
  for (const float wrong : {NAN, INFINITY, -INFINITY}) {
    std::vector<SamplerOptions> all;
    for (float SamplerOptions::*const each : floats) all.emplace_back().*each = wrong;
    all.emplace_back().penalties.repeat = wrong;
    all.emplace_back().penalties.presence = wrong;
    all.emplace_back().penalties.frequency = wrong;
    all.emplace_back().dry.multiplier = wrong;
    all.emplace_back().dry.base = wrong;
    if (wrong != -INFINITY) all.emplace_back().logit_bias = {{1, wrong}};  // -inf: never
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_THROW(check_sampler_options(all[i]), Error) << i << " " << wrong;
  }
  SamplerOptions never;
  never.logit_bias = {{1, -INFINITY}};
  EXPECT_NO_THROW(check_sampler_options(never));
  never.logit_bias = {{-1, 0.0f}};
  EXPECT_THROW(check_sampler_options(never), Error);
}

TEST(Sampler, TinyTemperaturesAreGreedy) {
  const std::vector<float> logits = {1, 30, 29.9f, -30, 30.5f, 2};
  for (const float temperature : {1e-7f, 1e-20f, 1e-37f, 1e-39f, 1e-45f}) {
    SamplerOptions options;
    options.temperature = temperature;
    Sampler sampler(options);
    EXPECT_TRUE(sampler.is_plain_greedy()) << temperature;
    EXPECT_EQ(sampler.sample(logits), 4) << temperature;
    options.typical_p = 0.99f;
    options.dynamic_range = temperature / 2;
    Sampler other(options);
    EXPECT_EQ(other.sample(logits), 4) << temperature;
  }
}

TEST(Sampler, LargeVocabulariesAreQuick) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2.5f);
  std::vector<float> logits(152064);
  for (float& each : logits) each = normal(random);
  Sampler usual;
  SamplerOptions options = plain();
  options.top_p = 0.9f;
  Sampler top_p_alone(options);
  const auto ms = [&](Sampler& sampler) {
    double best = 1e9;  // best of several runs: the machine may be busy
    for (int i = 0; i < 7; ++i) {
      const std::clock_t start = std::clock();
      sampler.sample(logits);
      best = std::min(best, double(std::clock() - start) * 1e3 / CLOCKS_PER_SEC);
    }
    return best;
  };
  RecordProperty("usual_ms", std::to_string(ms(usual)));
  EXPECT_LT(ms(usual), 4);         // 0.15 ms when optimised
  EXPECT_LT(ms(top_p_alone), 80);  // 5 ms when optimised
}

}  // namespace
}  // namespace prism::llm
