// lfm2 and lfm2moe: layers of gated short convolutions or of attention; experts after the first
// layers.
#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/recurrence.h"

namespace prism::llm {

namespace {

class Lfm2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.ssm.taps = config_integer(file, "shortconv.l_cache", 3, 2, 1024);
    set_states_of_headless(config, {{config.ssm.taps - 1, config.width}});
    have_no_experts(config);
    config.window = config_integer(file, "attention.sliding_window", 0, 0, 1 << 30);
    for (LayerConfig& each : config.each_layer) each.windowed = true;
  }
  void load_mixer(WeightLoader& from, LayerWeights& layer) const override {
    const int64_t width = from.config().width;
    if (!is_recurrent(from.config(), from.layer())) return from.attention(layer);
    from.keep_matrix(layer, "shortconv.in_proj", {3 * width, width});
    from.keep(layer, "shortconv.conv.weight", {width, from.config().ssm.taps});
    from.keep_matrix(layer, "shortconv.out_proj", {width, width});
  }
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    weights.output_norm = from.take_norm("token_embd_norm", placement.output);
    load_output(from, placement, weights);
  }
  Tensor mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    if (!is_recurrent(blocks.config(), blocks.layer())) return blocks.attention(w, x);
    const std::vector<Tensor> parts =
        split(blocks.project(x, w.matrix("shortconv.in_proj")), 3, -1);
    const Tensor seen = short_conv(parts[0] * parts[2], w.other("shortconv.conv.weight"), {},
                                   blocks.state(0), blocks.texts(x.device()))
                            .y;
    return blocks.project(parts[1] * seen, w.matrix("shortconv.out_proj"));
  }
};

class Lfm2Moe : public Lfm2 {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    const int64_t experts = config.experts, used = config.experts_used;
    Lfm2::configure(file, config);
    config.window = 0;
    config.experts = experts, config.experts_used = used;
    for (LayerConfig& each : config.each_layer) each.experts = true;
    set_expert_width(file, config);
    set_leading_dense(file, config);
    set_expert_scores(file, config, ExpertScores::sigmoid);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_lfm2() { return std::make_unique<Lfm2>(); }
std::unique_ptr<Architecture> make_lfm2moe() { return std::make_unique<Lfm2Moe>(); }

}  // namespace prism::llm
