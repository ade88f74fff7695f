// Attention for many queries in plain f32: tiles of queries and keys in shared memory, four lanes
// per query.
#include <algorithm>

#include <fmt/format.h>

#include "ops/attention/attention_parts.h"
#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

namespace {

// Shared rows are padded by one element to avoid bank conflicts.
uint64_t shared_floats(uint32_t width, const PlainTile& tile) {
  return uint64_t{tile.queries + tile.keys} * (width + 1) + tile.queries * (tile.keys + 1);
}

// Row length of a tile: a head, zero-padded to whole chunks.
uint32_t tile_width(const AttentionOptions& options) {
  return CacheHead::chunks(options) * CacheHead::chunk_elements(options);
}

}  // namespace

PlainTile plain_tile(const AttentionOptions& options, uint32_t shared_bytes) {
  for (const PlainTile tile :
       {PlainTile{32, 32}, PlainTile{32, 16}, PlainTile{16, 16}, PlainTile{16, 8}, PlainTile{8, 8}})
    if (shared_floats(tile_width(options), tile) * 4 <= shared_bytes) return tile;
  return {8, 4};
}

ir::Kernel attention_plain(const AttentionOptions& options, const PlainTile& tile) {
  check_options(options, "attention_plain");
  constexpr uint32_t kShare = PlainTile::kLanesOfQuery;
  if (tile.queries == 0 || tile.keys == 0 || tile.keys % kShare != 0)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("attention_plain: a tile of {} queries and {} keys; keys must be a multiple "
                    "of {}",
                    tile.queries, tile.keys, kShare));
  const uint32_t dim = options.head_dim, width = tile_width(options), row_length = width + 1;
  const uint32_t lanes = tile.lanes();
  const uint32_t values = options.values();
  const uint32_t own_keys = tile.keys / kShare, own_dims = (values + kShare - 1) / kShare;
  const std::string name =
      fmt::format("attention_plain_{}_{}x{}", option_name(options), tile.queries, tile.keys);
  return kernel(name, lanes, [&] {
    const AttentionArguments arguments(options, AttentionArguments::Result::out);
    auto q_tile = shared(f32, tile.queries * row_length, "q_tile");
    auto kv_tile = shared(f32, tile.keys * row_length, "kv_tile");
    auto weights = shared(f32, tile.queries * (tile.keys + 1), "weights");

    const Span span(*arguments.spans, group_id(2));
    const Value head = group_id(0), kv_head = head / options.group;
    const Value first_query = group_id(1) * tile.queries;
    if_(first_query < span.queries, [&] {
      const Value last_query = min(first_query + tile.queries, span.queries) - 1u;
      const Value end = arguments.end_seen(span.position(last_query), span.keys);
      const Value seen = arguments.first_seen(span.position(first_query));
      const Value begin = options.window ? seen / tile.keys * tile.keys : seen;
      CachePositions positions(arguments, span.slot, begin, end, seen, tile.keys);
      const CacheHead key_head(arguments, CacheHead::Of::keys, positions, kv_head),
          value_head(arguments, CacheHead::Of::values, positions, kv_head);

      const Value factor = arguments.q_factor();
      for_(local_id(), tile.queries * (width / 4), lanes, [&](Value index) {
        const Value row = index / (width / 4), d = index % (width / 4) * 4u;
        const Value query = first_query + row;
        const std::vector<Value> four =
            arguments.four_of_q(query < span.queries, span.first_row + query, head, d);
        for (uint32_t i = 0; i < 4; ++i) q_tile[row * row_length + d + i] = four[i] * factor;
      });
      const auto fetch = [&](const CacheHead& cache, Value first_key) {
        const uint32_t each = CacheHead::chunk_elements(options), chunks = width / each;
        for_(local_id(), tile.keys * chunks, lanes, [&](Value index) {
          const Value row = index / chunks, chunk = index % chunks;
          const Value position = first_key + row;
          const CacheHead::Chunk loaded = cache.load(positions.holds(position), position, chunk);
          const std::vector<Value> elements = cache.unpack(loaded);
          for (uint32_t e = 0; e < each; ++e)
            kv_tile[row * row_length + chunk * each + e] =
                loaded.factor ? elements[e] * *loaded.factor : elements[e];
        });
      };

      // Each lane computes a quarter of a query's scores and of its result. All four lanes hold the
      // same maximum and sum of weights.
      const Value row = local_id() / kShare, part = local_id() % kShare;
      const Value query = first_query + row, position = span.position(query);
      const AttentionArguments::Query own =
          arguments.query(span.first_row + query, head, arguments.slope_of(head), position);
      std::vector<Var> sums;
      for (uint32_t d = 0; d < own_dims; ++d) sums.emplace_back(f32, 0.0f, "sum");
      Var maximum(f32, kNoMaximum, "maximum");
      Var weight(f32, 0.0f, "weight");
      for_(begin, end, tile.keys, [&](Value first_key) {
        positions.enter(first_key);
        barrier();
        fetch(key_head, first_key);
        barrier();
        std::vector<Var> scores;
        for (uint32_t k = 0; k < own_keys; ++k) scores.emplace_back(f32, 0.0f, "score");
        for_(dim, [&](Value d) {
          const Value one = q_tile[row * row_length + d];
          for (uint32_t k = 0; k < own_keys; ++k)
            scores[k] = fma(one, kv_tile[(part + k * kShare) * row_length + d], scores[k]);
        });
        for (uint32_t k = 0; k < own_keys; ++k) {
          const Value column = part + k * kShare, key = first_key + column;
          Var score(f32, kHidden, "seen");
          if_(query < span.queries && key < end && arguments.sees(position, key),
              [&] { score = arguments.score(scores[k], own, key); });
          weights[row * (tile.keys + 1) + column] = score;
        }
        barrier();
        fetch(value_head, first_key);
        Value top = maximum;
        for (uint32_t k = 0; k < tile.keys; ++k)
          top = fast_max(top, weights[row * (tile.keys + 1) + k]);
        const Value shrink = fast_exp2(maximum - top);
        maximum = top;
        barrier();
        weight *= shrink;
        for (Var& sum : sums) sum *= shrink;
        for_(tile.keys, [&](Value k) {
          const Value one = fast_exp2(weights[row * (tile.keys + 1) + k] - maximum);
          weight += one;
          for (uint32_t d = 0; d < own_dims; ++d)
            sums[d] = fma(one, kv_tile[k * row_length + part + d * kShare], sums[d]);
        });
      });
      Value all = weight, shrink = constant(f32, 1);
      if (options.sinks) {
        const Value sink = (*arguments.sinks)[head] * kLog2E;
        const Value top = fast_max(maximum, sink);
        shrink = fast_exp2(maximum - top);
        all = weight * shrink + fast_exp2(sink - top);
      }
      const Value share = select(weight > 0.0f, shrink / select(all > 0.0f, all, 1.0f), 0.0f);
      if (options.sums)
        arguments.store_sum(query < span.queries && part == 0u, span.first_row + query, head,
                            group_count(0), maximum, weight);
      if_(query < span.queries, [&] {
        const Value to =
            (span.first_row + query) * *arguments.out_row + head * *arguments.out_head + part;
        for (uint32_t d = 0; d < own_dims; ++d) {
          const auto write = [&] { (*arguments.out)[to + d * kShare] = sums[d] * share; };
          if ((d + 1) * kShare <= values)
            write();
          else
            if_(part + d * kShare < values, write);
        }
      });
    });
  });
}

}  // namespace prism::ops
