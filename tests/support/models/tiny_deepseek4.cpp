// The weights of a tiny DeepSeek V4, and what it computes in float64.
#include "support/models/tiny_deepseek4.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace prism::test {

using Row = TinyEncoder::Row;
using Rows = TinyEncoder::Rows;

namespace {

constexpr int kTurned = 16, kLow = 20, kGroups = 2, kGroupRank = 12, kSteps = 5, kOriginal = 64;
constexpr int kIndexerHeads = 2, kIndexerDim = 64, kExpertWide = 24;
constexpr double kCompressedBase = 40000, kEpsilon = 1e-4, kLimit = 0.9, kSharedLimit = 0.7,
                 kExpertScale = 1.5;

double exactly(double x) { return static_cast<double>(static_cast<float>(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Row plain_norm(Row x, double epsilon) {
  double square = 0;
  for (const double each : x) square += each * each / static_cast<double>(x.size());
  for (double& each : x) each /= std::sqrt(square + epsilon);
  return x;
}

double dot(const double* a, const double* b, int count) {
  return std::inner_product(a, a + count, b, 0.0);
}

// The frequency of a pair: YaRN's, which leaves pairs that turn often as they are.
double frequency(int pair, double base, double scaling) {
  const double plain = std::pow(base, -2.0 * pair / kTurned);
  if (scaling == 1) return plain;
  const auto pair_of = [&](double turns) {
    return kTurned * std::log(kOriginal / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const double low = std::max(0.0, std::floor(pair_of(32))),
               high = std::min(kTurned - 1.0, std::ceil(pair_of(1)));
  const double part = std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
  return plain * (1 - part) + plain / scaling * part;
}

}  // namespace

TinyDeepSeek4::TinyDeepSeek4(const DeepSeek4Kind& kind) : TinyEncoder("deepseek4"), kind_(kind) {
  rms = causal = true;
  layers = static_cast<int>(kind.ratios.size());
  width = 32, heads = 4, kv_heads = 1, dim = 64;
  experts = 6, used = 2;
  base = 10000;
  rotated = true;
  set_metadata();
  set("block_count", layers + kind.proposing);
  if (kind.proposing > 0) set("nextn_predict_layers", kind.proposing);
  set("context_length", 512);
  set("rope.dimension_count", kTurned);
  if (kind.scaling != 1) {
    set("rope.scaling.type", std::string("yarn"));
    set("rope.scaling.factor", static_cast<float>(kind.scaling));
    set("rope.scaling.original_context_length", kOriginal);
  }
  set("attention.q_lora_rank", kLow);
  set("attention.sliding_window", kind.window);
  set("attention.indexer.head_count", kIndexerHeads);
  set("attention.indexer.key_length", kIndexerDim);
  set("attention.indexer.top_k", kind.chosen);
  set("attention.output_group_count", kGroups);
  set("attention.output_lora_rank", kGroupRank);
  std::vector<uint32_t> ratios(kind.ratios.begin(), kind.ratios.end());
  ratios.resize(ratios.size() + static_cast<size_t>(kind.proposing));
  set("attention.compress_ratios", ratios);
  set("attention.compress_rope_freq_base", static_cast<float>(kCompressedBase));
  set("hyper_connection.count", kind.streams);
  set("hyper_connection.sinkhorn_iterations", kSteps);
  set("hyper_connection.epsilon", static_cast<float>(kEpsilon));
  set("hash_layer_count", kind.hash_layers);
  set("expert_feed_forward_length", kExpertWide);
  set("expert_shared_count", 1);
  set("expert_weights_scale", static_cast<float>(kExpertScale));
  set("expert_weights_norm", true);
  set("expert_gating_func", 4);
  set("swiglu_clamp_exp", std::vector<float>(ratios.size(), static_cast<float>(kLimit)));
  set("swiglu_clamp_shexp", std::vector<float>(ratios.size(), static_cast<float>(kSharedLimit)));
  for (int i = 0; i < layers; ++i) layer(i);
  if (kind.proposing > 0) linear(in_layer(layers, "nextn.eh_proj"), width, 2 * width, false);
  norm("output_norm");
  linear("output", vocabulary, width, false);
  linear("output_hc_fn", kind.streams, kind.streams * width, false);
  tensor("output_hc_base.weight", {kind.streams}, 0.5);
  tensor("output_hc_scale.weight", {1}, 0.2, 1);
}

void TinyDeepSeek4::compressor(const std::string& name, int ratio, int length) {
  const int rows = ratio == 4 ? 2 * length : length;
  linear(name + "_kv", rows, width, false);
  linear(name + "_gate", rows, width, false);
  tensor(name + "_ape.weight", {ratio, rows}, 0.5);
  norm(name + "_norm", length);
}

void TinyDeepSeek4::layer(int index) {
  const auto name = [&](const char* text) { return in_layer(index, text); };
  norm(name("attn_norm"));
  tensor(name("attn_sinks.weight"), {heads}, 1);
  linear(name("attn_q_a"), kLow, width, false);
  norm(name("attn_q_a_norm"), kLow);
  linear(name("attn_q_b"), heads * dim, kLow, false);
  linear(name("attn_kv"), dim, width, false);
  norm(name("attn_kv_a_norm"), dim);
  linear(name("attn_output_a"), kGroups * kGroupRank, heads * dim / kGroups, false);
  linear(name("attn_output_b"), width, kGroups * kGroupRank, false);
  for (const char* part : {"hc_attn", "hc_ffn"}) {
    const int rows = (2 + kind_.streams) * kind_.streams;
    linear(name(part) + "_fn", rows, kind_.streams * width, false);
    tensor(name(part) + "_base.weight", {rows}, 0.5);
    tensor(name(part) + "_scale.weight", {3}, 0.2, 1);
  }
  if (const int ratio = kind_.ratios[static_cast<size_t>(index)]; ratio > 0) {
    compressor(name("attn_compressor"), ratio, dim);
    if (ratio == 4) {
      linear(name("indexer.proj"), kIndexerHeads, width, false);
      linear(name("indexer.attn_q_b"), kIndexerHeads * kIndexerDim, kLow, false);
      compressor(name("indexer_compressor"), ratio, kIndexerDim);
    }
  }
  norm(name("ffn_norm"));
  linear(name("ffn_gate_inp"), experts, width, false);
  if (index < kind_.hash_layers) {
    std::vector<int32_t>& table = tables_.emplace_back();
    for (int token = 0; token < vocabulary; ++token)
      for (int i = 0; i < used; ++i) table.push_back((token * (index + 3) + i * 2) % experts);
    file.add_tensor(name("ffn_gate_tid2eid.weight"), {vocabulary, used}, DType::i32,
                    std::as_bytes(std::span(table)));
  } else {
    tensor(name("exp_probs_b.bias"), {experts}, 0.3);
  }
  for (const char* part : {"ffn_gate_exps.weight", "ffn_up_exps.weight"})
    tensor(name(part), {experts, kExpertWide, width}, 1.2 / std::sqrt(width));
  tensor(name("ffn_down_exps.weight"), {experts, width, kExpertWide}, 1.2 / std::sqrt(kExpertWide));
  linear(name("ffn_gate_shexp"), kExpertWide, width, false);
  linear(name("ffn_up_shexp"), kExpertWide, width, false);
  linear(name("ffn_down_shexp"), width, kExpertWide, false);
}

TinyDeepSeek4::Mixed TinyDeepSeek4::mixed(const std::string& name, const Row& x) const {
  const auto n = static_cast<size_t>(kind_.streams), wide_ = static_cast<size_t>(width);
  const double small = exactly(kEpsilon);
  Row all = times(name + "_fn", plain_norm(x, epsilon));
  const Row &factors = values(name + "_scale.weight"), &added = values(name + "_base.weight");
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = all[i] * factors[std::min<size_t>(i / n, factors.size() - 1)] + added[i];
  Mixed mix;
  mix.input.resize(wide_);
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < wide_; ++c) mix.input[c] += (sigmoid(all[i]) + small) * x[i * wide_ + c];
  if (all.size() == n) return mix;  // that of the output
  for (size_t i = 0; i < n; ++i) mix.after.push_back(2 * sigmoid(all[n + i]));
  mix.shares.assign(all.begin() + static_cast<ptrdiff_t>(2 * n), all.end());
  const auto share = [&](size_t from, size_t to) -> double& { return mix.shares[from * n + to]; };
  for (size_t from = 0; from < n; ++from) {
    double sum = 0;
    for (size_t to = 0; to < n; ++to) sum += std::exp(share(from, to));
    for (size_t to = 0; to < n; ++to) share(from, to) = std::exp(share(from, to)) / sum + small;
  }
  for (int step = 0; step < kSteps; ++step)
    for (const bool by_rows : {true, false}) {
      if (by_rows && step == 0) continue;
      for (size_t i = 0; i < n; ++i) {
        double sum = small;
        for (size_t k = 0; k < n; ++k) sum += by_rows ? share(i, k) : share(k, i);
        for (size_t k = 0; k < n; ++k) (by_rows ? share(i, k) : share(k, i)) /= sum;
      }
    }
  return mix;
}

Row TinyDeepSeek4::joined(const Mixed& mix, const Row& x, const Row& result) const {
  const size_t n = mix.after.size(), wide_ = result.size();
  Row y(x.size());
  for (size_t to = 0; to < n; ++to)
    for (size_t c = 0; c < wide_; ++c) {
      double sum = mix.after[to] * result[c];
      for (size_t from = 0; from < n; ++from)
        sum += mix.shares[from * n + to] * x[from * wide_ + c];
      y[to * wide_ + c] = sum;
    }
  return y;
}

void TinyDeepSeek4::rotate_end(double* head, int length, int position, bool compresses,
                               bool back) const {
  double* const end = head + length - kTurned;
  for (int pair = 0; pair < kTurned / 2; ++pair) {
    const double angle =
        (back ? -position : position) *
        (compresses ? frequency(pair, kCompressedBase, kind_.scaling) : frequency(pair, base, 1));
    const double a = end[2 * pair], b = end[2 * pair + 1];
    end[2 * pair] = a * std::cos(angle) - b * std::sin(angle);
    end[2 * pair + 1] = a * std::sin(angle) + b * std::cos(angle);
  }
}

Rows TinyDeepSeek4::compressed(const std::string& name, int ratio, int length,
                               const Rows& x) const {
  const auto count = static_cast<size_t>(length), each = static_cast<size_t>(ratio);
  const size_t before = ratio == 4 ? each : 0, own = before > 0 ? count : 0;
  const Row& places = values(name + "_ape.weight");
  Rows keys;
  for (size_t first = 0; first + each <= x.size(); first += each) {
    Row key(count), sums(count);
    // Positions before the own ones give their first candidate, the own ones their last.
    for (size_t at = first >= before ? first - before : 0; at < first + each; ++at) {
      const Row candidates = times(name + "_kv", x[at]), scores = times(name + "_gate", x[at]);
      const size_t begin = at < first ? 0 : own, place = at % each * scores.size();
      for (size_t c = 0; c < count; ++c) {
        const double weight = std::exp(scores[begin + c] + places[place + begin + c]);
        key[c] += weight * candidates[begin + c];
        sums[c] += weight;
      }
    }
    for (size_t c = 0; c < count; ++c) key[c] /= sums[c];
    key = normed(name + "_norm", key);
    rotate_end(key.data(), length, static_cast<int>(first), true, false);
    keys.push_back(key);
  }
  return keys;
}

std::vector<std::vector<bool>> TinyDeepSeek4::chosen(int layer, const Rows& x,
                                                     const Rows& low) const {
  const Rows keys = compressed(in_layer(layer, "indexer_compressor"), 4, kIndexerDim, x);
  std::vector<std::vector<bool>> result;
  for (size_t i = 0; i < x.size(); ++i) {
    Row q = times(in_layer(layer, "indexer.attn_q_b"), low[i]);
    for (int h = 0; h < kIndexerHeads; ++h)
      rotate_end(q.data() + h * kIndexerDim, kIndexerDim, static_cast<int>(i), true, false);
    const Row weights = times(in_layer(layer, "indexer.proj"), x[i]);
    const size_t known = std::min(keys.size(), (i + 1) / 4);
    Row scores(keys.size(), -std::numeric_limits<double>::infinity());
    for (size_t k = 0; k < known; ++k) {
      scores[k] = 0;
      for (size_t h = 0; h < kIndexerHeads; ++h)
        scores[k] += weights[h] *
                     std::max(0.0, dot(q.data() + h * kIndexerDim, keys[k].data(), kIndexerDim));
    }
    // Of equal scores, mostly of 0, those are chosen that std::partial_sort puts first.
    std::vector<size_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    const size_t count = std::min(keys.size(), static_cast<size_t>(kind_.chosen));
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                      [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    std::vector<bool>& row = result.emplace_back(keys.size());
    for (size_t k = 0; k < count; ++k) row[order[k]] = true;
    for (size_t k = count; k < known; ++k)
      if (const double gap = scores[order[count - 1]] - scores[order[k]]; gap > 0)
        least_gap_ = std::min(least_gap_, gap);
  }
  return result;
}

Rows TinyDeepSeek4::attention(int layer, const Rows& x) const {
  const auto name = [&](const char* text) { return in_layer(layer, text); };
  const int ratio = kind_.ratios[static_cast<size_t>(layer)];
  Rows low, keys, far, result;
  for (size_t i = 0; i < x.size(); ++i) {
    low.push_back(normed(name("attn_q_a_norm"), times(name("attn_q_a"), x[i])));
    keys.push_back(normed(name("attn_kv_a_norm"), times(name("attn_kv"), x[i])));
    rotate_end(keys.back().data(), dim, static_cast<int>(i), ratio > 0, false);
  }
  std::vector<std::vector<bool>> is_chosen;
  if (ratio > 0) far = compressed(name("attn_compressor"), ratio, dim, x);
  if (ratio == 4) is_chosen = chosen(layer, x, low);
  const Row& sinks = values(name("attn_sinks.weight"));
  const auto length = static_cast<size_t>(dim);
  for (size_t i = 0; i < x.size(); ++i) {
    const Row all = times(name("attn_q_b"), low[i]);
    Row heads_seen;
    for (size_t h = 0; h < static_cast<size_t>(heads); ++h) {
      const auto first = all.begin() + static_cast<ptrdiff_t>(h * length);
      Row q = plain_norm(Row(first, first + dim), epsilon), seen(length);
      rotate_end(q.data(), dim, static_cast<int>(i), ratio > 0, false);
      double sum = std::exp(sinks[h]);
      const auto see = [&](const Row& key) {
        const double weight = std::exp(dot(q.data(), key.data(), dim) / std::sqrt(dim));
        sum += weight;
        for (size_t c = 0; c < length; ++c) seen[c] += weight * key[c];
      };
      const auto window = static_cast<size_t>(kind_.window);
      for (size_t j = i + 1 > window ? i + 1 - window : 0; j <= i; ++j) see(keys[j]);
      for (size_t k = 0; k < far.size() && (k + 1) * static_cast<size_t>(ratio) <= i + 1; ++k)
        if (is_chosen.empty() || is_chosen[i][k]) see(far[k]);
      for (double& each : seen) each /= sum;
      rotate_end(seen.data(), dim, static_cast<int>(i), ratio > 0, true);
      heads_seen.insert(heads_seen.end(), seen.begin(), seen.end());
    }
    const Row& matrix = values(name("attn_output_a.weight"));
    const size_t in = heads_seen.size() / kGroups;
    Row narrow;
    for (size_t row = 0; row < static_cast<size_t>(kGroups * kGroupRank); ++row)
      narrow.push_back(dot(matrix.data() + row * in, heads_seen.data() + row / kGroupRank * in,
                           static_cast<int>(in)));
    result.push_back(times(name("attn_output_b"), narrow));
  }
  return result;
}

Row TinyDeepSeek4::gated(const Row& gate, const Row& up, double limit) const {
  Row y;
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = std::min(gate[i], exactly(limit));
    y.push_back(g * sigmoid(g) * std::clamp(up[i], -exactly(limit), exactly(limit)));
  }
  return y;
}

Row TinyDeepSeek4::mixture(int layer, const Row& x, int32_t token) const {
  const auto name = [&](const char* text) { return in_layer(layer, text); };
  Row scores = times(name("ffn_gate_inp"), x);
  for (double& each : scores) each = std::sqrt(std::log1p(std::exp(each)));
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = static_cast<size_t>(used);
  if (layer < kind_.hash_layers) {
    const auto& table = *std::next(tables_.begin(), layer);
    for (size_t i = 0; i < count; ++i)
      order[i] = static_cast<size_t>(table[static_cast<size_t>(token) * count + i]);
  } else {
    const Row& bias = values(name("exp_probs_b.bias"));
    std::ranges::sort(
        order, [&](size_t a, size_t b) { return scores[a] + bias[a] > scores[b] + bias[b]; });
  }
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += scores[order[i]];
  Row y = times(name("ffn_down_shexp"), gated(times(name("ffn_gate_shexp"), x),
                                              times(name("ffn_up_shexp"), x), kSharedLimit));
  for (size_t i = 0; i < count; ++i) {
    const auto product = [&](const char* part, const Row& by) {
      const Row& all = values(name(part));
      const size_t rows = all.size() / static_cast<size_t>(experts) / by.size();
      Row made;
      for (size_t row = 0; row < rows; ++row)
        made.push_back(dot(all.data() + (order[i] * rows + row) * by.size(), by.data(),
                           static_cast<int>(by.size())));
      return made;
    };
    const Row inner =
        gated(product("ffn_gate_exps.weight", x), product("ffn_up_exps.weight", x), kLimit);
    const Row down = product("ffn_down_exps.weight", inner);
    for (size_t c = 0; c < y.size(); ++c)
      y[c] += down[c] * scores[order[i]] / sum * exactly(kExpertScale);
  }
  return y;
}

Rows TinyDeepSeek4::logits(std::span<const int32_t> tokens) const {
  least_gap_ = std::numeric_limits<double>::infinity();
  Rows x;
  for (const int32_t token : tokens) {
    const auto first = values("token_embd.weight").begin() + static_cast<ptrdiff_t>(token) * width;
    Row& row = x.emplace_back();
    for (int i = 0; i < kind_.streams; ++i) row.insert(row.end(), first, first + width);
  }
  for (int layer = 0; layer < layers; ++layer) {
    std::vector<Mixed> mixes;
    Rows inputs;
    for (const Row& row : x) {
      mixes.push_back(mixed(in_layer(layer, "hc_attn"), row));
      inputs.push_back(normed(in_layer(layer, "attn_norm"), mixes.back().input));
    }
    const Rows seen = attention(layer, inputs);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = joined(mixes[i], x[i], seen[i]);
      const Mixed mix = mixed(in_layer(layer, "hc_ffn"), x[i]);
      x[i] = joined(mix, x[i],
                    mixture(layer, normed(in_layer(layer, "ffn_norm"), mix.input), tokens[i]));
    }
  }
  for (Row& row : x) row = times("output", normed("output_norm", mixed("output_hc", row).input));
  return x;
}

}  // namespace prism::test
