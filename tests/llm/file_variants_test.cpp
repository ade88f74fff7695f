// Compares files that say the same in two ways: with tensors left out and with tensors that change
// nothing, with one key and with another.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "llm/gguf/gguf_writer.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/llm/tokenizer.h"
#include "support/models/architecture_files.h"
#include "support/models/tiny_model.h"
#include "support/models/variants.h"

namespace prism::llm {
namespace {

using test::TinyModel;
using test::Variant;
using test::Variants;

std::vector<float> logits_of(const GgufFile& file) {
  const std::vector<int32_t> tokens = test::some_tokens(19, 30);
  Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 40, DType::f32)});
  const SequencePart all{0, 0, tokens, Wanted::all};
  return model.forward(std::span(&all, 1)).to_vector<float>();
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-4);
}

// Each of the three biases counts by itself.
TEST(FileVariants, BiasesOfQueriesKeysAndValues) {
  TinyModel tiny("qwen2");
  tiny.finish({.bias = true});
  const GgufFile file = tiny.open();
  Variants variants(file);
  const std::vector<float> with_all = logits_of(file);
  for (const char kept : {'q', 'k', 'v'}) {
    Variant without, zero;
    for (const GgufTensor& each : file.tensors())
      for (const char other : {'q', 'k', 'v'})
        if (other != kept && each.name.ends_with(std::string(".attn_") + other + ".bias")) {
          without.without.insert(each.name);
          zero.values[each.name].resize(static_cast<size_t>(each.shape.elements()));
        }
    ASSERT_FALSE(without.without.empty());
    const std::vector<float> found = logits_of(variants.open(without));
    EXPECT_EQ(found, logits_of(variants.open(zero))) << kept;
    EXPECT_NE(found, with_all) << kept;
  }
}

// Files of gpt-oss and codeshell may leave these biases out; codeshell's also the embedding, which
// is then the output matrix.
TEST(FileVariants, GptOssWithoutBiases) {
  TinyModel tiny("gpt-oss");
  tiny.reference.style = test::ReferenceModel::Style::gpt_oss;
  tiny.use_experts(4, 2);
  tiny.set("attention.sliding_window", 7);
  tiny.finish({.bias = true, .sinks = true});
  const GgufFile file = tiny.open();
  Variants variants(file);
  Variant without, zero;
  for (const GgufTensor& each : file.tensors())
    for (const char* name : {".attn_q.bias", ".attn_k.bias", ".attn_v.bias"})
      if (each.name.ends_with(name)) {
        without.without.insert(each.name);
        zero.values[each.name].resize(static_cast<size_t>(each.shape.elements()));
      }
  ASSERT_FALSE(without.without.empty());
  EXPECT_EQ(logits_of(variants.open(without)), logits_of(variants.open(zero)));
}

TEST(FileVariants, CodeShellWithoutBiasesAndEmbedding) {
  TinyModel tiny("llama");
  tiny.finish({});
  const GgufFile file = tiny.open();
  Variants variants(file);
  Variant whole{.architecture = "codeshell"};
  const auto add = [&](const std::string& name, int64_t length, float value) {
    whole.added[name] = {{length}, std::vector<float>(static_cast<size_t>(length), value)};
  };
  const std::string output = "output.weight", embedding = "token_embd.weight";
  whole.values[embedding] = file.tensor(*file.find_tensor(output)).to_vector<float>();
  for (const GgufTensor& each : file.tensors()) {
    const std::string matrix = each.name.substr(0, each.name.rfind(".weight"));
    if (matrix.ends_with("ffn_gate")) whole.without.insert(each.name);
    if (matrix.ends_with("norm") || matrix.ends_with("attn_output") || matrix.ends_with("ffn_up") ||
        matrix.ends_with("ffn_down"))
      add(matrix + ".bias", each.shape[0], 0.1f);
  }
  Variant fewer = whole;
  fewer.values.erase(embedding);
  fewer.without.insert(embedding);
  for (const GgufTensor& each : file.tensors())
    for (const char* name : {".attn_q", ".attn_k", ".attn_v"})
      if (each.name.ends_with(std::string(name) + ".weight"))
        add(each.name.substr(0, each.name.rfind(".weight")) + ".bias", each.shape[0], 0);
  EXPECT_EQ(logits_of(variants.open(fewer)), logits_of(variants.open(whole)));
  fewer.change = [](GgufWriter& to) { to.set("tokenizer.ggml.model", "no_vocab"); };
  const size_t tokens = TokenizerTables::from(variants.open(fewer)).tokens.size();
  EXPECT_EQ(tokens, static_cast<size_t>(tiny.reference.vocabulary));
}

// Values may be longer than keys. The same: keys as long, whose last elements are 0.
TEST(FileVariants, ValuesLongerThanKeys) {
  TinyModel tiny("granite");
  tiny.set("attention.scale", 0.2f);
  tiny.finish({});
  const GgufFile file = tiny.open();
  Variants variants(file);
  constexpr int64_t kKeys = 12;
  const int64_t values = file.integer("granite.attention.value_length");
  const auto keys = [](int64_t length) {
    return [=](GgufWriter& to) {
      to.set("granite.attention.key_length", length);
      to.set("granite.rope.dimension_count", kKeys);
    };
  };
  Variant shorter{.change = keys(kKeys)}, same{.change = keys(values)};
  for (const GgufTensor& each : file.tensors()) {
    if (!each.name.ends_with(".attn_q.weight") && !each.name.ends_with(".attn_k.weight")) continue;
    std::vector<float> zeros = file.tensor(each).to_vector<float>(), cut;
    const int64_t columns = each.shape[1];
    for (int64_t row = 0; row < each.shape[0]; ++row) {
      const auto begin = zeros.begin() + row * columns;
      if (row % values < kKeys)
        cut.insert(cut.end(), begin, begin + columns);
      else
        std::fill(begin, begin + columns, 0.f);
    }
    shorter.without.insert(each.name);
    shorter.added[each.name] = {{each.shape[0] / values * kKeys, columns}, cut};
    same.values[each.name] = zeros;
  }
  expect_near(logits_of(variants.open(shorter)), logits_of(variants.open(same)));
}

// Groups of experts count in every architecture. With as many used experts as a group has, a group
// is chosen whole.
TEST(FileVariants, GroupsOfExperts) {
  TinyModel tiny("llama");
  tiny.use_experts(4, 2);
  tiny.finish({});
  const GgufFile file = tiny.open();
  Variants variants(file);
  const auto with = [&](uint32_t used) {
    return logits_of(variants.open({.change = [=](GgufWriter& to) {
      to.set("llama.expert_group_count", uint32_t{2});
      to.set("llama.expert_group_used_count", used);
    }}));
  };
  const std::vector<float> plain = logits_of(file), all = with(2);
  expect_near(all, plain);
  EXPECT_NE(with(1), plain);
}

// The base of windowed layers: with windows in all layers it is the base of the model.
TEST(FileVariants, BaseOfWindowedLayers) {
  TinyModel tiny("gemma2");
  tiny.reference.style = test::ReferenceModel::Style::gemma;
  tiny.set("attention.sliding_window", 6);
  tiny.finish({.output = false});
  const GgufFile file = tiny.open();
  Variants variants(file);
  const auto with = [&](int32_t pattern, const std::string& key, float base) {
    return logits_of(variants.open({.change = [=](GgufWriter& to) {
      to.set("gemma2.attention.sliding_window_pattern", pattern);
      to.set("gemma2.rope.scaling.type", "linear");
      to.set("gemma2.rope.scaling.factor", 4.f);
      to.set("gemma2.rope." + key, base);
    }}));
  };
  EXPECT_EQ(with(0, "freq_base_swa", 500), with(0, "freq_base", 500));
  EXPECT_NE(with(0, "freq_base_swa", 500), with(0, "freq_base_swa", 700));
  EXPECT_NE(with(2, "freq_base_swa", 500), with(2, "freq_base", 500));
}

// Divisors for long contexts and a factor both count.
TEST(FileVariants, FactorBesideDivisors) {
  TinyModel tiny("llama");
  tiny.finish({});
  const GgufFile file = tiny.open();
  Variants variants(file);
  const auto with = [&](const char* type) {
    return logits_of(variants.open({.change = [=](GgufWriter& to) {
      to.set("llama.rope.scaling.type", type);
      to.set("llama.rope.scaling.factor", 4.f);
    }}));
  };
  EXPECT_EQ(with("longrope"), with("linear"));
  EXPECT_EQ(with("none"), logits_of(file));
}

// Text parts whose layers are those of another architecture.
TEST(FileVariants, ArchitecturesWithTheSameLayers) {
  TinyModel plain("qwen2");
  plain.finish({.bias = true});
  const GgufFile qwen2 = plain.open();
  Variants of_qwen2(qwen2);
  EXPECT_EQ(logits_of(of_qwen2.open({.architecture = "paddleocr"})), logits_of(qwen2));

  TinyModel normed("hunyuan-dense");
  normed.finish({.head_norms = true});
  const GgufFile hunyuan = normed.open();
  Variants of_hunyuan(hunyuan);
  EXPECT_EQ(logits_of(of_hunyuan.open({.architecture = "hunyuan_vl"})), logits_of(hunyuan));

  // Matrices for the positions of images may be there, too. The rows of q, k and v are as many,
  // whatever the heads of k and v.
  TinyModel fused("phi3");
  fused.finish({.joined = true, .output = true});
  const GgufFile phi3 = fused.open();
  Variants of_phi3(phi3);
  Variant vision{.architecture = "cogvlm"};
  vision.added["blk.0.vis_attn_qkv.weight"] = {{3}, {1, 2, 3}};
  const int64_t width = phi3.integer("phi3.embedding_length");
  const int64_t q_rows = phi3.find_tensor("blk.0.attn_output.weight")->shape[1];
  for (const GgufTensor& each : phi3.tensors()) {
    if (!each.name.ends_with(".attn_qkv.weight")) continue;
    const std::vector<float> from = phi3.tensor(each).to_vector<float>();
    std::vector<float> to(static_cast<size_t>(3 * q_rows * width));
    const int64_t rows = (each.shape[0] - q_rows) / 2;
    ASSERT_LT(rows, q_rows);
    std::copy_n(from.begin(), q_rows * width, to.begin());
    for (const int64_t part : {1, 2})
      std::copy_n(from.begin() + (q_rows + (part - 1) * rows) * width, rows * width,
                  to.begin() + part * q_rows * width);
    vision.without.insert(each.name);
    vision.added[each.name] = {{3 * q_rows, width}, to};
  }
  EXPECT_EQ(logits_of(of_phi3.open(vision)), logits_of(phi3));
}

// The output matrix of qwen3tts may have rows for the last tokens alone, which excludes the others.
TEST(FileVariants, CodesOfSpeech) {
  TinyModel tiny("qwen3");
  tiny.finish({.head_norms = true});
  const GgufFile file = tiny.open();
  Variants variants(file);
  Variant variant{.architecture = "qwen3tts"};
  const std::vector<float> plain = logits_of(file);
  EXPECT_EQ(logits_of(variants.open(variant)), plain);
  const std::string name = "output.weight";
  std::vector<float> rows = file.tensor(*file.find_tensor(name)).to_vector<float>();
  const size_t all = static_cast<size_t>(tiny.reference.vocabulary), codes = 9;
  const size_t width = rows.size() / all;
  rows.resize(codes * width);
  variant.without.insert(name);
  variant.added[name] = {{static_cast<int64_t>(codes), static_cast<int64_t>(width)}, rows};
  const std::vector<float> found = logits_of(variants.open(variant));
  ASSERT_EQ(found.size(), plain.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t row = i / all, token = i % all;
    if (token < all - codes)
      EXPECT_EQ(found[i], -std::numeric_limits<float>::infinity());
    else
      EXPECT_NEAR(found[i], plain[row * all + token - (all - codes)], 1e-4);
  }
}

// The rows of heads whose halves are rotated, from those whose adjacent elements are.
std::vector<float> halves_of(const GgufFile& file, const GgufTensor& tensor, int64_t length) {
  const std::vector<float> from = file.tensor(tensor).to_vector<float>();
  std::vector<float> to(from.size());
  const int64_t columns = tensor.shape[1];
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const int64_t in_head = row % length, pair = in_head / 2, half = in_head % 2;
    const int64_t place = row - in_head + half * (length / 2) + pair;
    std::copy_n(from.begin() + row * columns, columns, to.begin() + place * columns);
  }
  return to;
}

TEST(FileVariants, DeepSeekOcrRotatesHalves) {
  TinyModel tiny("llama");
  tiny.use_experts(4, 2);
  tiny.finish({});
  const GgufFile file = tiny.open();
  Variants variants(file);
  Variant variant{.change =
                      [](GgufWriter& to) {
                        to.set("deepseek2-ocr.expert_weights_norm", true);
                        to.set("deepseek2-ocr.expert_shared_count", uint32_t{0});
                        to.set("deepseek2-ocr.rope.dimension_count", uint32_t{0});
                      },
                  .architecture = "deepseek2-ocr"};
  for (const GgufTensor& each : file.tensors())
    if (each.name.ends_with(".attn_q.weight") || each.name.ends_with(".attn_k.weight"))
      variant.values[each.name] = halves_of(file, each, file.integer("llama.attention.key_length"));
  expect_near(logits_of(variants.open(variant)), logits_of(file));
}

// pockettts is starcoder2 without biases of matrices, and rotates adjacent elements.
TEST(FileVariants, PocketTtsRotatesAdjacentElements) {
  TinyModel tiny("llama");
  tiny.finish({});
  const GgufFile file = tiny.open();
  Variants variants(file);
  Variant adjacent{.architecture = "pockettts"};
  const auto zeros = [](Variant& to, const std::string& name, int64_t length, float value) {
    to.added[name] = {{length}, std::vector<float>(static_cast<size_t>(length), value)};
  };
  for (const GgufTensor& each : file.tensors()) {
    const std::string matrix = each.name.substr(0, each.name.rfind(".weight"));
    if (matrix.ends_with("ffn_gate")) adjacent.without.insert(each.name);
    if (matrix.ends_with("norm")) zeros(adjacent, matrix + ".bias", each.shape[0], 0.1f);
  }
  Variant halves = adjacent;
  halves.architecture = "starcoder2";
  for (const GgufTensor& each : file.tensors()) {
    const std::string matrix = each.name.substr(0, each.name.rfind(".weight"));
    if (matrix.ends_with(".attn_q") || matrix.ends_with(".attn_k"))
      halves.values[each.name] = halves_of(file, each, file.integer("llama.attention.key_length"));
    for (const char* name : {"attn_output", "ffn_up", "ffn_down"})
      if (matrix.ends_with(name)) zeros(halves, matrix + ".bias", each.shape[0], 0);
  }
  expect_near(logits_of(variants.open(adjacent)), logits_of(variants.open(halves)));
}

// A count of experts does not make experts, and divisors need something that is rotated.
TEST(FileVariants, WhatOtherArchitecturesHave) {
  TinyModel tiny("qwen3");
  tiny.finish({.head_norms = true});
  const GgufFile qwen3 = tiny.open();
  const auto counted = [](GgufWriter& to) {
    to.set("qwen3.expert_count", uint32_t{4});
    to.set("qwen3.expert_used_count", uint32_t{2});
  };
  EXPECT_EQ(logits_of(Variants(qwen3).open({.change = counted})), logits_of(qwen3));

  TinyModel other("refact");
  other.finish({});
  const GgufFile refact = other.open();
  const int64_t pairs = refact.integer("refact.attention.key_length") / 2;
  Variant divided;
  divided.added["rope_freqs.weight"] = {{pairs}, std::vector<float>(static_cast<size_t>(pairs), 2)};
  EXPECT_EQ(logits_of(Variants(refact).open(divided)), logits_of(refact));
}

// In these files a number in place of the list of windowed layers stands for all of them.
TEST(FileVariants, OneNumberForTheListOfWindowedLayers) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  for (const char* name : {"gemma4-dense", "mimo2-moe", "step35-moe"}) {
    const auto found = std::ranges::find(files, name, &test::ArchitectureFile::name);
    ASSERT_NE(found, files.end()) << name;
    const GgufFile file = GgufFile::open(found->path);
    const std::string prefix = std::string(file.string("general.architecture")) + ".";
    const std::string key = prefix + "attention.sliding_window_pattern";
    const auto layers = static_cast<size_t>(file.integer(prefix + "block_count"));
    for (const uint32_t number : {0, 1, 2}) {
      const auto one = [&](GgufWriter& to) { to.set(key, number); };
      const auto list = [&](GgufWriter& to) {
        to.set(key, std::vector<uint32_t>(layers, number > 0));
      };
      Variants variants(file);
      EXPECT_EQ(logits_of(variants.open({.change = one})),
                logits_of(variants.open({.change = list})))
          << name << " " << number;
    }
  }
}

// The factor of rotations counts in windowed layers, too, even where these are not scaled; in those
// of olmo2 it does not. Pattern 0: all layers are windowed.
TEST(FileVariants, FactorOfRotationsInWindowedLayers) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  for (const char* name : {"gemma3-dense", "olmo2-dense"}) {
    const auto found = std::ranges::find(files, name, &test::ArchitectureFile::name);
    ASSERT_NE(found, files.end()) << name;
    const GgufFile file = GgufFile::open(found->path);
    const std::string prefix = std::string(file.string("general.architecture")) + ".";
    Variants variants(file);
    const auto with = [&](const char* type, float factor) {
      return logits_of(variants.open({.change = [=](GgufWriter& to) {
        to.set(prefix + "attention.sliding_window_pattern", uint32_t{0});
        to.set(prefix + "rope.scaling.type", type);
        to.set(prefix + "rope.scaling.factor", 4.f);
        to.set(prefix + "rope.scaling.attn_factor", factor);
      }}));
    };
    EXPECT_EQ(with("yarn", 1.25f), with("none", 1.25f)) << name;
    const bool counts = std::string(name) != "olmo2-dense";
    EXPECT_EQ(with("yarn", 1.25f) != with("yarn", 1), counts) << name;
  }
}

// Sections of the rotation make glm4 pair halves only if there are two or more.
TEST(FileVariants, SectionsOfTheRotation) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const auto found = std::ranges::find(files, "glm4-dense", &test::ArchitectureFile::name);
  ASSERT_NE(found, files.end());
  const GgufFile file = GgufFile::open(found->path);
  Variants variants(file);
  const auto with = [&](const std::vector<uint32_t>& sections) {
    return logits_of(variants.open({.change = [&](GgufWriter& to) {
      to.set("glm4.rope.dimension_sections", sections);
      if (sections.empty()) to.remove("glm4.rope.dimension_sections");
    }}));
  };
  EXPECT_EQ(with({0, 0, 0, 0}), with({}));
  EXPECT_EQ(with({16, 0, 0, 0}), with({}));
  EXPECT_NE(with({8, 8, 0, 0}), with({}));
}

// Some files state what their architecture has in another way, or always.
TEST(FileVariants, KeysThatAnArchitectureDoesNotRead) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const std::tuple<const char*, const char*, uint32_t> keys[] = {
      {"dots1-moe", "dots1.expert_shared_feed_forward_length", 7},
      {"hunyuan-moe-moe", "hunyuan-moe.expert_feed_forward_length", 48},
      {"hunyuan-moe-moe", "hunyuan-moe.rope.scaling.alpha", 1000},
      {"minimax-m2-moe", "minimax-m2.expert_feed_forward_length", 48},
      {"qwen3next-moe", "qwen3next.expert_gating_func", 2},
      {"qwen35moe-moe", "qwen35moe.expert_gating_func", 2}};
  for (const auto& [name, key, value] : keys) {
    const auto found = std::ranges::find(files, name, &test::ArchitectureFile::name);
    ASSERT_NE(found, files.end()) << name;
    const GgufFile file = GgufFile::open(found->path);
    const auto set = [&, key = key, value = value](GgufWriter& to) { to.set(key, value); };
    EXPECT_EQ(logits_of(Variants(file).open({.change = set})), logits_of(file)) << name;
  }
}

// Experts without a gate are the activation of what would be multiplied by it. Other architectures
// name the missing matrix.
TEST(FileVariants, ExpertsWithoutAGate) {
  TinyModel tiny("llama");
  tiny.use_experts(4, 2);
  tiny.finish({});
  const GgufFile file = tiny.open();
  Variants variants(file);
  Variant without, same;  // the same: what is multiplied by the gate is 1
  for (const GgufTensor& each : file.tensors()) {
    if (!each.name.ends_with(".ffn_gate_exps.weight")) continue;
    const std::string layer = each.name.substr(0, each.name.find(".ffn_gate_exps"));
    const std::string up = layer + ".ffn_up_exps.weight";
    without.without.insert(each.name);
    same.values[each.name] = file.tensor(*file.find_tensor(up)).to_vector<float>();
    same.values[up].resize(same.values[each.name].size());
    same.added[layer + ".ffn_up_exps.bias"] = {
        {each.shape[0], each.shape[1]},
        std::vector<float>(static_cast<size_t>(each.shape[0] * each.shape[1]), 1)};
  }
  ASSERT_FALSE(without.without.empty());
  expect_near(logits_of(variants.open(without)), logits_of(variants.open(same)));
  without.architecture = "bailingmoe2";
  try {
    logits_of(variants.open(without));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("blk.0."), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace prism::llm
