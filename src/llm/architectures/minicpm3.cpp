// minicpm3: latent attention with the scale factors of minicpm.
#include <cmath>

#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class MiniCpm3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    set_latent(file, config);
    have_no_experts(config);
    config.embedding_scale = 12;
    config.residual_scale = 1.4 / std::sqrt(static_cast<double>(config.layers));
    config.logit_scale = 256.0 / static_cast<double>(config.width);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_minicpm3() { return std::make_unique<MiniCpm3>(); }

}  // namespace prism::llm
