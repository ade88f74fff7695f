// Tests every architecture with a tiny random model on every device, against plain float64 loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "llm/architectures/architecture.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "support/devices/devices.h"
#include "support/models/tiny_model.h"

namespace prism::llm {
namespace {

using test::expect_close;
using test::ReferenceModel;
using test::some_tokens;
using test::TinyModel;
using Style = ReferenceModel::Style;

// Checks a text in one batch, and its end token by token after a prefill. With small blocks,
// windowed layers give up some of theirs.
void check(TinyModel& tiny, double bound = 2e-4) {
  const GgufFile file = tiny.open();
  const std::vector<int32_t> tokens = some_tokens(23, tiny.reference.vocabulary);
  const std::vector<double> wanted = tiny.reference.logits(tokens);
  const auto width = static_cast<size_t>(tiny.reference.vocabulary);
  for (const Device& device : test::every_device()) {
    Model model =
        Model::load(file, {.placement = place_on(file, device, 40, DType::f32), .cache_block = 4});
    const SequencePart all{0, 0, tokens, Wanted::all};
    expect_close(model.forward(std::span(&all, 1)).to_vector<float>(), wanted, bound,
                 device.id() + " in one batch");
    model.prefill(0, 0, std::span(tokens).first(20));
    for (size_t t = 20; t < tokens.size(); ++t) {
      const SequencePart next{0, static_cast<int32_t>(t), std::span(tokens).subspan(t, 1)};
      expect_close(model.forward(std::span(&next, 1)).to_vector<float>(),
                   std::span(wanted).subspan(t * width, width), bound,
                   device.id() + " token " + std::to_string(t));
    }
  }
}

TEST(Architectures, Llama) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  // Divisors of the rotary frequencies, as in files for long contexts.
  std::vector<float> divisors;
  for (size_t i = 0; i < 16; ++i) {
    divisors.push_back(1 + static_cast<float>(i) / 4);
    tiny.reference.frequencies[i] /= static_cast<double>(divisors[i]);
  }
  tiny.file.add_tensor("rope_freqs.weight", {16}, DType::f32, std::as_bytes(std::span(divisors)));
  tiny.finish({.output = false});
  check(tiny);
}

TEST(Architectures, CachesOfFewerBits) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  const GgufFile file = tiny.open();
  const std::vector<int32_t> tokens = some_tokens(23, tiny.reference.vocabulary);
  const std::vector<double> wanted = tiny.reference.logits(tokens);
  const std::pair<ElementType, double> bounds[] = {{DType::f16, 4e-3}, {BlockType::q8_0, 0.06}};
  for (const Device& device : test::every_device()) {
    for (const auto& [type, bound] : bounds) {
      Model model = Model::load(file, {.placement = place_on(file, device, 40, type)});
      model.prefill(0, 0, std::span(tokens).first(22));
      const SequencePart last{0, 22, std::span(tokens).last(1)};
      expect_close(model.forward(std::span(&last, 1)).to_vector<float>(),
                   std::span(wanted).last(50), bound, device.id() + " " + type.name());
    }
  }
}

TEST(Architectures, LongContext) {
  constexpr int kTokens = 4096;
  TinyModel tiny("llama");
  ReferenceModel& r = tiny.reference;
  r.adjacent = true;
  r.layers = 1, r.width = 32, r.heads = 2, r.kv_heads = 1, r.dim = 16, r.rope_dims = 16,
  r.wide = 32;
  r.score_scale = 0.25;
  tiny.use_frequencies(10000);
  tiny.finish({});
  const GgufFile file = tiny.open();
  const std::vector<int32_t> tokens = some_tokens(kTokens, r.vocabulary);
  const std::vector<double> wanted = r.logits(tokens);
  for (const Device& device : test::every_device()) {
    Model model = Model::load(file, {.placement = place_on(file, device, kTokens, DType::f32)});
    model.prefill(0, 0, std::span(tokens).first(kTokens - 2));
    for (size_t t = kTokens - 2; t < kTokens; ++t) {
      const SequencePart next{0, static_cast<int32_t>(t), std::span(tokens).subspan(t, 1)};
      expect_close(model.forward(std::span(&next, 1)).to_vector<float>(),
                   std::span(wanted).subspan(t * 50, 50), 2e-4,
                   device.id() + " token " + std::to_string(t));
    }
  }
}

TEST(Architectures, LlamaWithExperts) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.use_experts(5, 2);
  tiny.finish({});
  check(tiny);
}

TEST(Architectures, NanbeigeRunsItsLayersTwice) {
  for (const bool skips_norm : {false, true}) {
    TinyModel tiny("nanbeige");
    tiny.reference.adjacent = true;
    tiny.reference.loops = 2;
    tiny.reference.norm_between_loops = !skips_norm;
    tiny.set("num_loops", 2);
    tiny.set("skip_loop_final_norm", skips_norm);
    tiny.finish({});
    check(tiny);
  }
}

// Norms of heads are layer norms, and logits of image tokens are the least number.
TEST(Architectures, Chameleon) {
  constexpr size_t kFirst = 4, kAfter = 8196;
  TinyModel tiny("chameleon");
  ReferenceModel& r = tiny.reference;
  r.adjacent = true;
  r.layer_head_norms = true;
  r.layers = 1, r.width = 32, r.vocabulary = 8200;
  tiny.finish({.head_norms = true});
  const GgufFile file = tiny.open();
  const std::vector<int32_t> tokens = some_tokens(9, r.vocabulary);
  const std::vector<double> all = r.logits(tokens);
  const auto is_of_images = [&](size_t i) {
    const size_t token = i % static_cast<size_t>(r.vocabulary);
    return token >= kFirst && token < kAfter;
  };
  std::vector<double> wanted;
  for (size_t i = 0; i < all.size(); ++i)
    if (!is_of_images(i)) wanted.push_back(all[i]);
  for (const Device& device : test::every_device()) {
    Model model = Model::load(file, {.placement = place_on(file, device, 40, DType::f32)});
    const SequencePart part{0, 0, tokens, Wanted::all};
    const std::vector<float> logits = model.forward(std::span(&part, 1)).to_vector<float>();
    std::vector<float> found;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (!is_of_images(i))
        found.push_back(logits[i]);
      else
        ASSERT_EQ(logits[i], -std::numeric_limits<float>::max()) << device.id();
    }
    expect_close(found, wanted, 2e-4, device.id());
  }
}

TEST(Architectures, Qwen2) {
  TinyModel tiny("qwen2");
  tiny.set("rope.freq_base", 1e6f);
  tiny.use_frequencies(1e6);
  tiny.finish({.bias = true});
  check(tiny);
}

TEST(Architectures, Qwen3) {
  TinyModel tiny("qwen3");
  tiny.finish({.head_norms = true, .output = false});
  check(tiny);
}

TEST(Architectures, Qwen3Moe) {
  TinyModel tiny("qwen3moe");
  tiny.reference.wide = 64;
  tiny.use_experts(8, 3);
  tiny.set("expert_feed_forward_length", 64);
  tiny.finish({.head_norms = true});
  check(tiny);
}

TEST(Architectures, ExpertsOnAnotherDevice) {
  TinyModel tiny("qwen3moe");
  tiny.use_experts(8, 3);
  tiny.set("expert_feed_forward_length", tiny.reference.wide);
  tiny.finish({.head_norms = true});
  const GgufFile file = tiny.open();
  const std::vector<int32_t> tokens = some_tokens(11, tiny.reference.vocabulary);
  const std::vector<double> wanted = tiny.reference.logits(tokens);
  const std::vector<Device> all = test::every_device();
  Placement placement = place_on(file, all.back(), 40, DType::f32);
  placement.experts = {Device::cpu(), all.front()};
  Model model = Model::load(file, {.placement = placement});
  const SequencePart part{0, 0, tokens, Wanted::all};
  expect_close(model.forward(std::span(&part, 1)).to_vector<float>(), wanted, 2e-4, "split");
  uint64_t bytes = 0;
  for (const ModelMemory& each : model.memory()) bytes += each.weight_bytes;
  uint64_t elements = 0;
  for (const auto& [name, values] : tiny.reference.tensors) elements += values.size();
  EXPECT_EQ(bytes, elements * sizeof(float));
}

TEST(Architectures, Gemma2) {
  TinyModel tiny("gemma2");
  ReferenceModel& r = tiny.reference;
  r.style = Style::gemma;
  r.layers = 4;
  r.embedding_factor = 8;  // sqrt(64)
  r.score_cap = 5, r.logit_cap = 3;
  r.window = 6, r.window_step = 2;
  tiny.set("attn_logit_softcapping", 5.f);
  tiny.set("final_logit_softcapping", 3.f);
  tiny.set("attention.sliding_window", 6);
  tiny.finish({.output = false});
  check(tiny);
}

TEST(Architectures, Gemma3) {
  TinyModel tiny("gemma3");
  ReferenceModel& r = tiny.reference;
  r.style = Style::gemma;
  r.layers = 7;
  r.embedding_factor = 8;
  r.window = 5, r.window_step = 6;
  r.local_frequencies = r.frequencies;
  tiny.use_frequencies(1e6);
  for (double& each : r.frequencies) each /= 8;
  tiny.set("rope.freq_base", 1e6f);
  tiny.set("rope.scaling.type", "linear");
  tiny.set("rope.scaling.factor", 8.f);
  tiny.set("attention.sliding_window", 5);
  tiny.finish({.head_norms = true, .output = false});
  check(tiny);
}

TEST(Architectures, Phi3) {
  TinyModel tiny("phi3");
  ReferenceModel& r = tiny.reference;
  r.rope_dims = 24;  // of 32
  tiny.use_frequencies(10000);
  std::vector<float> shorter, longer;
  for (size_t i = 0; i < 12; ++i) {
    shorter.push_back(100);
    longer.push_back(1 + static_cast<float>(i) / 3);
    r.frequencies[i] /= static_cast<double>(longer[i]);
  }
  tiny.set("rope.scaling.type", "longrope");
  tiny.set("rope.scaling.original_context_length", 16);  // shorter than the test's context
  tiny.set("rope.scaling.attn_factor", 1.25f);
  tiny.set("attention.sliding_window", 9);  // not used
  r.magnitude = 1.25;
  tiny.file.add_tensor("rope_factors_long.weight", {12}, DType::f32,
                       std::as_bytes(std::span(longer)));
  tiny.file.add_tensor("rope_factors_short.weight", {12}, DType::f32,
                       std::as_bytes(std::span(shorter)));
  tiny.finish({.joined = true});
  check(tiny);
}

// YaRN as published, with unrounded bounds.
void use_yarn(ReferenceModel& r, double base, double factor, double context) {
  const auto bound = [&](double turns) {
    return r.rope_dims * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const double low = std::max(bound(32), 0.0), high = std::min(bound(1), r.rope_dims - 1.0);
  for (size_t i = 0; i < r.frequencies.size(); ++i) {
    const double along = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    r.frequencies[i] *= (1 - along) + along / factor;
  }
  r.magnitude = 0.1 * std::log(factor) + 1;
}

void gpt_oss(TinyModel& tiny) {
  ReferenceModel& r = tiny.reference;
  r.style = Style::gpt_oss;
  r.window = 7, r.window_step = 2;
  tiny.use_frequencies(150000);
  use_yarn(r, 150000, 32, 64);
  tiny.set("rope.freq_base", 150000.f);
  tiny.set("rope.scaling.type", "yarn");
  tiny.set("rope.scaling.factor", 32.f);
  tiny.set("rope.scaling.original_context_length", 64);
  tiny.set("attention.sliding_window", 7);
  tiny.use_experts(6, 2);
  tiny.finish({.bias = true, .sinks = true});
}

TEST(Architectures, GptOss) {
  TinyModel tiny("gpt-oss");
  gpt_oss(tiny);
  check(tiny);
}

TEST(Architectures, GptOssInMxfp4) {
  TinyModel tiny("gpt-oss");
  tiny.expert_type = BlockType::mxfp4;
  gpt_oss(tiny);
  check(tiny, 0.1);  // activations are rounded to 8 bits
}

TEST(Architectures, SmolLm3) {
  TinyModel tiny("smollm3");
  tiny.reference.adjacent = true;
  tiny.reference.layers = 5;
  tiny.reference.unrotated_step = 4;
  tiny.finish({.output = false});
  check(tiny);
}

TEST(Architectures, Granite) {
  TinyModel tiny("granite");
  ReferenceModel& r = tiny.reference;
  r.adjacent = true;
  r.embedding_factor = 3, r.residual_factor = 0.25, r.score_scale = 0.125, r.logit_factor = 0.5;
  tiny.set("embedding_scale", 3.f);
  tiny.set("residual_scale", 0.25f);
  tiny.set("attention.scale", 0.125f);
  tiny.set("logit_scale", 2.f);
  tiny.finish({});
  check(tiny);
}

TEST(Architectures, Bert) {
  TinyModel tiny("bert");
  ReferenceModel& r = tiny.reference;
  r.style = Style::bert;
  r.kv_heads = r.heads;
  r.rope_dims = 0;
  r.causal = false;
  tiny.set("attention.causal", false);
  tiny.set("pooling_type", 1);
  tiny.finish({.bias = true});
  const GgufFile file = tiny.open();
  const std::vector<std::vector<int32_t>> texts = {some_tokens(9, 50), some_tokens(1, 50),
                                                   some_tokens(17, 50)};
  for (const Device& device : test::every_device()) {
    Model model =
        Model::load(file, {.placement = place_on(file, device, 40, DType::f32), .slots = 2});
    const auto vectors = model.embed(texts);
    ASSERT_EQ(vectors.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<double> rows = r.hidden(texts[i]);
      std::vector<double> mean(static_cast<size_t>(r.width));
      for (size_t e = 0; e < rows.size(); ++e)
        mean[e % mean.size()] += rows[e] / static_cast<double>(texts[i].size());
      expect_close(vectors[i], mean, 2e-4, device.id());
    }
    const SequencePart part{0, 0, texts[0], Wanted::last};
    EXPECT_THROW(model.forward(std::span(&part, 1)), Error);
  }
}

TEST(Architectures, UnknownOnesAreNamedWithThoseThatAreKnown) {
  try {
    make_architecture("parrot");
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("\"parrot\""), std::string::npos);
    for (const std::string_view name : known_architectures())
      EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

TEST(Architectures, AMissingOrMisshapenTensorIsNamed) {
  const auto message = [](TinyModel& tiny) -> std::string {
    const GgufFile file = tiny.open();
    try {
      Model::load(file, {.placement = place_on(file, Device::cpu(), 40)});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  TinyModel missing("qwen2");
  missing.finish({.bias = true});
  missing.set("block_count", 3);
  EXPECT_NE(message(missing).find("blk.2.attn_norm.weight"), std::string::npos);
  TinyModel other("qwen2");
  other.finish({.bias = true});
  other.set("feed_forward_length", 97);
  EXPECT_NE(message(other).find("blk.0.ffn_gate.weight"), std::string::npos);
}

}  // namespace
}  // namespace prism::llm
