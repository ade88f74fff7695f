// The weights of tiny encoders, and what they compute in float64.
#include "support/models/tiny_encoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "support/models/tiny_model.h"

namespace prism::test {

using Row = TinyEncoder::Row;
using Rows = TinyEncoder::Rows;

namespace {

Row added(const Row& a, const Row& b) {
  Row sum = a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

// The slope of a head as the paper on linear biases gives it.
double slope_of(int head, int heads, double max_bias) {
  int whole = 1;
  while (whole * 2 <= heads) whole *= 2;
  if (head < whole) return std::pow(2.0, -max_bias * (head + 1) / whole);
  return std::pow(2.0, -max_bias * (2 * (head - whole) + 1) / (2 * whole));
}

}  // namespace

TinyEncoder::TinyEncoder(const std::string& architecture)
    : architecture_(architecture), random_(model_seed()) {
  file.set("general.architecture", architecture);
}

void TinyEncoder::tensor(const std::string& name, const Shape& shape, double size, double around) {
  std::normal_distribution<double> normal(around, size);
  std::vector<float>& values = kept_.emplace_back(static_cast<size_t>(shape.elements()));
  for (float& each : values) each = static_cast<float>(normal(random_));
  file.add_tensor(name, shape, DType::f32, std::as_bytes(std::span(values)));
  tensors_[name].assign(values.begin(), values.end());
}

void TinyEncoder::linear(const std::string& name, int out, int in, bool bias) {
  tensor(name + ".weight", {out, in}, 1.2 / std::sqrt(in));
  if (bias) tensor(name + ".bias", {out}, 0.2);
}

void TinyEncoder::norm(const std::string& name, int length) {
  const int64_t count = length > 0 ? length : width;
  tensor(name + ".weight", {count}, 0.2, 1);
  if (norm_bias && !rms) tensor(name + ".bias", {count}, 0.2);
}

std::string TinyEncoder::in_layer(int layer, const std::string& name) {
  return "blk." + std::to_string(layer) + "." + name;
}

void TinyEncoder::blocks(int layer, bool joined, bool bias, Gate gate) {
  const auto name = [&](const char* text) { return in_layer(layer, text); };
  const int q = heads * dim, kv = kv_heads * dim;
  if (joined) {
    linear(name("attn_qkv"), q + 2 * kv, width, bias);
  } else {
    linear(name("attn_q"), q, width, bias);
    linear(name("attn_k"), kv, width, bias);
    linear(name("attn_v"), kv, width, bias);
  }
  linear(name("attn_output"), width, q, bias);
  if (expert_period > 0 && layer % expert_period == 1) {
    linear(name("ffn_gate_inp"), experts, width, false);
    tensor(name("ffn_up_exps.weight"), {experts, wide, width}, 1.2 / std::sqrt(width));
    tensor(name("ffn_down_exps.weight"), {experts, width, wide}, 1.2 / std::sqrt(wide));
    return;
  }
  if (gate == Gate::apart) linear(name("ffn_gate"), wide, width, false);
  linear(name("ffn_up"), gate == Gate::joined ? 2 * wide : wide, width, bias && gate == Gate::none);
  linear(name("ffn_down"), width, wide, bias);
}

void TinyEncoder::set_metadata() {
  tensor("token_embd.weight", {vocabulary, width}, 1);
  set("block_count", layers);
  set("embedding_length", width);
  set("context_length", 64);
  set("attention.head_count", heads);
  set("attention.head_count_kv", kv_heads);
  set("attention.key_length", dim);
  set("attention.value_length", dim);
  set("feed_forward_length", wide);
  epsilon = static_cast<double>(static_cast<float>(epsilon));
  set(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
      static_cast<float>(epsilon));
  if (rotated) set("rope.freq_base", static_cast<float>(base));
  if (!causal) set("attention.causal", false);
  if (experts > 0) {
    set("expert_count", experts);
    set("expert_used_count", used);
    set("moe_every_n_layers", expert_period);
  }
}

void TinyEncoder::use_words() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  for (char c = 'a'; c <= 'z'; ++c) tokens.push_back("\u2581" + std::string(1, c));
  std::vector<int32_t> types(tokens.size(), 1);
  for (size_t i = 0; i < 4; ++i) types[i] = 3;
  vocabulary = static_cast<int>(tokens.size());
  file.set("tokenizer.ggml.model", "bert");
  file.set("tokenizer.ggml.tokens", tokens);
  file.set("tokenizer.ggml.token_type", types);
  file.set("tokenizer.ggml.unknown_token_id", 1);
  file.set("tokenizer.ggml.cls_token_id", 2);
  file.set("tokenizer.ggml.seperator_token_id", 3);
}

std::string TinyEncoder::write() {
  const std::string path = (folder_.path() / (architecture_ + ".gguf")).string();
  file.write(path);
  return path;
}

Row TinyEncoder::times(const std::string& name, const Row& x) const {
  const Row& matrix = tensors_.at(name + ".weight");
  Row y(matrix.size() / x.size());
  if (has(name + ".bias")) y = tensors_.at(name + ".bias");
  for (size_t i = 0; i < y.size(); ++i)
    for (size_t j = 0; j < x.size(); ++j) y[i] += matrix[i * x.size() + j] * x[j];
  return y;
}

Row TinyEncoder::normed(const std::string& name, Row x) const {
  const auto count = static_cast<double>(x.size());
  const double centre = rms ? 0 : std::accumulate(x.begin(), x.end(), 0.0) / count;
  double square = 0;
  for (double& each : x) each -= centre, square += each * each / count;
  const Row& weight = tensors_.at(name + ".weight");
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = x[i] / std::sqrt(square + epsilon) * weight[i];
    if (has(name + ".bias")) x[i] += tensors_.at(name + ".bias")[i];
  }
  return x;
}

double TinyEncoder::gelu(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }

double TinyEncoder::activated(double x) const {
  if (function == Function::silu) return x / (1 + std::exp(-x));
  if (function == Function::gelu) return gelu(x);
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

void TinyEncoder::rotate(double* head, int position, double by) const {
  for (int i = 0; i < dim / 2; ++i) {
    const double angle = position * std::pow(by, -2.0 * i / dim);
    double& first = head[adjacent ? 2 * i : i];
    double& second = head[adjacent ? 2 * i + 1 : i + dim / 2];
    const double a = first, b = second;
    first = a * std::cos(angle) - b * std::sin(angle);
    second = a * std::sin(angle) + b * std::cos(angle);
  }
}

Rows TinyEncoder::attention(int layer, const Rows& x) const {
  const auto name = [&](const char* text) { return in_layer(layer, text); };
  const auto size = [](int a) { return static_cast<size_t>(a); };
  Rows q, k, v;
  for (size_t i = 0; i < x.size(); ++i) {
    Row of_q, of_k, of_v;
    if (has(name("attn_qkv.weight"))) {
      const Row all = times(name("attn_qkv"), x[i]);
      const auto middle = all.begin() + heads * dim, last = middle + kv_heads * dim;
      of_q.assign(all.begin(), middle), of_k.assign(middle, last), of_v.assign(last, all.end());
    } else {
      of_q = times(name("attn_q"), x[i]), of_k = times(name("attn_k"), x[i]);
      of_v = times(name("attn_v"), x[i]);
    }
    for (const auto& [row, norm_name] :
         {std::pair(&of_q, name("attn_q_norm")), std::pair(&of_k, name("attn_k_norm"))}) {
      if (!has(norm_name + ".weight")) continue;
      const size_t length = tensors_.at(norm_name + ".weight").size();  // of a head, or of all
      for (size_t at = 0; at < row->size(); at += length) {
        const auto first = row->begin() + static_cast<ptrdiff_t>(at);
        std::ranges::copy(normed(norm_name, Row(first, first + static_cast<ptrdiff_t>(length))),
                          first);
      }
    }
    for (Row* row : {&of_q, &of_k})
      for (size_t at = 0; rotated && at < row->size(); at += size(dim))
        rotate(row->data() + at, static_cast<int>(i), is_full(layer) ? base : local_base);
    q.push_back(of_q), k.push_back(of_k), v.push_back(of_v);
  }
  Rows out;
  for (int i = 0; i < std::ssize(x); ++i) {
    Row seen(size(heads * dim));
    for (int h = 0; h < heads; ++h) {
      const size_t at = size(h * dim), from = size(h / (heads / kv_heads) * dim);
      Row weights(x.size());
      double sum = 0;
      for (int j = 0; j < std::ssize(x); ++j) {
        if ((causal && j > i) || (!is_full(layer) && std::abs(i - j) > reach)) continue;
        double score = 0;
        for (size_t d = 0; d < size(dim); ++d) score += q[size(i)][at + d] * k[size(j)][from + d];
        score /= std::sqrt(dim);
        if (max_bias > 0) score -= slope_of(h, heads, max_bias) * std::abs(i - j);
        sum += weights[size(j)] = std::exp(score);
      }
      for (size_t j = 0; j < x.size(); ++j)
        for (size_t d = 0; d < size(dim); ++d) seen[at + d] += weights[j] / sum * v[j][from + d];
    }
    out.push_back(times(name("attn_output"), seen));
  }
  return out;
}

Row TinyEncoder::of_expert(const std::string& name, int expert, const Row& x) const {
  const Row& all = tensors_.at(name);
  const size_t each = all.size() / static_cast<size_t>(experts), out = each / x.size();
  Row y(out);
  for (size_t i = 0; i < out; ++i)
    for (size_t j = 0; j < x.size(); ++j)
      y[i] += all[static_cast<size_t>(expert) * each + i * x.size() + j] * x[j];
  return y;
}

// The best experts by a softmax over all of them, whose values weigh their results.
Row TinyEncoder::routed(const std::string& prefix, const Row& x) const {
  Row scores = times(prefix + "ffn_gate_inp", x);
  double sum = 0;
  for (double& each : scores) sum += each = std::exp(each);
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater(), [&](int e) { return scores[static_cast<size_t>(e)]; });
  Row result(static_cast<size_t>(width));
  for (const int e : std::span(order).first(static_cast<size_t>(used))) {
    Row inner = of_expert(prefix + "ffn_up_exps.weight", e, x);
    for (double& each : inner) each = activated(each);
    const Row down = of_expert(prefix + "ffn_down_exps.weight", e, inner);
    for (size_t i = 0; i < result.size(); ++i)
      result[i] += scores[static_cast<size_t>(e)] / sum * down[i];
  }
  return result;
}

Row TinyEncoder::feed_forward(const std::string& prefix, const Row& x) const {
  if (has(prefix + "ffn_gate_inp.weight")) return routed(prefix, x);
  Row up = times(prefix + "ffn_up", x), gate;
  if (has(prefix + "ffn_gate.weight")) gate = times(prefix + "ffn_gate", x);
  const auto half = static_cast<size_t>(wide);
  if (gate.empty() && up.size() == 2 * half) {
    gate.assign(up.begin(), up.begin() + static_cast<ptrdiff_t>(half));
    up.erase(up.begin(), up.begin() + static_cast<ptrdiff_t>(half));
  }
  for (size_t i = 0; i < up.size(); ++i)
    up[i] = gate.empty() ? activated(up[i]) : activated(gate[i]) * up[i];
  return times(prefix + "ffn_down", up);
}

Rows TinyEncoder::hidden(std::span<const int32_t> tokens) const {
  const auto row_of = [&](const std::string& name, size_t row) {
    const auto at = tensors_.at(name).begin() + static_cast<ptrdiff_t>(row) * width;
    return Row(at, at + width);
  };
  const auto maybe = [&](const std::string& name, const Row& x) {
    return has(name + ".weight") ? normed(name, x) : x;
  };
  Rows x;
  for (const int32_t token : tokens) {
    Row row = row_of("token_embd.weight", static_cast<size_t>(token));
    for (double& each : row) each *= embedding_scale;
    if (has("token_types.weight")) row = added(row, row_of("token_types.weight", 0));
    if (has("position_embd.weight")) row = added(row, row_of("position_embd.weight", x.size()));
    x.push_back(maybe("token_embd_norm", row));
  }
  for (int layer = 0; layer < layers; ++layer) {
    const auto name = [&](const char* text) { return in_layer(layer, text); };
    Rows input;
    for (const Row& row : x) input.push_back(maybe(name("attn_norm"), row));
    const Rows seen = attention(layer, input);
    for (size_t i = 0; i < x.size(); ++i) {
      Row middle = added(x[i], maybe(name("post_attention_norm"), seen[i]));
      middle = maybe(name("attn_output_norm"), middle);
      if (has(name("attn_norm_2.weight")))
        middle = normed(name("attn_norm_2"), added(middle, x[i]));
      const Row inner = feed_forward(in_layer(layer, ""), maybe(name("ffn_norm"), middle));
      x[i] = maybe(name("layer_output_norm"), added(middle, maybe(name("post_ffw_norm"), inner)));
    }
  }
  for (Row& row : x) row = maybe("enc.output_norm", maybe("output_norm", row));
  return x;
}

Row TinyEncoder::mean(const Rows& rows) {
  Row sum(rows.front().size());
  for (const Row& row : rows)
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += row[i] / static_cast<double>(rows.size());
  return sum;
}

void TinyEncoder::bert_ends() {
  set_metadata();
  norm("token_embd_norm");
  tensor("token_types.weight", {2, width}, 1);
  for (int i = 0; i < layers; ++i)
    for (const char* name : {"attn_output_norm", "layer_output_norm"}) norm(in_layer(i, name));
}

TinyReranker::TinyReranker(bool has_head) : TinyEncoder("bert") {
  use_words();
  bert_ends();
  for (int i = 0; i < layers; ++i) blocks(i, false, true, Gate::none);
  tensor("position_embd.weight", {64, width}, 1);
  set("pooling_type", has_head ? 4 : 1);
  if (!has_head) return;
  linear("cls", width, width, true);
  linear("cls.output", 1, width, true);
}

double TinyReranker::score(std::span<const int32_t> tokens) const {
  Row inner = times("cls", hidden(tokens).front());
  for (double& each : inner) each = std::tanh(each);
  return times("cls.output", inner)[0];
}

}  // namespace prism::test
