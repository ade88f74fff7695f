// deepseek4 (DeepSeek V4): several residual streams that are mixed before and after each block,
// attention to a window and to compressed keys, and experts of which the first layers choose by
// token.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "ops/rows/sinkhorn.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"

namespace prism::llm {

namespace {

constexpr int64_t kSparse = 4, kHeavy = 128;  // positions of a compressed key

// The weights of a mix of streams: products of all streams, their factors and what is added.
struct Mix {
  Tensor matrix, factors, added;
};

// The part [begin, end) of the products x, with its factor.
Tensor part_of(const Tensor& x, const Mix& mix, int64_t factor, int64_t begin, int64_t end) {
  return x.slice(-1, begin, end) * mix.factors.slice(0, factor, factor + 1) +
         mix.added.slice(0, begin, end);
}

// The sum of the streams x [rows, streams, width], weighted by [rows, streams].
Tensor weighted(const Tensor& x, const Tensor& weights) {
  Tensor result;
  for (int64_t i = 0; i < x.size(1); ++i) {
    const Tensor one = x.slice(1, i, i + 1) * weights.slice(1, i, i + 1).unsqueeze(-1);
    result = result ? result + one : one;
  }
  return result.reshape({x.size(0), x.size(2)});
}

class DeepSeek4 : public Architecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config);
    // Files without the layers that propose tokens may count them.
    if (file.find_tensor(fmt::format(
            "blk.{}.nextn.eh_proj.weight",
            config.layers - config_integer(file, "nextn_predict_layers", 0, 0, config.layers - 1))))
      leave_out_proposing_layers(file, config);
    config.pairing = RopePairing::adjacent;
    needed(file, "attention.sliding_window");
    set_windows(file, config, 1, 0);
    set_rotation(file, config);
    set_compression(file, config);
    config.q_rank = needed(file, "attention.q_lora_rank");
    config.output_groups = config_integer(file, "attention.output_group_count", 1, 1, 1 << 16);
    config.output_rank = needed(file, "attention.output_lora_rank");
    for (const LayerConfig& each : config.each_layer)
      if (each.kv_heads != 1 || each.heads % config.output_groups != 0 ||
          each.head_dim != each.value_dim)
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("model: a layer with {} heads in {} groups, {} for keys of {} and "
                                "values of {} elements; {} needs groups of the same size and one "
                                "head whose keys are the values",
                                each.heads, config.output_groups, each.kv_heads, each.head_dim,
                                each.value_dim, config.architecture));
    set_expert_weights(file, config, ExpertScores::sqrt_softplus);
    set_shared_count(file, config);
    config.expert_limits = config_numbers(file, "swiglu_clamp_exp", config.layers);
    config.inner_limits = file.has(config_key(file, "swiglu_clamp_shexp"))
                              ? config_numbers(file, "swiglu_clamp_shexp", config.layers)
                              : config.expert_limits;
    config.limits_before_activation = true;
    config.streams = config_integer(file, "hyper_connection.count", 1, 1, kMostSinkhornSize);
    config.stream_steps =
        config_integer(file, "hyper_connection.sinkhorn_iterations", 1, 1, 1 << 16);
    config.stream_epsilon =
        config_number(file, "hyper_connection.epsilon", 1e-6, {.most = 1, .zero = true});
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const Config& config = from.config();
    const LayerConfig& sizes = config.at(from.layer());
    from.norms({}, layer);
    layer.latent.q_a = from.linear("attn_q_a", config.q_rank, config.width);
    layer.latent.q_norm = from.norm("attn_q_a_norm", config.q_rank);
    layer.latent.q_b = from.linear("attn_q_b", sizes.heads * sizes.head_dim, config.q_rank);
    layer.k = from.linear("attn_kv", sizes.head_dim, config.width);
    layer.k_norm = from.norm("attn_kv_a_norm", sizes.head_dim);
    layer.sinks = from.take_in_layer("attn_sinks.weight", {sizes.heads});
    const int64_t narrow = config.output_groups * config.output_rank;
    layer.group_out = from.take_in_layer(
        "attn_output_a.weight", {narrow, sizes.heads / config.output_groups * sizes.head_dim});
    layer.out = from.linear("attn_output_b", config.width, narrow);
    if (sizes.compression > 0)
      layer.compressor = from.compressor("attn_compressor", sizes.head_dim);
    if (sizes.indexer > 0) {
      layer.indexer.q =
          from.linear("indexer.attn_q_b", config.indexer_heads * sizes.indexer, config.q_rank);
      layer.indexer.head_weights = from.linear("indexer.proj", config.indexer_heads, config.width);
      layer.indexer.compressor = from.compressor("indexer_compressor", sizes.indexer);
    }
    for (const std::string name : {"hc_attn", "hc_ffn"}) {
      const int64_t rows = (2 + config.streams) * config.streams;
      from.keep(layer, name + "_fn.weight", {rows, config.streams * config.width});
      from.keep(layer, name + "_scale.weight", {3});
      from.keep(layer, name + "_base.weight", {rows});
    }
    from.experts(layer);
  }

  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    Architecture::load_ends(from, placement, weights);
    const int64_t streams = from.config().streams;
    for (const auto& [name, shape] :
         {std::pair("output_hc_fn.weight", Shape({streams, streams * from.config().width})),
          std::pair("output_hc_scale.weight", Shape({1})),
          std::pair("output_hc_base.weight", Shape({streams}))})
      weights.others[name] = from.take(name, shape, placement.output);
  }

  // Between layers x is [rows, streams * width].
  Tensor embed(Blocks& blocks) const override {
    return tile(Architecture::embed(blocks), {1, blocks.config().streams});
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = mixed(blocks, w, "hc_attn", x, [&](const Tensor& input) {
      return blocks.compressed_attention(w, blocks.norm(input, w.attention_norm));
    });
    return mixed(blocks, w, "hc_ffn", seen, [&](const Tensor& input) {
      return blocks.experts(w, blocks.norm(input, w.feed_forward_norm));
    });
  }

  Tensor hidden(Blocks& blocks, const Tensor& x) const override {
    const Config& config = blocks.config();
    const OtherWeights& w = blocks.weights().others;
    const Mix mix{w.at("output_hc_fn.weight"), w.at("output_hc_scale.weight"),
                  w.at("output_hc_base.weight")};
    const Tensor weights = sigmoid(part_of(products(blocks, mix, x), mix, 0, 0, config.streams)) +
                           config.stream_epsilon;
    return Architecture::hidden(
        blocks, weighted(x.reshape({x.size(0), config.streams, config.width}), weights));
  }

 private:
  static int64_t needed(const GgufFile& file, const char* name) {
    if (!file.has(config_key(file, name)))
      throw Error(ErrorCode::kNotFound, fmt::format("model: the file has no {}; deepseek4 needs it",
                                                    config_key(file, name)));
    return config_integer(file, name, 0, 1, 1 << 24);
  }

  // Layers with compressed keys have a base of their own, and alone are scaled to longer texts.
  static void set_rotation(const GgufFile& file, Config& config) {
    config.local_rope_base = config.rope_base;
    config.local_rope_scaling = {};
    config.rope_base =
        config_number(file, "attention.compress_rope_freq_base", config.rope_base, {.most = 1e12});
    config.rope_magnitude = config.local_rope_magnitude = 1;
  }

  static void set_compression(const GgufFile& file, Config& config) {
    const std::vector<int64_t> ratios =
        config_layers(file, "attention.compress_ratios", config.layers, 0, kHeavy);
    for (size_t i = 0; i < ratios.size(); ++i) {
      LayerConfig& each = config.each_layer[i];
      if (ratios[i] != 0 && ratios[i] != kSparse && ratios[i] != kHeavy)
        throw Error(ErrorCode::kNotSupported,
                    fmt::format("model: {} is {} for layer {}; supported are 0, {} and {}",
                                config_key(file, "attention.compress_ratios"), ratios[i], i,
                                kSparse, kHeavy));
      each.compression = ratios[i];
      if (ratios[i] == kSparse) each.indexer = needed(file, "attention.indexer.key_length");
      // Keys with an indexer are made from two candidates of twice as many positions.
      const int64_t candidates = ratios[i] == 0 ? 0 : ratios[i] == kSparse ? 2 : 1;
      each.beside_key = 2 * candidates * (each.head_dim + each.indexer);
      config.least_kept = std::max(config.least_kept, candidates * ratios[i]);
      if (each.indexer > 0 && each.indexer < config.rope_dims)
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("model: an indexer with keys of {} elements, of which {} are "
                                "rotated",
                                each.indexer, config.rope_dims));
    }
    config.indexer_heads = config_integer(file, "attention.indexer.head_count", 1, 1, 1 << 16);
    config.indexer_keys = config_integer(file, "attention.indexer.top_k", 1, 1, 1 << 30);
  }

  static Tensor products(const Blocks& blocks, const Mix& mix, const Tensor& x) {
    return linear(rms_norm(x, {}, blocks.config().norm_epsilon), mix.matrix);
  }

  // The streams after a block: its input is a mix of them, and each of them becomes another mix
  // with a share of the result.
  template <class Block>
  static Tensor mixed(const Blocks& blocks, const LayerWeights& w, const std::string& name,
                      const Tensor& x, const Block& block) {
    const Config& config = blocks.config();
    const int64_t rows = x.size(0), n = config.streams;
    const Mix mix{w.other(name + "_fn.weight"), w.other(name + "_scale.weight"),
                  w.other(name + "_base.weight")};
    const Tensor all = products(blocks, mix, x);
    const Tensor before = sigmoid(part_of(all, mix, 0, 0, n)) + config.stream_epsilon;
    const Tensor after = sigmoid(part_of(all, mix, 1, n, 2 * n)) * 2.0;
    // How much of stream [i] goes to stream [k].
    const Tensor shares = sinkhorn(part_of(all, mix, 2, 2 * n, (2 + n) * n).reshape({rows, n, n}),
                                   config.stream_steps, config.stream_epsilon);
    const Tensor streams = x.reshape({rows, n, config.width});
    const Tensor result = block(weighted(streams, before));
    Tensor sum = result.unsqueeze(1) * after.unsqueeze(-1);
    for (int64_t i = 0; i < n; ++i)
      sum = sum + streams.slice(1, i, i + 1) * shares.slice(1, i, i + 1).transpose();
    return sum.reshape({rows, n * config.width});
  }
};

}  // namespace

std::unique_ptr<Architecture> make_deepseek4() { return std::make_unique<DeepSeek4>(); }

}  // namespace prism::llm
