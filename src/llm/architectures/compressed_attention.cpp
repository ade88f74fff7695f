// Attention to the keys of a window, and to compressed keys of all positions before (DeepSeek V4).
//
// A compressed key stands for as many positions as LayerConfig::compression says. Each of these has
// a candidate and a score for each element, both beside its key in the cache; the compressed key is
// the sum of the candidates, weighted by a softmax of the scores over the positions. In layers with
// an indexer positions have two candidates: one for their own compressed key and one for the next.
// The indexer has compressed keys of its own, by which it chooses those that a query sees.
//
// All of it is composed of ops over rows of the caches, whose numbers follow from the positions of
// a batch, so that one plan serves all positions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "llm/architectures/blocks.h"
#include "ops/attention/indexer.h"
#include "prism/ops/attention.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/join.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"

namespace prism::llm {

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

Tensor count_to(int64_t end, const Device& device) {
  return arange(0, static_cast<double>(end), 1, DType::i32, device);
}

// x [rows, heads, dim] with the last elements of each head rotated.
Tensor with_rotated_end(const Tensor& x, const Tensor& positions, const Tensor& frequencies,
                        const RopeOptions& options) {
  const int64_t plain = x.size(-1) - options.dims;
  const Tensor end = rope(x.slice(-1, plain, x.size(-1)), positions, frequencies, options);
  return plain == 0 ? end : concat({x.slice(-1, 0, plain), end}, -1);
}

// The blocks of the texts of a batch.
struct Paged {
  Tensor table;  // [texts, entries]
  int64_t block = 1;
  int64_t positions() const { return table.size(1) * block; }

  // The rows of a cache at positions (i32 [texts, any]), of which `each` share a row.
  Tensor rows(const Tensor& positions, int64_t each = 1) const {
    const int64_t entries = table.size(1);
    const Tensor known =
        minimum(maximum(positions, 0.0), static_cast<double>(this->positions() - 1));
    const Tensor entry = floor_divide(known, static_cast<double>(block));
    const Tensor text = count_to(table.size(0), table.device()).unsqueeze(1);
    const Tensor number =
        gather_rows(table.reshape({table.elements()}), entry + text * static_cast<double>(entries));
    const Tensor within = known - entry * static_cast<double>(block);
    return number * static_cast<double>(std::max<int64_t>(1, block / each)) +
           floor_divide(within, static_cast<double>(each));
  }
};

// Rows of a cache [blocks, rows, 1, dim] as [numbers..., dim].
Tensor rows_of(const Tensor& cache, const Tensor& numbers) {
  return gather_rows(cache.reshape({cache.size(0) * cache.size(1), cache.size(3)}), numbers);
}

// Writes rows [rows, dim] to a cache at the numbers (i32 [rows]).
Tensor stored(const Tensor& rows, const Tensor& numbers, const Tensor& cache) {
  const Tensor x = rows.unsqueeze(1);
  return rope_to_cache(x, x, {}, stack({numbers, numbers}, -1), {}, {}, cache, {}).k_cache;
}

// 0 for what is seen, -infinity for the rest.
Tensor mask_of(const Tensor& seen) {
  return where(seen, zeros({1, 1}, DType::f32, seen.device()), kHidden);
}

}  // namespace

// Candidates and scores of the compressed keys and of the indexer's, for each position.
Tensor Blocks::compression_inputs(const LayerWeights& w, const Tensor& x) const {
  const int64_t ratio = config_.at(layer_).compression;
  const Tensor position = positions(x.device());
  const Tensor place =
      position - floor_divide(position, static_cast<double>(ratio)) * static_cast<double>(ratio);
  std::vector<Tensor> parts;
  for (const CompressorWeights* by : {&w.compressor, &w.indexer.compressor}) {
    if (!*by) continue;
    parts.push_back(project(x, by->values));
    parts.push_back(project(x, by->scores) + cast(gather_rows(by->places, place), DType::f32));
  }
  return concat(parts, -1);
}

// The keys that stand for `ratio` positions each, from rows [keys, positions, length] of
// compression_inputs: [keys, dim]. is_first: bool [keys, 1, 1], those without positions before.
Tensor Blocks::compressed_keys(const CompressorWeights& by, const Tensor& rows,
                               const Tensor& is_first) const {
  const int64_t dim = by.norm.weight.size(0), positions = rows.size(1);
  Tensor values = rows.slice(-1, 0, rows.size(-1) / 2),
         scores = rows.slice(-1, rows.size(-1) / 2, rows.size(-1));
  if (values.size(-1) > dim) {
    const auto both = [&](const Tensor& before, const Tensor& own) {
      return concat({before.slice(1, 0, positions / 2), own.slice(1, positions / 2, positions)}, 1);
    };
    values = both(values.slice(-1, 0, dim), values.slice(-1, dim, 2 * dim));
    scores =
        both(where(is_first, kHidden, scores.slice(-1, 0, dim)), scores.slice(-1, dim, 2 * dim));
  }
  return norm(sum(values * softmax(scores, 1), {1}), by.norm);
}

Tensor Blocks::compressed_attention(const LayerWeights& w, const Tensor& x) {
  const LayerConfig& sizes = config_.at(layer_);
  const int64_t rows = x.size(0), dim = sizes.head_dim, ratio = sizes.compression;
  const Device& device = x.device();
  const Tensor& batch = words(device);
  const Tensor position = positions(device), spans = layout_->spans(batch);
  const RopeTable& turned = ratio > 0 ? ropes(device).all : ropes(device).local;
  const RopeOptions options{config_.rope_dims, config_.pairing, turned.magnitude};
  const auto rotated = [&](const Tensor& heads, const Tensor& at) {
    return with_rotated_end(heads, at, turned.frequencies, options);
  };

  const Tensor low = norm(project(x, w.latent.q_a), w.latent.q_norm);
  const Tensor q =
      rotated(norm(project(low, w.latent.q_b).reshape({rows, sizes.heads, dim}), Norm()), position);
  const Tensor k = rotated(norm(project(x, w.k), w.k_norm).reshape({rows, 1, dim}), position);
  const size_t group = cache_->group_of(layer_);
  Tensor inputs;
  if (ratio > 0) inputs = compression_inputs(w, x).unsqueeze(1);
  const CachedRows own = rope_to_cache(k, k, inputs, layout_->places(batch, group), {}, {},
                                       cache_->keys(layer_), cache_->values(layer_));

  AttentionSettings settings;
  settings.scale = 1 / std::sqrt(static_cast<double>(dim));
  settings.sinks = w.sinks;
  const BatchShape& shape = layout_->shape();
  const int64_t most_queries = shape.each_one_row ? 1 : shape.rows;
  Tensor seen;
  if (cache_->compressed_of(layer_) >= 0) {
    const WindowAndCompressed keys = window_and_compressed(w, x, low, own, rotated);
    settings.causal = false;
    settings.mask = keys.mask;
    seen = cached_attention(q, keys.keys, keys.keys, keys.spans, most_queries, settings);
  } else {
    settings.window = config_.window;
    settings.table = layout_->table(batch, group);
    seen = cached_attention(q, own.k_cache, own.k_cache, spans, most_queries, settings);
  }
  // Values are keys, and so they are rotated.
  seen = with_rotated_end(seen, position, -turned.frequencies, options);
  const int64_t of_group = sizes.heads / config_.output_groups * dim;
  const Tensor narrow =
      by_heads(seen.reshape({rows, config_.output_groups, of_group}),
               w.group_out.reshape({config_.output_groups, config_.output_rank, of_group}));
  return project(narrow.reshape({rows, config_.output_groups * config_.output_rank}), w.out);
}

// Compresses the keys that the batch completes, and collects those that its queries see: of each
// text those of the windows, then all compressed ones.
Blocks::WindowAndCompressed Blocks::window_and_compressed(const LayerWeights& w, const Tensor& x,
                                                          const Tensor& low, const CachedRows& own,
                                                          const Rotate& rotated) const {
  const LayerConfig& sizes = config_.at(layer_);
  const Device& device = x.device();
  const Tensor& batch = words(device);
  const BatchShape& shape = layout_->shape();
  const int64_t texts = shape.sequences, rows = shape.rows, ratio = sizes.compression,
                most_rows = shape.each_one_row ? 1 : rows;
  const auto each = static_cast<double>(ratio);
  const int64_t compressed_layer = cache_->compressed_of(layer_);
  const Paged window{layout_->table(batch, cache_->group_of(layer_)), cache_->block()},
      whole{layout_->table(batch, cache_->group_of(compressed_layer)), cache_->block()};
  const Tensor spans = layout_->spans(batch), position = positions(device).unsqueeze(1);
  const Tensor end = spans.slice(1, 2, 3), first = end - spans.slice(1, 1, 2);  // [texts, 1]

  // --- compress
  const bool has_before = static_cast<bool>(w.indexer.compressor);
  const int64_t most = (most_rows + ratio - 1) / ratio, wide = has_before ? 2 * ratio : ratio,
                keys = texts * most;
  const Tensor number = floor_divide(first, each) + count_to(most, device).unsqueeze(0);
  const Tensor last = (number + 1.0) * each - 1.0;
  const Tensor from = (last - static_cast<double>(wide - 1)).unsqueeze(-1) + count_to(wide, device);
  const Tensor made_of =
      cast(rows_of(own.v_cache, window.rows(from.reshape({texts, most * wide}))), DType::f32)
          .reshape({keys, wide, own.v_cache.size(-1)});
  // What is not complete is written to the row of padding.
  const Tensor row = where(last < end, whole.rows(last, ratio), 0.0).reshape({keys});
  const Tensor is_first = (number < 1.0).reshape({keys, 1, 1}),
               start = (number * each).reshape({keys});
  const auto compress = [&](const CompressorWeights& by, int64_t begin, const Tensor& cache) {
    const Tensor part = made_of.slice(-1, begin, begin + 2 * by.values.weight.size(0));
    const Tensor made = compressed_keys(by, part, is_first).unsqueeze(1);
    return stored(rotated(made, start).reshape({keys, by.norm.weight.size(0)}), row, cache);
  };
  const Tensor cache = compress(w.compressor, 0, cache_->keys(compressed_layer));

  // --- collect. Rows that no query sees may hold anything: they become zeros.
  const int64_t near = std::min(config_.window - 1 + most_rows, window.positions()),
                far = whole.positions() / ratio;
  const Tensor begin = maximum(first - static_cast<double>(config_.window - 1), 0.0);
  const Tensor near_at = begin + count_to(near, device);                     // [texts, near]
  const Tensor far_end = (count_to(far, device).unsqueeze(0) + 1.0) * each;  // [1, far]
  const auto known = [](const Tensor& found, const Tensor& is_known) {
    return where(is_known.unsqueeze(-1), found, 0.0);
  };
  const Tensor far_rows = whole.rows(far_end - 1.0, ratio);
  WindowAndCompressed result;
  result.keys = concat({known(rows_of(own.k_cache, window.rows(near_at)), near_at < end),
                        known(rows_of(cache, far_rows), far_end <= end)},
                       1)
                    .unsqueeze(2);
  const Tensor text = count_to(texts, device).unsqueeze(1);
  const auto words_of = [&](int64_t value) {
    return full({texts, 1}, static_cast<double>(value), DType::i32, device);
  };
  result.spans = concat({spans.slice(1, 0, 2), words_of(near + far), text}, 1);

  // --- mask
  const Tensor of_row = count_to(rows, device).unsqueeze(1);
  Tensor text_of_row = of_row;  // [rows, 1]
  if (!shape.each_one_row) {
    const Tensor first_row = spans.slice(1, 0, 1).transpose(),
                 count = spans.slice(1, 1, 2).transpose();
    const Tensor is_in = logical_and(of_row >= first_row, of_row < first_row + count);
    text_of_row = sum(where(is_in, text.transpose(), 0.0), {1}, true);
  }
  const Tensor at = gather_rows(begin.reshape({texts}), text_of_row) + count_to(near, device);
  const Tensor sees_near =
      logical_and(at <= position, at + static_cast<double>(config_.window) > position);
  const Tensor sees_far = far_end <= position + 1.0;
  Tensor far_mask = mask_of(sees_far);
  if (has_before) {
    const Tensor indexer = compress(w.indexer.compressor, 2 * w.compressor.values.weight.size(0),
                                    cache_->indexer(compressed_layer));
    const Tensor count = floor_divide(position + 1.0, each);
    const Tensor row_spans = concat({of_row, minimum(count, 1.0), count, text_of_row}, 1);
    const Tensor queries =
        rotated(project(low, w.indexer.q).reshape({rows, config_.indexer_heads, sizes.indexer}),
                positions(device));
    const Tensor weights =
        project(x, w.indexer.head_weights) *
        (1 / std::sqrt(static_cast<double>(sizes.indexer * config_.indexer_heads)));
    const Tensor scores = indexer_scores(queries, weights, indexer, row_spans, whole.table);
    far_mask =
        where(sees_far, mask_of_largest(scores, std::min(config_.indexer_keys, far)), kHidden);
  }
  result.mask = concat({mask_of(sees_near), far_mask}, 1);
  return result;
}

}  // namespace prism::llm
