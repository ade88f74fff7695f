// gemma4: gemma3 whose windowed layers have shorter heads, whose last layers share caches, whose
// values have norms, and whose layers can have inputs of their own, or experts beside the
// feed-forward block.
#include <cmath>

#include "llm/architectures/blocks.h"
#include "llm/architectures/gemma.h"
#include "llm/architectures/layer_inputs.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Gemma4 : public GemmaArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    configure_unscaled(file, config);
    set_expert_width(file, config);
    config.logit_soft_cap = config_number(file, "final_logit_softcapping", 30, {.zero = true});
    set_windows(file, config, 0, 1);
    set_windowed_heads(file, config);
    set_shared_caches(file, config,
                      config.layers - config_integer(file, "attention.shared_kv_layers", 0, 0,
                                                     config.layers - 2));
    config.layer_input = config_integer(file, "embedding_length_per_layer_input", 0, 0, 1 << 20);
  }
  RequiredTensors required_tensors() const override {
    return {.head_norms = true, .keys_are_values = true};
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const int64_t width = from.config().width;
    from.norms(norm_names(), layer);
    from.attention(layer);
    from.feed_forward(layer);
    if (from.has_in_layer("ffn_gate_inp.weight")) {
      from.experts(layer);
      from.keep(layer, "ffn_gate_inp.scale", {width});
      for (const char* name :
           {"pre_ffw_norm_2.weight", "post_ffw_norm_1.weight", "post_ffw_norm_2.weight"})
        from.keep(layer, name, {width});
    }
    if (from.config().layer_input > 0) load_layer_input(from, from.config().layer_input, layer);
    from.keep_if_there(layer, "layer_output_scale.weight", {1});
  }
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    GemmaArchitecture::load_ends(from, placement, weights);
    const int64_t length = from.config().layer_input;
    if (length > 0) load_layer_input_tables(from, placement, length, weights);
  }

  Tensor embed(Blocks& blocks) const override {
    const Tensor x = GemmaArchitecture::embed(blocks);
    if (blocks.config().layer_input > 0) make_layer_inputs(blocks, x);
    return x;
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor attended = blocks.attention(w, blocks.norm(x, w.attention_norm));
    const Tensor seen = x + blocks.norm(attended, w.attention_post_norm);
    Tensor inner = blocks.feed_forward(w, blocks.norm(seen, w.feed_forward_norm));
    if (w.router) inner = with_experts(blocks, w, seen, inner);
    Tensor result = seen + blocks.norm(inner, w.feed_forward_post_norm);
    if (blocks.config().layer_input > 0) result = result + layer_input(blocks, w, result);
    const Tensor scale = w.other("layer_output_scale.weight");
    return scale ? result * scale : result;
  }

 private:
  // Adds the experts, which have a norm before and after them and a router with one of its own.
  static Tensor with_experts(const Blocks& blocks, const LayerWeights& w, const Tensor& x,
                             const Tensor& inner) {
    const auto normed = [&](const Tensor& rows, const char* name) {
      return blocks.norm(rows, {w.other(name), {}});
    };
    const double root = std::sqrt(static_cast<double>(blocks.config().width));
    const Tensor chosen_by = blocks.norm(x, Norm()) * (1 / root) * w.other("ffn_gate_inp.scale");
    const Tensor experts = blocks.experts(w, normed(x, "pre_ffw_norm_2.weight"), chosen_by);
    return normed(inner, "post_ffw_norm_1.weight") + normed(experts, "post_ffw_norm_2.weight");
  }
};

}  // namespace

std::unique_ptr<Architecture> make_gemma4() { return std::make_unique<Gemma4>(); }

}  // namespace prism::llm
