// chameleon: llama with layer norms of queries and keys, each head with its own weights. It never
// answers with the tokens of images.
#include <algorithm>
#include <limits>

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"

namespace prism::llm {

namespace {

constexpr int64_t kFirstOfImages = 4, kAfterImages = 8196;

class Chameleon : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
  void configure(const GgufFile& file, Config& config) const override {
    have_no_experts(config);
    config.pairing = RopePairing::adjacent;
    config.layer_head_norms = true;
    config.norms_after = file.boolean_or(config_key(file, "swin_norm"), false);
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    NormNames names;
    if (from.config().norms_after)
      names = {.attention = "",
               .attention_post = "attn_norm",
               .feed_forward = "",
               .feed_forward_post = "ffn_norm"};
    from.norms(names, layer);
    from.attention(layer);
    from.feed_forward(layer);
  }
  Tensor logits(Blocks& blocks, const Tensor& hidden) const override {
    const Tensor all = TransformerArchitecture::logits(blocks, hidden);
    const int64_t rows = all.size(0), count = all.size(1);
    const int64_t first = std::min(kFirstOfImages, count), last = std::min(kAfterImages, count);
    const double least = -static_cast<double>(std::numeric_limits<float>::max());
    std::vector<Tensor> parts = {all.slice(1, 0, first)};
    if (first < last) parts.push_back(full({rows, last - first}, least, DType::f32, all.device()));
    if (last < count) parts.push_back(all.slice(1, last, count));
    return concat(parts, 1);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_chameleon() { return std::make_unique<Chameleon>(); }

}  // namespace prism::llm
