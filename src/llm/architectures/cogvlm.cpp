// cogvlm, text: llama with fused q, k and v, each with as many rows as q needs. The matrices
// for the positions of images are left out.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class CogVlm : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.rope_base = 10000;  // whatever the file states
    config.rope_divisors = false;
    config.rope_scaling = {};
    config.rope_magnitude = 0;
    config.qkv_stride = config.heads * config.head_dim;
    config.qkv_rows = 3 * config.qkv_stride;
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    for (const char* name : {"vis_attn_qkv.weight", "vis_attn_output.weight", "vis_gate.weight",
                             "vis_down.weight", "vis_up.weight"})
      from.leave_out(name);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_cogvlm() { return std::make_unique<CogVlm>(); }

}  // namespace prism::llm
