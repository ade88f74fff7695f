// Tests reading hyperparameters from metadata and the errors that name the key.
#include "llm/model/config.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "llm/gguf/gguf_writer.h"
#include "prism/error.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

// The config of a small valid file with these changes applied.
Config config_with(const std::function<void(GgufWriter&)>& change) {
  GgufWriter file;
  file.set("general.architecture", "llama");
  file.set("llama.block_count", 2);
  file.set("llama.embedding_length", 64);
  file.set("llama.context_length", 512);
  file.set("llama.attention.head_count", 4);
  file.set("llama.feed_forward_length", 96);
  const std::vector<float> table(10 * 64);
  change(file);
  file.add_tensor("token_embd.weight", {10, 64}, DType::f32, std::as_bytes(std::span(table)));
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "config.gguf").string();
  file.write(path);
  const GgufFile found = GgufFile::open(path);
  Config config = read_config(found);
  set_norm_epsilon(found, config);
  return config;
}

void expect_error(const std::function<void(GgufWriter&)>& change, const std::string& words) {
  try {
    config_with(change);
    ADD_FAILURE() << "no error that contains " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(Config, WhatIsNotThereFollowsFromTheRest) {
  const Config config = config_with([](GgufWriter&) {});
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.rope_dims, 16);
  EXPECT_EQ(config.vocabulary, 10);
  EXPECT_EQ(config.rope_base, 10000);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::none);
  EXPECT_EQ(config.experts, 0);
}

// Without a length of heads it is the first layer that tells it, and files may hide no positions.
TEST(Config, LengthOfHeadsAndMask) {
  const Config config = config_with([](GgufWriter& file) {
    file.set("llama.attention.head_count", std::vector<int32_t>{2, 4});
    file.set("llama.attention.causal", false);
  });
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_FALSE(config.causal);
  EXPECT_TRUE(config_with([](GgufWriter&) {}).causal);
}

TEST(Config, ScalingsOfRotaryFrequencies) {
  Config config = config_with([](GgufWriter& file) {
    file.set("llama.rope.scaling.type", "yarn");
    file.set("llama.rope.scaling.factor", 4.f);
    file.set("llama.rope.scaling.original_context_length", 128);
  });
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(config.rope_scaling.factor, 4);
  EXPECT_EQ(config.rope_scaling.original_context, 128u);
  config = config_with([](GgufWriter& file) { file.set("llama.rope.scale_linear", 2.f); });
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(config.rope_scaling.factor, 2);
  expect_error([](GgufWriter& file) { file.set("llama.rope.scaling.type", "spiral"); },
               "llama.rope.scaling.type is \"spiral\"");
}

TEST(Config, AListHasOneNumberForEachLayer) {
  const Config config = config_with([](GgufWriter& file) {
    file.set("llama.attention.head_count_kv", std::vector<int32_t>{2, 1});
  });
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.at(0).kv_heads, 2);
  EXPECT_EQ(config.at(1).kv_heads, 1);
  expect_error(
      [](GgufWriter& file) { file.set("llama.attention.head_count_kv", std::vector<int32_t>{2}); },
      "llama.attention.head_count_kv has 1 numbers for 2 layers");
}

TEST(Config, MistakesNameTheKey) {
  const auto removed = [](const char* key) {
    return [key](GgufWriter& file) { file.remove(key); };
  };
  for (const char* key :
       {"general.architecture", "llama.block_count", "llama.embedding_length",
        "llama.context_length", "llama.attention.head_count", "llama.feed_forward_length"})
    expect_error(removed(key), key);
  const auto set = [](const char* key, int64_t value) {
    return [key, value](GgufWriter& file) { file.set(key, value); };
  };
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{1} << 40})
    for (const char* key : {"llama.block_count", "llama.embedding_length", "llama.context_length",
                            "llama.attention.head_count", "llama.feed_forward_length"})
      expect_error(set(key, value), key);
  expect_error(set("llama.attention.head_count_kv", 3), "llama.attention.head_count_kv");
  expect_error(set("llama.attention.head_count", 5), "llama.attention.key_length");
  expect_error(set("llama.attention.value_length", 1 << 15), "llama.attention.value_length");
  expect_error(set("llama.rope.dimension_count", 17), "llama.rope.dimension_count");
  expect_error(set("llama.rope.dimension_count", 18), "llama.rope.dimension_count");
  const auto with_experts = [](GgufWriter& file) {
    static const std::vector<float> router(4 * 64);
    file.add_tensor("blk.0.ffn_gate_inp.weight", {4, 64}, DType::f32,
                    std::as_bytes(std::span(router)));
    file.set("llama.expert_count", 4);
  };
  expect_error(with_experts, "llama.expert_used_count");
  // Files may count experts that they do not have.
  EXPECT_EQ(config_with(set("llama.expert_count", 4)).experts, 0);
  expect_error(set("llama.expert_count", 4000), "llama.expert_count");
  expect_error(set("llama.embedding_length", 32), "token_embd.weight");
  expect_error([](GgufWriter& file) { file.set("llama.block_count", "two"); }, "llama.block_count");
}

TEST(Config, NumbersWithoutSenseNameTheKey) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const char* key : {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base",
                          "llama.rope.scaling.factor", "llama.rope.scaling.yarn_beta_fast",
                          "llama.rope.scaling.yarn_beta_slow", "llama.rope.scaling.attn_factor"})
    for (const float bad : {std::nanf(""), kInfinity, -kInfinity, -1.f, 3e38f})
      expect_error(
          [&](GgufWriter& file) {
            file.set("llama.rope.scaling.type", "yarn");
            file.set(key, bad);
          },
          key);
  expect_error([](GgufWriter& file) { file.set("llama.attention.layer_norm_rms_epsilon", 0.f); },
               "llama.attention.layer_norm_rms_epsilon is 0; it must be above 0");
  expect_error([](GgufWriter& file) { file.set("llama.attention.layer_norm_rms_epsilon", 1.5f); },
               "it must be above 0 and at most 1");
  for (const int64_t bad : {int64_t{-1}, int64_t{1} << 32})
    expect_error(
        [&](GgufWriter& file) { file.set("llama.rope.scaling.original_context_length", bad); },
        "llama.rope.scaling.original_context_length");
}

}  // namespace
}  // namespace prism::llm
