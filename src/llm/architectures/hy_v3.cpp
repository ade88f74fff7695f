// hy_v3: norms of q and k, experts where the file has them, a shared expert.
#include <fmt/format.h>

#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class HyV3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    set_expert_width(file, config, true);
    set_expert_weights(file, config, ExpertScores::sigmoid);
    set_shared_width(file, config, config.expert_feed_forward);
    for (int64_t i = 0; i < config.layers; ++i)
      config.each_layer[static_cast<size_t>(i)].experts =
          file.find_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr;
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    if (layer.router)  // files may have both
      for (const char* name : {"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"})
        from.leave_out(name);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_hy_v3() { return std::make_unique<HyV3>(); }

}  // namespace prism::llm
