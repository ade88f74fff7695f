// qwen: the first Qwen; its files count gate and up together as the feed-forward length.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    for (LayerConfig& each : config.each_layer) each.feed_forward /= 2;
    config.qkv_rows = 3 * config.width;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_qwen() { return std::make_unique<Qwen>(); }

}  // namespace prism::llm
