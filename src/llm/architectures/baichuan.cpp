// baichuan: llama. Only the 7B model is rotated; the 13B model has linear position biases.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Baichuan : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    constexpr int64_t kLayersOf7B = 32, kLayersOf13B = 40;
    if (config.layers == kLayersOf13B) config.max_bias = 8;
    if (config.layers != kLayersOf7B) config.rope_dims = 0;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_baichuan() { return std::make_unique<Baichuan>(); }

}  // namespace prism::llm
