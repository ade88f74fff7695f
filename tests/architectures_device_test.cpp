// Every architecture with a tiny random model on every device, against plain float64 loops.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <list>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "llm/architecture.h"
#include "llm/gguf_writer.h"
#include "llm/model.h"
#include "ops/quantise.h"
#include "support/devices.h"
#include "support/process.h"
#include "support/reference_model.h"
#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism::llm {
namespace {

using test::ReferenceModel;
using Style = ReferenceModel::Style;

uint32_t seed() {
  static const uint32_t value = std::random_device()();
  return value;
}

// A model as file and as reference, of the same random weights.
class TinyModel {
 public:
  ReferenceModel reference;
  GgufWriter file;
  ElementType expert_type = DType::f32;

  explicit TinyModel(const std::string& architecture)
      : architecture_(architecture), random_(seed()) {
    ReferenceModel& r = reference;
    r.layers = 2, r.width = 64, r.heads = 4, r.kv_heads = 2, r.dim = 32, r.wide = 96;
    r.vocabulary = 50;
    r.rope_dims = 32;
    r.score_scale = 1 / std::sqrt(32.0);
    use_frequencies(10000);
    file.set("general.architecture", architecture);
  }

  template <class T>
  void set(const std::string& key, const T& value) {
    file.set(architecture_ + "." + key, value);
  }

  void use_frequencies(double base) {
    reference.frequencies.clear();
    for (int i = 0; i < reference.rope_dims / 2; ++i)
      reference.frequencies.push_back(std::pow(base, -2.0 * i / reference.rope_dims));
  }

  void tensor(const std::string& name, const Shape& shape, double size, double around = 0) {
    std::normal_distribution<double> normal(around, size);
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& each : values) each = static_cast<float>(normal(random_));
    ElementType type = DType::f32;
    auto& bytes = kept_.emplace_back();
    if (name.find("_exps.weight") != std::string::npos && expert_type.is_block()) {
      type = expert_type;
      const Tensor blocks =
          quantise(from_vector(values, shape, Device::cpu()), expert_type.block());
      values = dequantise(blocks).to_vector<float>();
      blocks.eval();
      const auto& storage = *blocks.node()->storage[0];
      bytes.assign(storage.host.get(), storage.host.get() + storage.bytes);
    } else {
      const auto raw = std::as_bytes(std::span(values));
      bytes.assign(raw.begin(), raw.end());
    }
    file.add_tensor(name, shape, type, bytes);
    reference.tensors[name].assign(values.begin(), values.end());
  }
  void norm(const std::string& name, int length) { tensor(name, {length}, 0.2, 1); }
  void linear(const std::string& name, int out, int in, bool bias) {
    tensor(name + ".weight", {out, in}, 1.2 / std::sqrt(in));
    if (bias) tensor(name + ".bias", {out}, 0.2);
  }

  struct Features {
    bool bias = false, head_norms = false, joined = false, output = true, sinks = false;
  };

  // Metadata and weights, as the reference's numbers say.
  void finish(const Features& f) {
    const ReferenceModel& r = reference;
    set("block_count", r.layers);
    set("embedding_length", r.width);
    set("context_length", 128);
    set("attention.head_count", r.heads);
    set("attention.head_count_kv", r.kv_heads);
    set("attention.key_length", r.dim);
    set("attention.value_length", r.dim);
    set(r.style == Style::bert ? "attention.layer_norm_epsilon"
                               : "attention.layer_norm_rms_epsilon",
        static_cast<float>(r.epsilon));
    reference.epsilon = static_cast<double>(static_cast<float>(r.epsilon));
    if (r.rope_dims > 0) set("rope.dimension_count", r.rope_dims);
    set("feed_forward_length", r.wide);
    tensor("token_embd.weight", {r.vocabulary, r.width}, 1);
    for (int layer = 0; layer < r.layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      if (r.style != Style::bert) norm(prefix + "attn_norm.weight", r.width);
      const int q = r.heads * r.dim, kv = r.kv_heads * r.dim;
      if (f.joined) {
        linear(prefix + "attn_qkv", q + 2 * kv, r.width, f.bias);
      } else {
        linear(prefix + "attn_q", q, r.width, f.bias);
        linear(prefix + "attn_k", kv, r.width, f.bias);
        linear(prefix + "attn_v", kv, r.width, f.bias);
      }
      linear(prefix + "attn_output", r.width, q, f.bias && r.style != Style::pre_norm);
      if (f.head_norms) {
        norm(prefix + "attn_q_norm.weight", r.dim);
        norm(prefix + "attn_k_norm.weight", r.dim);
      }
      if (f.sinks) tensor(prefix + "attn_sinks.weight", {r.heads}, 1);
      if (r.style == Style::gemma || r.style == Style::gpt_oss)
        norm(prefix + "post_attention_norm.weight", r.width);
      if (r.style == Style::bert) {
        norm(prefix + "attn_output_norm.weight", r.width);
        tensor(prefix + "attn_output_norm.bias", {r.width}, 0.2);
        norm(prefix + "layer_output_norm.weight", r.width);
        tensor(prefix + "layer_output_norm.bias", {r.width}, 0.2);
      }
      if (r.style == Style::pre_norm || r.style == Style::gemma)
        norm(prefix + "ffn_norm.weight", r.width);
      if (r.style == Style::gemma) norm(prefix + "post_ffw_norm.weight", r.width);
      feed_forward(prefix, f);
    }
    if (r.style == Style::bert) {
      tensor("position_embd.weight", {128, r.width}, 1);
      tensor("token_types.weight", {2, r.width}, 1);
      norm("token_embd_norm.weight", r.width);
      tensor("token_embd_norm.bias", {r.width}, 0.2);
      return;
    }
    norm("output_norm.weight", r.width);
    if (f.output) linear("output", r.vocabulary, r.width, false);
  }

  GgufFile open() {
    const std::string path = (folder_.path() / "tiny.gguf").string();
    file.write(path);
    return GgufFile::open(path);
  }

 private:
  void feed_forward(const std::string& prefix, const Features& f) {
    const ReferenceModel& r = reference;
    if (r.experts > 0) {
      const bool bias = r.style == Style::gpt_oss;
      linear(prefix + "ffn_gate_inp", r.experts, r.width, bias);
      const auto experts = [&](const std::string& name, int out, int in) {
        tensor(prefix + name + ".weight", {r.experts, out, in}, 1.2 / std::sqrt(in));
        if (bias) tensor(prefix + name + ".bias", {r.experts, out}, 0.2);
      };
      experts("ffn_gate_exps", r.wide, r.width);
      experts("ffn_up_exps", r.wide, r.width);
      experts("ffn_down_exps", r.width, r.wide);
      return;
    }
    const bool bias = r.style == Style::bert;
    if (!f.joined && r.style != Style::bert) linear(prefix + "ffn_gate", r.wide, r.width, bias);
    linear(prefix + "ffn_up", f.joined ? 2 * r.wide : r.wide, r.width, bias);
    linear(prefix + "ffn_down", r.width, r.wide, bias);
  }

  std::string architecture_;
  std::mt19937 random_;
  std::list<std::vector<std::byte>> kept_;
  test::TemporaryFolder folder_;
};

std::vector<int32_t> some_tokens(int count, int vocabulary) {
  std::mt19937 random(seed() + 1);
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(vocabulary)));
  return tokens;
}

void expect_close(std::span<const float> values, std::span<const double> wanted, double bound,
                  const std::string& what) {
  ASSERT_EQ(values.size(), wanted.size()) << what;
  double square = 0;
  for (const double each : wanted) square += each * each;
  const double size = std::sqrt(square / static_cast<double>(wanted.size()));
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(static_cast<double>(values[i]), wanted[i], bound * size)
        << what << " at " << i << " of " << values.size() << ", seed " << seed();
}

// The whole of a text in one batch, and its end token by token after a first part.
void check(TinyModel& tiny, double bound = 2e-4) {
  const GgufFile file = tiny.open();
  const std::vector<int32_t> tokens = some_tokens(23, tiny.reference.vocabulary);
  const std::vector<double> wanted = tiny.reference.logits(tokens);
  const auto width = static_cast<size_t>(tiny.reference.vocabulary);
  for (const Device& device : test::every_device()) {
    Model model = Model::load(file, {.placement = place_on(file, device, 40, DType::f32)});
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
  // Divisors of frequencies, as files of long contexts have them.
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
  tiny.reference.experts = 5, tiny.reference.used = 2;
  tiny.set("expert_count", 5);
  tiny.set("expert_used_count", 2);
  tiny.finish({});
  check(tiny);
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
  tiny.reference.experts = 8, tiny.reference.used = 3;
  tiny.reference.wide = 64;
  tiny.set("expert_count", 8);
  tiny.set("expert_used_count", 3);
  tiny.set("expert_feed_forward_length", 64);
  tiny.finish({.head_norms = true});
  check(tiny);
}

TEST(Architectures, ExpertsOnAnotherDevice) {
  TinyModel tiny("qwen3moe");
  tiny.reference.experts = 8, tiny.reference.used = 3;
  tiny.set("expert_count", 8);
  tiny.set("expert_used_count", 3);
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
  r.embedding_factor = 8;  // the root of 64
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
  r.window = 9;
  tiny.use_frequencies(10000);
  std::vector<float> shorter, longer;
  for (size_t i = 0; i < 12; ++i) {
    shorter.push_back(100);
    longer.push_back(1 + static_cast<float>(i) / 3);
    r.frequencies[i] /= static_cast<double>(longer[i]);
  }
  tiny.set("rope.scaling.type", "longrope");
  tiny.set("rope.scaling.original_context_length", 16);  // the test's context is longer
  tiny.set("rope.scaling.attn_factor", 1.25f);
  tiny.set("attention.sliding_window", 9);
  r.magnitude = 1.25;
  tiny.file.add_tensor("rope_factors_long.weight", {12}, DType::f32,
                       std::as_bytes(std::span(longer)));
  tiny.file.add_tensor("rope_factors_short.weight", {12}, DType::f32,
                       std::as_bytes(std::span(shorter)));
  tiny.finish({.joined = true});
  check(tiny);
}

// YaRN as its authors write it, with bounds that are not rounded.
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
  r.experts = 6, r.used = 2;
  r.window = 7, r.window_step = 2;
  tiny.use_frequencies(150000);
  use_yarn(r, 150000, 32, 64);
  tiny.set("rope.freq_base", 150000.f);
  tiny.set("rope.scaling.type", "yarn");
  tiny.set("rope.scaling.factor", 32.f);
  tiny.set("rope.scaling.original_context_length", 64);
  tiny.set("attention.sliding_window", 7);
  tiny.set("expert_count", 6);
  tiny.set("expert_used_count", 2);
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
  check(tiny, 0.1);  // activations are rounded to 8 bits, and a router may be of two minds
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
  missing.finish({});
  missing.set("block_count", 3);
  EXPECT_NE(message(missing).find("blk.2.attn_norm.weight"), std::string::npos);
  TinyModel other("qwen2");
  other.finish({});
  other.set("feed_forward_length", 97);
  EXPECT_NE(message(other).find("blk.0.ffn_gate.weight"), std::string::npos);
}

}  // namespace
}  // namespace prism::llm
