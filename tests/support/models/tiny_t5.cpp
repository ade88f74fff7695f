// The weights of a tiny T5, and what it computes in float64.
#include "support/models/tiny_t5.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace prism::test {

using Row = TinyEncoder::Row;
using Rows = TinyEncoder::Rows;

namespace {

std::string name_of(const char* part, int layer, const char* name = "") {
  return std::string(part) + ".blk." + std::to_string(layer) + "." + name;
}

// By the paper: half of the buckets hold one distance each, the others grow with its logarithm up
// to 128. Where both directions count, each has half of the buckets.
int bucket(int distance, int buckets, bool both_ways) {
  int first = 0;
  if (both_ways) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = std::max(-distance, 0);
  }
  const int exact = buckets / 2;
  if (distance < exact) return first + distance;
  constexpr double kRounding = 1e-9;  // limits that are whole numbers belong to the upper bucket
  const double place =
      std::log(static_cast<double>(distance) / exact) / std::log(128.0 / exact) * (buckets - exact);
  return first + std::min(exact + static_cast<int>(place + kRounding), buckets - 1);
}

void add(Rows& x, const Rows& more) {
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t c = 0; c < x[i].size(); ++c) x[i][c] += more[i][c];
}

}  // namespace

TinyT5::TinyT5(const T5Kind& kind) : TinyEncoder(kind.decodes ? "t5" : "t5encoder"), kind_(kind) {
  rms = causal = true;  // the key is not in files of T5
  layers = 2;
  if (kind.letters) use_letters();
  set_metadata();
  set("attention.relative_buckets_count", kind.buckets);
  for (int i = 0; i < layers; ++i) layer(name_of("enc", i), false, kind.biased || i == 0);
  norm("enc.output_norm");
  if (!kind.decodes) return;
  set("decoder_block_count", kind.decoder_layers);
  set("decoder_start_token_id", static_cast<int>(kStart));
  for (int i = 0; i < kind.decoder_layers; ++i)
    layer(name_of("dec", i), true, kind.biased || i == 0);
  norm("dec.output_norm");
  if (!kind.tied) linear("output", vocabulary, width, false);
}

void TinyT5::use_letters() {
  std::vector<std::string> tokens = {"<pad>", "</s>", "<unk>", "\u2581"};
  for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
  std::vector<int32_t> types(tokens.size(), 1);
  types[0] = types[1] = 3, types[2] = 2;
  vocabulary = static_cast<int>(tokens.size());
  file.set("tokenizer.ggml.model", "t5");
  file.set("tokenizer.ggml.tokens", tokens);
  file.set("tokenizer.ggml.token_type", types);
  file.set("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1.f));
  file.set("tokenizer.ggml.eos_token_id", kEnd);
  file.set("tokenizer.ggml.padding_token_id", kStart);
  file.set("tokenizer.ggml.unknown_token_id", 2);
}

void TinyT5::layer(const std::string& prefix, bool crosses, bool biased) {
  const auto heads_of = [&](const std::string& name) {
    norm(name + "norm");
    for (const char* each : {"q", "k", "v"}) {
      // Scores are not divided by the root of the length.
      tensor(name + each + ".weight", {heads * dim, width}, 0.7 / std::sqrt(width));
    }
    linear(name + "o", width, heads * dim, false);
  };
  heads_of(prefix + "attn_");
  if (biased) tensor(prefix + "attn_rel_b.weight", {kind_.buckets, heads}, 1);
  if (crosses) heads_of(prefix + "cross_attn_");
  norm(prefix + "ffn_norm");
  if (kind_.gated) linear(prefix + "ffn_gate", wide, width, false);
  linear(prefix + "ffn_up", wide, width, false);
  linear(prefix + "ffn_down", width, wide, false);
}

std::string TinyT5::biases_of(const char* part, int layer) const {
  return name_of(part, kind_.biased ? layer : 0, "attn_rel_b.weight");
}

Rows TinyT5::embedded(std::span<const int32_t> tokens) const {
  Rows x;
  for (const int32_t token : tokens) {
    const auto first = values("token_embd.weight").begin() + static_cast<ptrdiff_t>(token) * width;
    x.emplace_back(first, first + width);
  }
  return x;
}

Rows TinyT5::attended(const std::string& prefix, const Rows& x, const Rows& others,
                      const std::string& biases, bool both_ways) const {
  Rows k, v, result;
  for (const Row& row : others)
    k.push_back(times(prefix + "k", row)), v.push_back(times(prefix + "v", row));
  for (size_t i = 0; i < x.size(); ++i) {
    const Row q = times(prefix + "q", x[i]);
    Row seen(q.size());
    for (size_t h = 0; h < static_cast<size_t>(heads); ++h) {
      const size_t first = h * static_cast<size_t>(dim), end = first + static_cast<size_t>(dim);
      const size_t keys = both_ways ? others.size() : i + 1;
      Row weights(keys);
      double sum = 0;
      for (size_t j = 0; j < keys; ++j) {
        double score = 0;
        for (size_t d = first; d < end; ++d) score += q[d] * k[j][d];
        if (!biases.empty()) {
          const int distance = static_cast<int>(j) - static_cast<int>(i);
          const int place = bucket(distance, kind_.buckets, both_ways) * heads;
          score += values(biases)[static_cast<size_t>(place) + h];
        }
        sum += weights[j] = std::exp(score);
      }
      for (size_t j = 0; j < keys; ++j)
        for (size_t d = first; d < end; ++d) seen[d] += weights[j] / sum * v[j][d];
    }
    result.push_back(times(prefix + "o", seen));
  }
  return result;
}

void TinyT5::add_feed_forward(const std::string& prefix, Rows& x) const {
  for (Row& row : x) {
    const Row input = normed(prefix + "ffn_norm", row);
    Row inner = times(prefix + "ffn_up", input);
    const Row gate = kind_.gated ? times(prefix + "ffn_gate", input) : Row();
    for (size_t i = 0; i < inner.size(); ++i) {
      if (!kind_.gated) {
        inner[i] = std::max(inner[i], 0.0);
        continue;
      }
      const double g = gate[i];
      inner[i] *=
          g / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g)));
    }
    const Row down = times(prefix + "ffn_down", inner);
    for (size_t i = 0; i < row.size(); ++i) row[i] += down[i];
  }
}

Rows TinyT5::encoded(std::span<const int32_t> source) const {
  Rows x = embedded(source);
  for (int layer = 0; layer < layers; ++layer) {
    const std::string prefix = name_of("enc", layer);
    Rows input;
    for (const Row& row : x) input.push_back(normed(prefix + "attn_norm", row));
    add(x, attended(prefix + "attn_", input, input, biases_of("enc", layer), true));
    add_feed_forward(prefix, x);
  }
  for (Row& row : x) row = normed("enc.output_norm", row);
  return x;
}

Rows TinyT5::logits(std::span<const int32_t> source, std::span<const int32_t> tokens) const {
  const Rows seen = encoded(source);
  Rows x = embedded(tokens);
  for (int layer = 0; layer < kind_.decoder_layers; ++layer) {
    const std::string prefix = name_of("dec", layer);
    const auto all = [&](const char* name) {
      Rows rows;
      for (const Row& row : x) rows.push_back(normed(prefix + name, row));
      return rows;
    };
    const Rows input = all("attn_norm");
    add(x, attended(prefix + "attn_", input, input, biases_of("dec", layer), false));
    add(x, attended(prefix + "cross_attn_", all("cross_attn_norm"), seen, "", true));
    add_feed_forward(prefix, x);
  }
  for (Row& row : x) {
    row = normed("dec.output_norm", row);
    if (!kind_.tied) {
      row = times("output", row);
      continue;
    }
    for (double& each : row) each /= std::sqrt(width);
    row = times("token_embd", row);
  }
  return x;
}

std::vector<int32_t> TinyT5::answer(std::span<const int32_t> source, size_t most) const {
  std::vector<int32_t> tokens = {kStart};
  while (tokens.size() <= most) {
    const Row last = logits(source, tokens).back();
    const auto next = static_cast<int32_t>(std::ranges::max_element(last) - last.begin());
    if (next == kEnd) break;
    tokens.push_back(next);
  }
  tokens.erase(tokens.begin());
  return tokens;
}

}  // namespace prism::test
