// deepseek32 (V3.2) and glm-dsa (GLM 5): deepseek2 in which an indexer chooses the keys of a query.
#include "llm/architectures/deepseek2.h"

namespace prism::llm {

namespace {

class DeepSeek32 : public DeepSeek2 {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    DeepSeek2::configure(file, config);
    set_indexer(file, config);
    config.temperature_scale = 0;
  }
};

// Layers without an indexer see the keys that the last one chose.
class GlmDsa : public DeepSeek32 {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    DeepSeek32::configure(file, config);
    config.indexer_pairing = RopePairing::adjacent;
    set_expert_weights(file, config, ExpertScores::sigmoid);
    // GLM 5.2, which has the longest context, has an indexer in its first two layers and then in
    // every fourth, the models before it in all of them.
    const bool shares = config.context >= 1 << 20;
    std::vector<int64_t> own(static_cast<size_t>(config.layers), 1);
    if (shares)
      for (size_t i = 0; i < own.size(); ++i) own[i] = i < 2 || i % 4 == 2;
    if (file.has(config_key(file, "attention.indexer.types")))
      own = config_layers(file, "attention.indexer.types", config.layers, 0, 1);
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i] == 0) config.each_layer[i].indexer = 0;
  }
  // Files may have indexers that are not used.
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    DeepSeek32::load_layer(from, layer);
    if (layer.indexer) return;
    for (const char* name :
         {"k_norm.weight", "k_norm.bias", "proj.weight", "attn_k.weight", "attn_q_b.weight"})
      from.leave_out(std::string("indexer.") + name);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_deepseek32() { return std::make_unique<DeepSeek32>(); }
std::unique_ptr<Architecture> make_glm_dsa() { return std::make_unique<GlmDsa>(); }

}  // namespace prism::llm
