// plamo2: layers of a Mamba whose heads decay alike, or of attention; norms after each block.
#include <algorithm>
#include <cmath>

#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"

namespace prism::llm {

namespace {

int64_t step_width(const Config& config) { return std::max<int64_t>(64, config.width / 16); }

class Plamo2 : public TransformerArchitecture {
 public:
  NormNames norm_names() const override {
    return {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"};
  }
  void configure(const GgufFile& file, Config& config) const override {
    config.attention_scale = 1 / std::sqrt(static_cast<double>(config.at(0).value_dim));
    set_ssm(file, config);
    const SsmConfig& ssm = config.ssm;
    set_states_of_headless(config,
                           {{ssm.taps - 1, ssm.inner}, {ssm.rank, ssm.keys, ssm.inner / ssm.rank}});
  }
  void load_mixer(WeightLoader& from, LayerWeights& layer) const override {
    const Config& config = from.config();
    const SsmConfig& ssm = config.ssm;
    const int64_t steps = step_width(config);
    if (!is_recurrent(config, from.layer())) return from.attention(layer);
    from.keep_matrix(layer, "ssm_in", {2 * ssm.inner, config.width});
    from.keep(layer, "ssm_conv1d.weight", {ssm.inner, ssm.taps});
    from.keep_matrix(layer, "ssm_x", {steps + 2 * ssm.keys, ssm.inner});
    from.keep_matrix(layer, "ssm_dt", {ssm.rank, steps});
    from.keep(layer, "ssm_dt.bias", {ssm.rank});
    from.keep(layer, "ssm_a", {ssm.rank});
    from.keep(layer, "ssm_d", {ssm.rank});
    from.keep_matrix(layer, "ssm_out", {config.width, ssm.inner});
    from.keep(layer, "ssm_b_norm", {ssm.keys});
    from.keep(layer, "ssm_c_norm", {ssm.keys});
    from.keep(layer, "ssm_dt_norm", {steps});
  }
  Tensor mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Config& config = blocks.config();
    if (!is_recurrent(config, blocks.layer())) return blocks.attention(w, x);
    const SsmConfig& ssm = config.ssm;
    const int64_t rows = x.size(0), values = ssm.inner / ssm.rank;
    // The gate and the input of each head are side by side.
    const std::vector<Tensor> both =
        split(blocks.project(x, w.matrix("ssm_in")).reshape({rows, ssm.rank, 2 * values}), 2, -1);
    const Tensor seen = convolved(blocks, w, both[1].reshape({rows, ssm.inner}), "ssm_conv1d", 0);
    const std::vector<Tensor> parts = split(blocks.project(seen, w.matrix("ssm_x")),
                                            {ssm.keys, ssm.keys, step_width(config)}, -1);
    const auto normed = [&](const Tensor& part, const char* name) {
      return rms_norm(part, w.other(name), config.norm_epsilon);
    };
    const Tensor steps = blocks.project(normed(parts[2], "ssm_dt_norm"), w.matrix("ssm_dt")) +
                         w.other("ssm_dt.bias");
    const Tensor by_head = seen.reshape({rows, ssm.rank, values});
    const Tensor y =
        scan_heads(blocks, w, by_head, steps, normed(parts[0], "ssm_b_norm").unsqueeze(1),
                   normed(parts[1], "ssm_c_norm").unsqueeze(1)) +
        by_head * w.other("ssm_d").reshape({1, ssm.rank, 1});
    return blocks.project(swiglu(both[0], y).reshape({rows, ssm.inner}), w.matrix("ssm_out"));
  }
};

}  // namespace

std::unique_ptr<Architecture> make_plamo2() { return std::make_unique<Plamo2>(); }

}  // namespace prism::llm
