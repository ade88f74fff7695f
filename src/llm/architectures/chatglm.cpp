// chatglm (GLM-3, GLM-4-9B): fused q, k and v with biases, fused gate and up.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class ChatGlm : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_chatglm() { return std::make_unique<ChatGlm>(); }

}  // namespace prism::llm
