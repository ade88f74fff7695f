// grovemoe: qwen3moe whose experts share smaller ones in groups.
#include <algorithm>

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"
#include "prism/ops/sort.h"

namespace prism::llm {

namespace {

class GroveMoe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config, true);
    config.expert_group_members = config_integer(file, "experts_per_group", 1, 1, config.experts);
    config.expert_group_scale = config_number(file, "expert_group_scale", 1);
    config.expert_groups_see_input =
        file.boolean_or(config_key(file, "expert_groups_see_input"), false);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    const Config& config = from.config();
    const int64_t groups = config.experts / config.expert_group_members;
    const int64_t length = config_integer(from.file(), "expert_chunk_feed_forward_length",
                                          config.head_dim, 1, 1 << 20);
    from.keep_matrix(layer, "ffn_gate_chexps", {groups, length, config.width});
    from.keep_matrix(layer, "ffn_up_chexps", {groups, length, config.width});
    from.keep_matrix(layer, "ffn_down_chexps", {groups, config.width, length});
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + blocks.attention(w, blocks.norm(x, w.attention_norm));
    const Tensor input = blocks.norm(seen, w.feed_forward_norm);
    const Tensor result = blocks.experts(w, input);
    const Config& config = blocks.config();
    LayerWeights small;
    small.expert_gate = w.matrix("ffn_gate_chexps");
    small.expert_up = w.matrix("ffn_up_chexps");
    small.expert_down = w.matrix("ffn_down_chexps");
    const int64_t groups = small.expert_up.weight.size(0);
    const Tensor scores = softmax(blocks.project(input, w.router), -1);
    Blocks::Chosen chosen;
    // As published, a group has the weights of its chosen experts, and sees what they see. In files
    // of llama.cpp it has the weight of the expert of its number, and works on the experts' result.
    const bool is_published = config.expert_groups_see_input;
    const int64_t used = is_published ? config.experts_used : std::min(config.experts_used, groups);
    const Tensor best = top_k(scores, used).indices;
    chosen.experts = floor_divide(best, static_cast<double>(config.expert_group_members));
    const Tensor weights = take_along(scores, is_published ? best : chosen.experts, -1);
    chosen.weights = weights / sum(weights, {-1}, true);
    const Tensor added = blocks.routed(small, is_published ? input : result, chosen);
    return seen + result + added * config.expert_group_scale;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_grovemoe() { return std::make_unique<GroveMoe>(); }

}  // namespace prism::llm
