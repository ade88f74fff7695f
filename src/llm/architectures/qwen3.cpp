// qwen3: norms of each head's q and k. Its rerankers read the last token and give probabilities.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.head = {.pooling = Pooling::last, .softmax = true};
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_qwen3() { return std::make_unique<Qwen3>(); }

}  // namespace prism::llm
