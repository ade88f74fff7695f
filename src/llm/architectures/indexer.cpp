// The indexer: chooses the keys, or blocks of keys, that the queries of a layer see.
#include <algorithm>
#include <cmath>

#include "llm/architectures/blocks.h"
#include "ops/attention/indexer.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/norm.h"
#include "prism/ops/reduce.h"

namespace prism::llm {

Tensor Blocks::chosen_keys(const LayerWeights& w, const Tensor& x, const Tensor& by) {
  const int64_t rows = x.size(0), dim = config_.at(layer_).indexer;
  const auto normed = [&](const Tensor& heads, const Norm& norm) {
    if (!norm) return heads;
    if (!config_.indexer_layer_norm) return rms_norm(heads, norm.weight, config_.norm_epsilon);
    constexpr double kEpsilon = 1e-6;
    return layer_norm(heads, norm.weight, norm.bias, kEpsilon);
  };
  const Tensor q = normed(project(by, w.indexer.q).reshape({rows, config_.indexer_heads, dim}),
                          w.indexer.q_norm);
  const Tensor k = normed(project(x, w.indexer.k).reshape({rows, 1, dim}), w.indexer.k_norm);
  Rotation turned = rotation(x.device());
  turned.options.pairing = config_.indexer_pairing;
  const Tensor& batch = words(x.device());
  const size_t group = cache_->group_of(layer_);
  const CachedRows cached =
      rope_to_cache(q, k, {}, layout_->places(batch, group), turned.frequencies, turned.options,
                    cache_->indexer(layer_), {});
  Tensor weights;
  if (w.indexer.head_weights)
    weights = project(x, w.indexer.head_weights) *
              (1 / std::sqrt(static_cast<double>(dim * config_.indexer_heads)));
  const Tensor scores = indexer_scores(cached.q, weights, cached.k_cache, layout_->spans(batch),
                                       layout_->table(batch, group));
  if (config_.indexer_block == 0)
    return chosen_ = mask_of_largest(scores, std::min(config_.indexer_keys, scores.size(-1)));

  // Blocks of keys, chosen by the best key of each; those next to the query are always seen.
  const int64_t block = config_.indexer_block, blocks = scores.size(-1) / block;
  const Tensor best = max(scores.reshape({rows, config_.indexer_heads, blocks, block}), {-1});
  const Tensor own =
      floor_divide(positions(x.device()), static_cast<double>(block)).reshape({rows, 1, 1});
  const Tensor number = arange(0, static_cast<double>(blocks), 1, DType::i32, x.device());
  const Tensor is_near =
      logical_and(number <= own, number > own - static_cast<double>(config_.indexer_near));
  constexpr double kFirst = 1e30;  // above any score
  const Tensor mask =
      mask_of_largest(where(is_near, zeros(best.shape(), DType::f32, x.device()) + kFirst, best),
                      std::min(config_.indexer_keys, blocks));
  // One head of the indexer for each key/value head.
  const int64_t heads = config_.at(layer_).heads, each = heads / config_.indexer_heads;
  return mask.reshape({rows, config_.indexer_heads, 1, blocks, 1})
      .expand({rows, config_.indexer_heads, each, blocks, block})
      .reshape({rows, heads, blocks * block});
}

}  // namespace prism::llm
