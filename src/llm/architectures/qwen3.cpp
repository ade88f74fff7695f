// qwen3: norms of each head's q and k. Its rerankers read the last token and give probabilities.
// qwen3tts: answers with the codes of speech, which are the last tokens of the vocabulary.
#include <limits>

#include <fmt/format.h>

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"

namespace prism::llm {

namespace {

class Qwen3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.head = {.pooling = Pooling::last, .softmax = true};
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

// The output matrix may have rows for the codes alone: the other tokens are excluded.
class Qwen3Tts : public Qwen3 {
 public:
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    const GgufTensor* const output = from.file().find_tensor("output.weight");
    const Config& config = from.config();
    if (!output || output->shape[0] == config.vocabulary)
      return Qwen3::load_ends(from, placement, weights);
    const int64_t codes = output->shape[0];
    if (codes > config.vocabulary)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("model: output.weight has {} rows for a vocabulary of {}", codes,
                              config.vocabulary));
    load_embeddings(from, placement, weights);
    weights.output_norm = from.take_norm("output_norm", placement.output);
    weights.output = from.take_linear("output", {codes, config.width}, placement.output);
  }
  Tensor logits(Blocks& blocks, const Tensor& hidden) const override {
    const Tensor codes = Qwen3::logits(blocks, hidden);
    const int64_t others = blocks.config().vocabulary - codes.size(1);
    if (others == 0) return codes;
    const Tensor none = full({codes.size(0), others}, -std::numeric_limits<double>::infinity(),
                             DType::f32, codes.device());
    return concat({none, codes}, 1);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_qwen3tts() { return std::make_unique<Qwen3Tts>(); }
std::unique_ptr<Architecture> make_qwen3() { return std::make_unique<Qwen3>(); }

}  // namespace prism::llm
