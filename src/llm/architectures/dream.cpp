// dream: qwen2 without a causal mask.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Dream : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override { config.causal = false; }
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    TransformerArchitecture::load_ends(from, placement, weights);
    weights.output.bias = {};  // files may have one, which the model does not add
  }
};

}  // namespace

std::unique_ptr<Architecture> make_dream() { return std::make_unique<Dream>(); }

}  // namespace prism::llm
