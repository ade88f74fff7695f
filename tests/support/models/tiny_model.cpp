// The weights and metadata of tiny models.
#include "support/models/tiny_model.h"

#include <cmath>

#include <gtest/gtest.h>

#include "prism/ops/quantise.h"
#include "support/models/letters.h"
#include "support/seed.h"
#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism::test {

using Style = ReferenceModel::Style;

uint32_t model_seed() {
  static const uint32_t value = test_seed();
  return value;
}

TinyModel::TinyModel(const std::string& architecture, uint32_t seed)
    : architecture_(architecture), random_(seed) {
  ReferenceModel& r = reference;
  r.layers = 2, r.width = 64, r.heads = 4, r.kv_heads = 2, r.dim = 32, r.wide = 96;
  r.vocabulary = 50;
  r.rope_dims = 32;
  r.score_scale = 1 / std::sqrt(32.0);
  use_frequencies(10000);
  file.set("general.architecture", architecture);
}

void TinyModel::use_frequencies(double base) {
  reference.frequencies.clear();
  for (int i = 0; i < reference.rope_dims / 2; ++i)
    reference.frequencies.push_back(std::pow(base, -2.0 * i / reference.rope_dims));
}

void TinyModel::use_experts(int experts, int used) {
  reference.experts = experts, reference.used = used;
  set("expert_count", experts);
  set("expert_used_count", used);
}

void TinyModel::use_letters() { reference.vocabulary = set_letters(file); }

std::span<float> TinyModel::values(const std::string& name) {
  std::vector<std::byte>& bytes = *by_name_.at(name);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

void TinyModel::tensor(const std::string& name, const Shape& shape, double size, double around) {
  std::normal_distribution<double> normal(around, size);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& each : values) each = static_cast<float>(normal(random_));
  // For quantised experts, the router's bias decides which are used: a near tie between two would
  // change with the rounding.
  if (expert_type.is_block() && name.ends_with("ffn_gate_inp.bias"))
    for (int e = 0; e < reference.used; ++e)
      values[static_cast<size_t>((2 * e + 1) % reference.experts)] += 12;
  ElementType type = DType::f32;
  auto& bytes = kept_.emplace_back();
  by_name_[name] = &bytes;
  if (name.find("_exps.weight") != std::string::npos && expert_type.is_block()) {
    type = expert_type;
    const Tensor blocks = quantise(from_vector(values, shape, Device::cpu()), expert_type.block());
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

void TinyModel::linear(const std::string& name, int out, int in, bool bias) {
  tensor(name + ".weight", {out, in}, 1.2 / std::sqrt(in));
  if (bias) tensor(name + ".bias", {out}, 0.2);
}

void TinyModel::finish(const Features& f) {
  const ReferenceModel& r = reference;
  set("block_count", r.layers);
  set("embedding_length", r.width);
  set("context_length", 128);
  set("attention.head_count", r.heads);
  set("attention.head_count_kv", r.kv_heads);
  set("attention.key_length", r.dim);
  set("attention.value_length", r.dim);
  set(r.style == Style::bert ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
      static_cast<float>(r.epsilon));
  reference.epsilon = static_cast<double>(static_cast<float>(r.epsilon));
  if (r.rope_dims > 0) set("rope.dimension_count", r.rope_dims);
  set("feed_forward_length", r.wide);
  tensor("token_embd.weight", {r.vocabulary, r.width}, 1);
  for (int i = 0; i < r.layers; ++i) layer("blk." + std::to_string(i) + ".", f);
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

void TinyModel::layer(const std::string& prefix, const Features& f) {
  const ReferenceModel& r = reference;
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
  if (f.head_norms && r.layer_head_norms) {
    for (const auto& [name, heads] :
         {std::pair("attn_q_norm", r.heads), {"attn_k_norm", r.kv_heads}}) {
      tensor(prefix + name + ".weight", {heads, r.dim}, 0.2, 1);
      tensor(prefix + name + ".bias", {heads, r.dim}, 0.2);
    }
  } else if (f.head_norms) {
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

void TinyModel::feed_forward(const std::string& prefix, const Features& f) {
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

llm::GgufFile TinyModel::open() {
  const std::string path = (folder_.path() / "tiny.gguf").string();
  file.write(path);
  return llm::GgufFile::open(path);
}

std::vector<int32_t> some_tokens(int count, int vocabulary) {
  std::mt19937 random(model_seed() + 1);
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
        << what << " at " << i << " of " << values.size() << ", seed " << model_seed();
}

}  // namespace prism::test
