// Compares rwkv6qwen2 and arwkv7 with their definitions in f64 on tiny random models.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "support/devices/devices.h"
#include "support/models/tiny_encoder.h"
#include "support/models/tiny_model.h"

namespace prism::llm {
namespace {

using test::TinyEncoder;
using Row = TinyEncoder::Row;
using Rows = TinyEncoder::Rows;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Weights and the parts of a layer that both have; tensors are drawn when they are first needed.
class QwenRwkv {
 public:
  static constexpr int kWidth = 24, kHead = 8, kHeads = 3, kWide = 40, kLayers = 2, kRank = 4;

  explicit QwenRwkv(const std::string& architecture) : tiny(architecture) {
    tiny.layers = kLayers, tiny.width = kWidth, tiny.wide = kWide;
    tiny.heads = tiny.kv_heads = kHeads, tiny.dim = kHead;
    tiny.rms = tiny.causal = true;
    tiny.set_metadata();
    tiny.set("wkv.head_size", kHead);
    for (int i = 0; i < kLayers; ++i) {
      for (const char* name : {"attn_norm", "ffn_norm"}) tiny.norm(in(i, name));
      tiny.linear(in(i, "ffn_gate"), kWide, kWidth, false);
      tiny.linear(in(i, "ffn_up"), kWide, kWidth, false);
      tiny.linear(in(i, "ffn_down"), kWidth, kWide, false);
      for (const char* name : {"time_mix_receptance", "time_mix_output"})
        tiny.linear(in(i, name), kWidth, kWidth, false);
    }
    tiny.norm("output_norm");
    tiny.linear("output", tiny.vocabulary, kWidth, false);
  }
  virtual ~QwenRwkv() = default;

  Rows logits(std::span<const int32_t> tokens) {
    Rows x;
    for (const int32_t token : tokens) {
      const Row& table = tiny.values("token_embd.weight");
      x.emplace_back(table.begin() + token * kWidth, table.begin() + (token + 1) * kWidth);
    }
    for (layer = 0; layer < kLayers; ++layer) {
      states.assign(kHeads, Rows(kHead, Row(kHead)));
      Row before(kWidth);
      for (size_t t = 0; t < x.size(); ++t) {
        const Row input = tiny.normed(in(layer, "attn_norm"), x[t]);
        add(x[t], mix(t, input, before));
        before = input;
        const Row inner = tiny.normed(in(layer, "ffn_norm"), x[t]);
        const Row gate = tiny.times(in(layer, "ffn_gate"), inner);
        Row up = tiny.times(in(layer, "ffn_up"), inner);
        for (size_t i = 0; i < up.size(); ++i) up[i] *= gate[i] * sigmoid(gate[i]);
        add(x[t], tiny.times(in(layer, "ffn_down"), up));
      }
    }
    for (Row& row : x) row = tiny.times("output", tiny.normed("output_norm", row));
    return x;
  }

  static std::string in(int layer, const std::string& name) {
    return TinyEncoder::in_layer(layer, name);
  }
  TinyEncoder tiny;

 protected:
  virtual Row mix(size_t t, const Row& x, const Row& before) = 0;
  Row times(const char* name, const Row& x) const { return tiny.times(in(layer, name), x); }
  const Row& at(const std::string& name) const { return tiny.values(in(layer, name) + ".weight"); }
  // Row i of a matrix of mixing weights, and what is added to it.
  static Row mixed(const Row& x, const Row& before, const Row& by, size_t i = 0,
                   const Row& more = {}) {
    Row y = x;
    for (size_t c = 0; c < y.size(); ++c)
      y[c] += (before[c] - x[c]) * (by[i * x.size() + c] + (more.empty() ? 0 : more[c]));
    return y;
  }
  static void add(Row& to, const Row& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }
  int layer = 0;
  std::vector<Rows> states;  // [heads, keys, values]
};

class Rwkv6Qwen2 : public QwenRwkv {
 public:
  static constexpr int kGiven = kHead;  // one key and value for all heads

  Rwkv6Qwen2() : QwenRwkv("rwkv6qwen2") {
    tiny.set("attention.head_count_kv", 1);
    tiny.set("time_mix_extra_dim", kRank);
    tiny.set("time_decay_extra_dim", kRank);
    for (int i = 0; i < kLayers; ++i) {
      tiny.linear(in(i, "time_mix_w1"), 5 * kRank, kWidth, false);
      tiny.tensor(in(i, "time_mix_w2.weight"), {5, kWidth, kRank}, 0.5);
      tiny.tensor(in(i, "time_mix_lerp_x.weight"), {kWidth}, 0.5);
      tiny.tensor(in(i, "time_mix_lerp_fused.weight"), {5, 1, 1, kWidth}, 0.5);
      tiny.tensor(in(i, "time_mix_decay.weight"), {kWidth}, 0.5, -1);
      tiny.linear(in(i, "time_mix_decay_w1"), kRank, kWidth, false);
      tiny.linear(in(i, "time_mix_decay_w2"), kWidth, kRank, false);
      tiny.linear(in(i, "time_mix_key"), kGiven, kWidth, true);
      tiny.linear(in(i, "time_mix_value"), kGiven, kWidth, true);
      tiny.linear(in(i, "time_mix_gate"), kWidth, kWidth, false);
      tiny.tensor(in(i, "time_mix_receptance.bias"), {kWidth}, 0.2);
    }
  }

 protected:
  Row mix(size_t, const Row& x, const Row& before) override {
    Row by = times("time_mix_w1", mixed(x, before, at("time_mix_lerp_x")));
    for (double& each : by) each = std::tanh(each);
    const auto row = [&](size_t i) {
      Row more(kWidth);
      for (size_t c = 0; c < kWidth; ++c)
        for (size_t j = 0; j < kRank; ++j)
          more[c] += at("time_mix_w2")[(i * kWidth + c) * kRank + j] * by[i * kRank + j];
      return mixed(x, before, at("time_mix_lerp_fused"), i, more);
    };
    Row inner = times("time_mix_decay_w1", row(0));
    for (double& each : inner) each = std::tanh(each);
    Row decay = times("time_mix_decay_w2", inner);
    for (size_t c = 0; c < kWidth; ++c)
      decay[c] = std::exp(-std::exp(decay[c] + at("time_mix_decay")[c]));
    const Row k = times("time_mix_key", row(1)), v = times("time_mix_value", row(2)),
              r = times("time_mix_receptance", row(3)), gate = times("time_mix_gate", row(4));
    Row y(kWidth);
    for (size_t h = 0; h < kHeads; ++h)
      for (size_t i = 0; i < kHead; ++i)
        for (size_t j = 0; j < kHead; ++j) {
          const size_t c = h * kHead + i;
          double& state = states[h][i][j];
          state = decay[c] * state + k[i] * (1 - decay[c]) * v[j];
          y[h * kHead + j] += r[c] / std::sqrt(kHead) * state;
        }
    for (size_t c = 0; c < kWidth; ++c) y[c] *= sigmoid(gate[c]);
    return times("time_mix_output", y);
  }
};

class Arwkv7 : public QwenRwkv {
 public:
  explicit Arwkv7(bool gated) : QwenRwkv("arwkv7"), gated_(gated) {
    for (int i = 0; i < kLayers; ++i) {
      for (const std::string name : {"w", "a", "v", "g"}) {
        if (name == "g" && !gated) continue;
        tiny.linear(in(i, "time_mix_" + name + "1"), kRank, kWidth, false);
        tiny.linear(in(i, "time_mix_" + name + "2"), kWidth, kRank, false);
        if (name != "g") tiny.tensor(in(i, "time_mix_" + name + "0.weight"), {kWidth}, 0.5);
      }
      tiny.tensor(in(i, "time_mix_lerp_fused.weight"), {gated ? 6 : 5, 1, 1, kWidth}, 0.5);
      for (const char* name : {"time_mix_k_k", "time_mix_k_a", "time_mix_r_k"})
        tiny.tensor(in(i, std::string(name) + ".weight"), {kWidth}, 0.5);
      tiny.linear(in(i, "time_mix_key"), kWidth, kWidth, false);
      tiny.linear(in(i, "time_mix_value"), kWidth, kWidth, false);
    }
  }

 protected:
  Row mix(size_t t, const Row& x, const Row& before) override {
    const auto row = [&](size_t i) { return mixed(x, before, at("time_mix_lerp_fused"), i); };
    const auto narrow = [&](const std::string& name, const Row& from, double (*function)(double)) {
      Row inner = times(("time_mix_" + name + "1").c_str(), from);
      for (double& each : inner) each = function ? function(each) : each;
      Row y = times(("time_mix_" + name + "2").c_str(), inner);
      if (name != "g") add(y, at("time_mix_" + name + "0"));
      return y;
    };
    const Row r = times("time_mix_receptance", row(0)), key = times("time_mix_key", row(2));
    const Row rate = narrow("w", row(1), std::tanh), in_rate = narrow("a", row(4), nullptr);
    Row v = times("time_mix_value", row(3));
    if (layer == 0) {
      first_.resize(t + 1);
      first_[t] = v;
    } else {
      const Row part = narrow("v", row(3), nullptr);
      for (size_t c = 0; c < kWidth; ++c) v[c] += (first_[t][c] - v[c]) * sigmoid(part[c]);
    }
    Row y(kWidth);
    for (size_t h = 0; h < kHeads; ++h) {
      Row removed(kHead), k(kHead);
      double length = 0, own = 0;
      for (size_t i = 0; i < kHead; ++i) {
        const size_t c = h * kHead + i;
        removed[i] = key[c] * at("time_mix_k_k")[c];
        length += removed[i] * removed[i];
        k[i] = key[c] * (1 + (sigmoid(in_rate[c]) - 1) * at("time_mix_k_a")[c]);
        own += k[i] * r[c] * at("time_mix_r_k")[c];
      }
      for (double& each : removed) each /= std::max(std::sqrt(length), 1e-12);
      for (size_t j = 0; j < kHead; ++j) {
        double held = 0;
        for (size_t i = 0; i < kHead; ++i) held -= removed[i] * states[h][i][j];
        for (size_t i = 0; i < kHead; ++i) {
          const size_t c = h * kHead + i;
          double& state = states[h][i][j];
          state = std::exp(-0.606531 * sigmoid(rate[c])) * state +
                  removed[i] * sigmoid(in_rate[c]) * held + k[i] * v[h * kHead + j];
          y[h * kHead + j] += r[c] * state;
        }
        y[h * kHead + j] += own * v[h * kHead + j];
      }
    }
    if (gated_) {
      const Row gate = narrow("g", row(5), sigmoid);
      for (size_t c = 0; c < kWidth; ++c) y[c] *= gate[c];
    }
    return times("time_mix_output", y);
  }

 private:
  bool gated_;
  Rows first_;  // the values of the first layer
};

// Software devices take long to compile kernels, and rwkv_device_test runs the same there.
void check(QwenRwkv& of) {
  const GgufFile file = of.tiny.open();
  const std::vector<int32_t> tokens = test::some_tokens(13, of.tiny.vocabulary);
  const Rows wanted = of.logits(tokens);
  Row all;
  for (const Row& row : wanted) all.insert(all.end(), row.begin(), row.end());
  for (const Device& device : test::every_device()) {
    if (device.info().software && !device.info().is_cpu) continue;
    Model model = Model::load(file, {.placement = place_on(file, device, 40, DType::f32)});
    const SequencePart part{0, 0, tokens, Wanted::all};
    test::expect_close(model.forward(std::span(&part, 1)).to_vector<float>(), all, 2e-4,
                       device.id());
    for (size_t t = 0; t < tokens.size(); ++t) {
      const SequencePart next{0, static_cast<int32_t>(t), std::span(tokens).subspan(t, 1)};
      test::expect_close(model.forward(std::span(&next, 1)).to_vector<float>(), wanted[t], 2e-4,
                         device.id() + " token " + std::to_string(t));
    }
  }
}

TEST(RwkvInQwen, Rwkv6) {
  Rwkv6Qwen2 model;
  check(model);
}

TEST(RwkvInQwen, Rwkv7) {
  for (const bool gated : {false, true}) {
    Arwkv7 model(gated);
    check(model);
  }
}

}  // namespace
}  // namespace prism::llm
