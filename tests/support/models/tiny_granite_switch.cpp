// The weights of a tiny Granite Switch, and what it computes in float64.
#include "support/models/tiny_granite_switch.h"

#include <algorithm>
#include <cmath>

namespace prism::test {

using Row = TinyEncoder::Row;
using Rows = TinyEncoder::Rows;

namespace {

constexpr int kAdapters = 3, kRank = 4;
constexpr double kGain = 15, kEmbedding = 1.5, kResidual = 0.75, kAttention = 0.3, kLogits = 2;

// Row sums of a matrix of a stack times x.
Row times_stacked(const Row& stack, size_t index, size_t rows, const Row& x) {
  Row y(rows);
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < x.size(); ++k) y[i] += stack[(index * rows + i) * x.size() + k] * x[k];
  return y;
}

}  // namespace

TinyGraniteSwitch::TinyGraniteSwitch() : TinyEncoder("graniteswitch") {
  rms = causal = adjacent = rotated = true;
  layers = 2, heads = 4, kv_heads = 2;
  set_metadata();
  set("embedding_scale", static_cast<float>(kEmbedding));
  set("residual_scale", static_cast<float>(kResidual));
  set("attention.scale", static_cast<float>(kAttention));
  set("logit_scale", static_cast<float>(kLogits));
  set("adapters.count", kAdapters);
  set("adapters.lora_rank", kRank);
  set("adapters.router_gain", static_cast<float>(kGain));
  set("adapters.token_ids_activate",
      std::vector<int32_t>(std::begin(kSwitches), std::end(kSwitches)));
  set("adapters.token_ids_substitute",
      std::vector<int32_t>(std::begin(kEmbedded), std::end(kEmbedded)));
  for (int i = 0; i < layers; ++i) {
    blocks(i, true, false, Gate::apart);
    norm(in_layer(i, "attn_norm"));
    norm(in_layer(i, "ffn_norm"));
    const int q = heads * dim, kv = kv_heads * dim;
    const auto adapter = [&](const char* name, int out, int in) {
      tensor(in_layer(i, name) + ".lora_a", {kAdapters + 1, kRank, in}, 1 / std::sqrt(in));
      tensor(in_layer(i, name) + ".lora_b", {kAdapters + 1, out, kRank}, 1 / std::sqrt(kRank));
    };
    adapter("attn_q", q, width);
    adapter("attn_k", kv, width);
    adapter("attn_v", kv, width);
    adapter("attn_output", width, q);
    adapter("ffn_gate", wide, width);
    adapter("ffn_up", wide, width);
    adapter("ffn_down", width, wide);
  }
  norm("output_norm");
}

std::vector<size_t> TinyGraniteSwitch::adapters(std::span<const int32_t> tokens) {
  std::vector<size_t> result;
  double sum = 0, weights = 0;
  for (const int32_t token : tokens) {
    const auto* const found = std::ranges::find(kSwitches, token);
    const bool switches = found != std::end(kSwitches);
    const double weight = std::exp(switches ? kGain : -kGain);
    weights += weight;
    if (switches) sum += weight * static_cast<double>(found - std::begin(kSwitches) + 1);
    result.push_back(static_cast<size_t>(std::nearbyint(sum / weights)));
  }
  return result;
}

Row TinyGraniteSwitch::adapted(const std::string& name, const Row& x, size_t adapter) const {
  const Row &a = values(name + ".lora_a"), &b = values(name + ".lora_b");
  return times_stacked(b, adapter, b.size() / ((kAdapters + 1) * kRank),
                       times_stacked(a, adapter, kRank, x));
}

Row TinyGraniteSwitch::product(const std::string& name, const Row& x, size_t adapter) const {
  Row y = times(name, x);
  const Row more = adapted(name, x, adapter);
  for (size_t i = 0; i < y.size(); ++i) y[i] += more[i];
  return y;
}

void TinyGraniteSwitch::rotate_head(double* head, size_t position) const {
  for (int i = 0; i < dim / 2; ++i) {
    const double angle = static_cast<double>(position) * std::pow(base, -2.0 * i / dim);
    const double a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * std::cos(angle) - b * std::sin(angle);
    head[2 * i + 1] = a * std::sin(angle) + b * std::cos(angle);
  }
}

Rows TinyGraniteSwitch::attention(int layer, const Rows& x,
                                  std::span<const size_t> adapters) const {
  const auto length = static_cast<size_t>(dim), q_heads = static_cast<size_t>(heads),
             k_heads = static_cast<size_t>(kv_heads);
  Rows all, result;
  for (size_t i = 0; i < x.size(); ++i) {
    Row& row = all.emplace_back(times(in_layer(layer, "attn_qkv"), x[i]));
    size_t first = 0;
    for (const char* name : {"attn_q", "attn_k", "attn_v"})
      for (const double each : adapted(in_layer(layer, name), x[i], adapters[i]))
        row[first++] += each;
    for (size_t h = 0; h < q_heads + k_heads; ++h) rotate_head(row.data() + h * length, i);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    Row seen(q_heads * length);
    for (size_t h = 0; h < q_heads; ++h) {
      const size_t k = q_heads + h / (q_heads / k_heads);
      Row weights;
      double sum = 0;
      for (size_t j = 0; j <= i; ++j) {
        double score = 0;
        for (size_t c = 0; c < length; ++c)
          score += all[i][h * length + c] * all[j][k * length + c];
        weights.push_back(std::exp(score * static_cast<double>(static_cast<float>(kAttention))));
        sum += weights.back();
      }
      for (size_t j = 0; j <= i; ++j)
        for (size_t c = 0; c < length; ++c)
          seen[h * length + c] += weights[j] / sum * all[j][(k + k_heads) * length + c];
    }
    result.push_back(product(in_layer(layer, "attn_output"), seen, adapters[i]));
  }
  return result;
}

Rows TinyGraniteSwitch::logits(std::span<const int32_t> tokens) const {
  const std::vector<size_t> own = adapters(tokens);
  Rows x;
  for (const int32_t token : tokens) {
    const auto* const found = std::ranges::find(kSwitches, token);
    const int32_t seen = found == std::end(kSwitches) ? token : kEmbedded[found - kSwitches];
    const Row& table = values("token_embd.weight");
    Row& row = x.emplace_back();
    for (int c = 0; c < width; ++c)
      row.push_back(table[static_cast<size_t>(seen * width + c)] * kEmbedding);
  }
  const auto add = [](Row& to, const Row& more) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += more[i] * kResidual;
  };
  for (int layer = 0; layer < layers; ++layer) {
    Rows input;
    for (const Row& row : x) input.push_back(normed(in_layer(layer, "attn_norm"), row));
    const Rows seen = attention(layer, input, own);
    for (size_t i = 0; i < x.size(); ++i) {
      add(x[i], seen[i]);
      const Row inner = normed(in_layer(layer, "ffn_norm"), x[i]);
      Row gate = product(in_layer(layer, "ffn_gate"), inner, own[i]);
      const Row up = product(in_layer(layer, "ffn_up"), inner, own[i]);
      for (size_t c = 0; c < gate.size(); ++c) gate[c] *= up[c] / (1 + std::exp(-gate[c]));
      add(x[i], product(in_layer(layer, "ffn_down"), gate, own[i]));
    }
  }
  for (Row& row : x) {
    row = times("token_embd", normed("output_norm", row));
    for (double& each : row) each /= kLogits;
  }
  return x;
}

}  // namespace prism::test
