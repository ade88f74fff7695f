// hunyuan-dense, hunyuan-moe and the text part of hunyuan_vl: norms of q and k after the rotation.
#include <cmath>

#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Hunyuan : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.rotates_before_norm = true;
    const bool is_moe = config.architecture == "hunyuan-moe";
    const double alpha = config_number(file, "rope.scaling.alpha", 0, {.zero = true});
    if (alpha > 0 && !is_moe) {
      const auto dim = static_cast<double>(config.head_dim);
      config.rope_base *= std::pow(alpha, dim / (dim - 2));
    }
    if (config.experts == 0 || !is_moe) return have_no_experts(config);
    set_shared_width(file, config, config.feed_forward);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_hunyuan() { return std::make_unique<Hunyuan>(); }

}  // namespace prism::llm
