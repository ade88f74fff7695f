// exaone-moe (K-EXAONE): windowed layers, which alone are rotated; experts after the first layers.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class ExaoneMoe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    set_windows(file, config, 128, 4);
    for (LayerConfig& each : config.each_layer) each.rotated = each.windowed;
    set_expert_width(file, config);
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::sigmoid);
    set_shared_width(file, config, config.expert_feed_forward);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_exaone_moe() { return std::make_unique<ExaoneMoe>(); }

}  // namespace prism::llm
