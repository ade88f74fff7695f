// The ends of encoders, and those whose layers are like llama's: eurobert, neo-bert and
// llama-embed.
#include "llm/architectures/encoder.h"

#include <fmt/format.h>

#include "llm/architectures/blocks.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

class LlamaEncoder : public EncoderArchitecture {
 public:
  explicit LlamaEncoder(RopePairing pairing) : pairing_(pairing) {}
  void configure(const GgufFile& file, Config& config) const override {
    set_encoder(file, config);
    config.pairing = pairing_;
  }

 private:
  RopePairing pairing_;
};

}  // namespace

void EncoderArchitecture::load_ends(WeightLoader& from, const Placement& placement,
                                    Weights& weights) const {
  load_embeddings(from, placement, weights);
  for (const char* name : {"output_norm", "enc.output_norm"})
    if (from.has(std::string(name) + ".weight"))
      weights.output_norm = from.take_norm(name, placement.output);
}

Tensor EncoderArchitecture::hidden(Blocks& blocks, const Tensor& x) const {
  const Norm& norm = blocks.weights().output_norm;
  return norm ? blocks.norm(x, norm) : x;
}

Tensor EncoderArchitecture::logits(Blocks& blocks, const Tensor&) const {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("model: {} produces embeddings, not logits; use it for embeddings",
                          blocks.config().architecture));
}

std::unique_ptr<Architecture> make_eurobert() {
  return std::make_unique<LlamaEncoder>(RopePairing::halves);
}
std::unique_ptr<Architecture> make_llama_encoder() {
  return std::make_unique<LlamaEncoder>(RopePairing::adjacent);
}

}  // namespace prism::llm
