// minimax-m3: minimax-m2 with leading feed-forward layers, a shared expert, and an indexer that
// chooses blocks of keys for each key/value head.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class MiniMaxM3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.activation = Activation::silu_clamped;
    set_expert_width(file, config);
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::sigmoid);
    set_shared_count(file, config);
    set_indexer(file, config);
    config.indexer_layer_norm = false;
    config.indexer_block = config_integer(file, "attention.indexer.block_size", 0, 1, 1 << 16);
    config.indexer_near = config_integer(file, "attention.indexer.local_blocks", 0, 0, 1 << 16);
    // Without a head of the indexer for each key/value head all keys are seen.
    const bool is_whole = config.indexer_heads == config.kv_heads;
    for (LayerConfig& each : config.each_layer)
      if (!each.experts || !is_whole) each.indexer = 0;
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    if (from.config().at(from.layer()).indexer == 0)
      for (const char* name : {"q_proj", "k_proj", "q_norm", "k_norm"})
        from.leave_out(std::string("indexer.") + name + ".weight");
  }
};

}  // namespace

std::unique_ptr<Architecture> make_minimax_m3() { return std::make_unique<MiniMaxM3>(); }

}  // namespace prism::llm
