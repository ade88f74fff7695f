// qwen2, and the text part of qwen2vl: biases on q, k and v.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config&) const override {}
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    TransformerArchitecture::load_ends(from, placement, weights);
    // Files of qwen2vl may have one, which the model does not add.
    if (from.config().architecture == "qwen2vl") weights.output.bias = {};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_qwen2() { return std::make_unique<Qwen2>(); }

}  // namespace prism::llm
