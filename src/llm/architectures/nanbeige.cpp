// nanbeige: llama whose layers may run several times, with the last norm after each time.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"

namespace prism::llm {

namespace {

class Nanbeige : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.norm_between_loops = !file.boolean_or(config_key(file, "skip_loop_final_norm"), false);
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Config& config = blocks.config();
    const Tensor result = TransformerArchitecture::layer(blocks, w, x);
    const int64_t next = blocks.layer() + 1;
    if (next % config.blocks() != 0 || next == config.layers || !config.norm_between_loops)
      return result;
    return blocks.norm(result, {blocks.weights().output_norm.weight.to(result.device()), {}});
  }
};

}  // namespace

std::unique_ptr<Architecture> make_nanbeige() { return std::make_unique<Nanbeige>(); }

}  // namespace prism::llm
