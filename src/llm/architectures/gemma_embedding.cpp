// gemma-embedding: gemma3 as an encoder; its windows reach as far forward as backward.
#include "llm/architectures/gemma.h"

namespace prism::llm {

namespace {

class GemmaEmbedding : public GemmaArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    configure_gemma(config, -1);
    config.local_rope_base = config_number(file, "rope.freq_base_swa", 1e4, {.most = 1e12});
    set_windows(file, config, 512, 6);
    set_encoder(file, config);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_gemma_embedding() { return std::make_unique<GemmaEmbedding>(); }

}  // namespace prism::llm
