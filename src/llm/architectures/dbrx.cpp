// dbrx: layer norms without bias, limited q, k and v, experts.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Dbrx : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    config.norms = NormKind::layer;
    config.qkv_clamp = config_number(file, "attention.clamp_kqv", 8, {.zero = true});
  }
  NormNames norm_names() const override { return {.feed_forward = "attn_output_norm"}; }
};

}  // namespace

std::unique_ptr<Architecture> make_dbrx() { return std::make_unique<Dbrx>(); }

}  // namespace prism::llm
