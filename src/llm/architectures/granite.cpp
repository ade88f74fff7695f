// granite, granitemoe and granitehybrid: llama with scale factors for embeddings, attention scores,
// residuals and logits; experts with a shared one; layers of Mamba 2. graniteswitch: adapters that
// tokens switch on.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "llm/architectures/recurrent.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"

namespace prism::llm {

namespace {

class Granite : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.embedding_scale = config_factor(file, "embedding_scale", 1);
    config.residual_scale = config_factor(file, "residual_scale", 1);
    config.attention_scale = config_number(file, "attention.scale", 0, {.zero = true});
    config.logit_scale = 1 / config_factor(file, "logit_scale", 1);
    if (config.experts > 0) set_shared_width(file, config, 0);
    if (config.architecture == "granitemoe") return;
    if (!file.boolean_or(config_key(file, "rope.scaling.finetuned"), true)) config.rope_dims = 0;
  }
};

class GraniteHybrid : public Granite {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    Granite::configure(file, config);
    set_ssm(file, config);
    set_states_of_headless(config, mamba2_states(config));
  }
  void load_mixer(WeightLoader& from, LayerWeights& layer) const override {
    is_recurrent(from.config(), from.layer()) ? load_mamba2(from, layer) : from.attention(layer);
  }
  Tensor mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    return is_recurrent(blocks.config(), blocks.layer()) ? mamba2(blocks, w, x)
                                                         : blocks.attention(w, x);
  }
};

// Tokens of its own switch on an adapter for what follows, and are embedded as other tokens.
class GraniteSwitch : public Granite {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    Granite::configure(file, config);
    config.own_adapters = config_integer(file, "adapters.count", 0, 1, 1024);
    config.own_rank = config_integer(file, "adapters.lora_rank", 0, 1, 4096);
    config.switch_gain = config_number(file, "adapters.router_gain", 15);
    if (config.own_adapters == 0 || config.own_rank == 0)
      throw Error(ErrorCode::kNotFound,
                  fmt::format("model: the file has no {} or no {}; {} needs both",
                              config_key(file, "adapters.count"),
                              config_key(file, "adapters.lora_rank"), config.architecture));
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    Granite::load_layer(from, layer);
    const Config& config = from.config();
    const LayerConfig& sizes = config.at(from.layer());
    const auto load = [&](const std::string& name, Linear& to, int64_t out, int64_t in) {
      if (to.lora_a)
        throw Error(ErrorCode::kNotSupported,
                    fmt::format("model: an adapter of {}, which has adapters of the model already; "
                                "leave it out",
                                to.name));
      to.lora_a =
          from.take_in_layer(name + ".lora_a", {config.own_adapters + 1, config.own_rank, in});
      to.lora_b =
          from.take_in_layer(name + ".lora_b", {config.own_adapters + 1, out, config.own_rank});
    };
    const int64_t q = sizes.heads * sizes.head_dim, kv = sizes.kv_heads * sizes.head_dim;
    load("attn_q", layer.q, q, config.width);
    load("attn_k", layer.k, kv, config.width);
    load("attn_v", layer.v, kv, config.width);
    load("attn_output", layer.out, config.width, q);
    load("ffn_gate", layer.gate, sizes.feed_forward, config.width);
    load("ffn_up", layer.up, sizes.feed_forward, config.width);
    load("ffn_down", layer.down, config.width, sizes.feed_forward);
  }

  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    Granite::load_ends(from, placement, weights);
    const Config& config = from.config();
    const auto count = static_cast<size_t>(config.vocabulary);
    std::vector<float> adapters(count, 0);
    std::vector<int32_t> tokens(count);
    std::iota(tokens.begin(), tokens.end(), 0);
    const std::vector<int64_t> switches = ids(from.file(), config, "adapters.token_ids_activate"),
                               others = ids(from.file(), config, "adapters.token_ids_substitute");
    for (size_t i = 0; i < switches.size(); ++i) {
      const auto token = static_cast<size_t>(switches[i]);
      adapters[token] = static_cast<float>(i + 1);
      tokens[token] = static_cast<int32_t>(others[i]);
    }
    weights.others[kAdapters] = from_vector(adapters, {config.vocabulary}, placement.embedding);
    weights.others[kTokens] = from_vector(tokens, {config.vocabulary}, placement.embedding);
  }

  Tensor embed(Blocks& blocks) const override {
    const Weights& w = blocks.weights();
    const Tensor tokens = blocks.tokens(w.embedding.device());
    blocks.choose_adapters(gather_rows(w.others.at(kAdapters), tokens));
    const Tensor rows = gather_rows(w.embedding, gather_rows(w.others.at(kTokens), tokens));
    return cast(rows, DType::f32) * blocks.config().embedding_scale;
  }

 private:
  static constexpr const char *kAdapters = "adapters of tokens", *kTokens = "tokens for tokens";

  static std::vector<int64_t> ids(const GgufFile& file, const Config& config, const char* name) {
    const std::string key = config_key(file, name);
    const std::vector<int64_t> result = file.integers(key);
    const bool fits =
        std::ranges::all_of(result, [&](int64_t id) { return id >= 0 && id < config.vocabulary; });
    if (!fits || std::ssize(result) != config.own_adapters)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("model: {} has {} tokens; there must be one below {} for each of {} "
                              "adapters",
                              key, result.size(), config.vocabulary, config.own_adapters));
    return result;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_graniteswitch() { return std::make_unique<GraniteSwitch>(); }
std::unique_ptr<Architecture> make_granitehybrid() { return std::make_unique<GraniteHybrid>(); }
std::unique_ptr<Architecture> make_granite() { return std::make_unique<Granite>(); }

}  // namespace prism::llm
