// Decode attention: a few queries over a long cache. Each split of the keys is read once for all
// heads that share it; attention_merge combines the splits in a second launch.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ops/attention/attention_split_kv.h"
#include "ops/products/spread_sums.h"
#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kWarp = kDecodeSubgroup;

// The state of a row in one lane: its part of q and of the sums, the running maximum and sum of
// weights.
struct Row {
  std::vector<Value> q;
  std::vector<Var> sums;
  Var maximum{f32, kNoMaximum, "maximum"};
  Var weight{f32, 0.0f, "weight"};
  Value query, position, visible;
  AttentionArguments::Query scored;
};

void check_tile(const AttentionOptions& options, const DecodeTile& tile) {
  const bool fits = tile.lanes % kWarp == 0 && tile.lanes > 0 &&
                    std::has_single_bit(tile.key_lanes) && tile.key_lanes <= kWarp &&
                    tile.rows > 0 && tile.queries > 0 && tile.unroll > 0 &&
                    tile.rows <= tile.queries * options.group;
  if (!fits)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("attention_decode: {} lanes, {} per key, {} rows of {}, unroll {} "
                            "is not a valid tile; see DecodeTile",
                            tile.lanes, tile.key_lanes, tile.rows, tile.queries * options.group,
                            tile.unroll));
}

}  // namespace

bool suits_decode(const ir::Capabilities& capabilities) {
  return std::ranges::count(capabilities.subgroup_sizes, kWarp) > 0 ||
         capabilities.dialect == "interpreter";
}

DecodeTile decode_tile(const AttentionOptions& options, uint32_t queries) {
  DecodeTile tile;
  tile.queries = queries;
  const uint32_t chunk = CacheHead::chunk_elements(options);
  const uint32_t chunks = CacheHead::chunks(options);
  tile.rows = std::min(queries * options.group, chunk == 16 ? 4u : 8u);
  // Shared memory holds the sums of a row in each subgroup: 9 KB for latent heads of 576.
  if (options.head_dim > 512) tile.rows = std::min(tile.rows, 2u);
  // A lane keeps q and the sums of its elements for all rows; 32 of each leave registers for loads
  // in flight. Fewer lanes per key need fewer shuffles: on an H200 with heads of 128 f16, 4 lanes
  // per key reach 68% of the read bandwidth, 8 reach 56%.
  const uint32_t elements = std::max(chunk, 32 / tile.rows);
  tile.key_lanes = std::min(std::bit_ceil((chunks * chunk + elements - 1) / elements), kWarp);
  const uint32_t chunks_of_lane = (chunks + tile.key_lanes - 1) / tile.key_lanes;
  // 64 of each leave room for fewer loads (nvcc: 254 registers with four keys in flight). With one
  // row, occupancy hides the latency instead.
  const uint32_t held = tile.rows * chunks_of_lane * chunk;
  tile.unroll = std::max(1u, (held > 32 ? 2u : tile.rows == 2 ? 8u : 4u) / chunks_of_lane);
  // An iteration within one block looks it up once.
  while (options.block > 0 && tile.keys() > options.block && tile.unroll > 1) tile.unroll /= 2;
  return tile;
}

DecodeTile fragment_decode_tile(const AttentionOptions& options, uint32_t queries) {
  DecodeTile tile;
  tile.queries = queries;
  tile.rows = std::min(queries * options.group, 16u);
  // 64 keys per iteration; half as many for long heads, so that accumulators and tiles fit.
  tile.lanes = options.head_dim > 128 ? 64 : 128;
  tile.unroll = 1;
  tile.stages = options.cache.is_block() ? 1 : 4;
  return tile;
}

DecodeTile decode_tile_for(const AttentionOptions& options, uint32_t queries,
                           const ir::Capabilities& capabilities) {
  // Heads beyond 256 need too many accumulators; f32 and bf16 caches would be rounded. One row
  // would use 1 of the 16 rows of a fragment (H200, 4,096 keys: 20.9 us, with lanes 20.0).
  const bool suits = options.head_dim <= 256 && CacheHead::whole_chunks(options) &&
                     queries * options.group > 1 &&
                     (options.cache == ElementType(f16) || options.cache.is_block());
  const bool has = capabilities.async_copy && capabilities.fragment_layout &&
                   capabilities.subgroup_size == kWarp && !capabilities.fragments.empty();
  DecodeTile tile = fragment_decode_tile(options, queries);
  const auto fits = [&] {
    return fragment_shared_bytes(options, tile) <= capabilities.shared_bytes;
  };
  while (!fits() && tile.stages > 2) --tile.stages;  // consumer GPUs have 100 KB
  return suits && has && fits() ? tile : decode_tile(options, queries);
}

uint32_t decode_split_kv(const AttentionOptions& options, const DecodeTile& tile, uint32_t kv_heads,
                         uint32_t sequences, uint32_t compute_units) {
  const uint32_t units = std::max(1u, compute_units);
  const uint32_t others = std::max(1u, kv_heads * blocks_of_rows(options, tile) * sequences);
  // With fragments one group per compute unit, which leaves room for the next launch (H200: 9.5 us,
  // with two 10.2); two if the keys have to be unpacked first.
  if (tile.stages > 0)
    return std::clamp(units * (options.cache.is_block() ? 2 : 1) / others, 1u, 128u);
  // Groups of 128 lanes per compute unit, measured on an H200: one row with 4 in 20.0 us (22.4 with
  // 3), several rows of q8_0 with 2 in 10.5 (14.9 with 4), of f16 with 4 in 12.1 (14.9 with 2).
  const uint32_t at_once = tile.rows > 1 && options.cache.is_block() ? 2 : 4;
  const uint32_t wanted = units * std::max(1u, at_once * 128 / tile.lanes);
  return std::clamp(wanted / others, 1u, 128u);
}

ir::Kernel attention_decode(const AttentionOptions& options, const DecodeTile& tile) {
  check_options(options, "attention_decode");
  if (tile.stages > 0) return attention_decode_by_fragments(options, tile);
  check_tile(options, tile);
  const uint32_t group = options.group;
  const uint32_t chunk = CacheHead::chunk_elements(options), chunks = CacheHead::chunks(options);
  const uint32_t width = chunks * chunk;  // of a head, padded
  const uint32_t key_lanes = tile.key_lanes, slots = tile.lanes / key_lanes;
  const uint32_t own = (chunks + key_lanes - 1) / key_lanes;  // chunks per lane
  const std::string name =
      fmt::format("attention_decode_{}_r{}x{}_{}_{}_{}", option_name(options), tile.queries,
                  tile.rows, tile.lanes, key_lanes, tile.unroll) +
      (tile.direct   ? "_direct"
       : tile.merges ? "_merges"
                     : "");
  return kernel(name, tile.lanes, [&] {
    require_subgroup_size(kWarp);
    const AttentionArguments arguments(options, result_of(tile));
    const SubgroupSums warp_results(tile, width);

    const RowBlock own_rows(arguments, tile);
    const Span& span = own_rows.span;
    const Value &kv_head = own_rows.kv_head, &block = own_rows.block;
    with_split(own_rows, warp_results, [&](const SplitKeys& split) {
      const Value &begin = split.begin, &end = split.end;
      CachePositions& positions = split.positions;
      const CacheHead keys(arguments, CacheHead::Of::keys, positions, kv_head),
          values(arguments, CacheHead::Of::values, positions, kv_head);
      const Value lane = local_id() % key_lanes, slot = local_id() / key_lanes;
      const auto chunk_at = [&](uint32_t c) { return lane + c * key_lanes; };
      const auto has = [&](uint32_t c) {
        return (c + 1) * key_lanes <= chunks ? constant(b1, 1) : chunk_at(c) < chunks;
      };
      const Value factor = arguments.q_factor();
      std::vector<Row> rows;
      for (uint32_t r = 0; r < tile.rows; ++r) {
        const Value index = block * tile.rows + r;
        const Value query = index / group, head = kv_head * group + index % group;
        const Value valid = query < span.queries;
        Row row{{},
                {},
                Var(f32, kNoMaximum, "maximum"),
                Var(f32, 0.0f, "weight"),
                query,
                span.position(query),
                valid,
                arguments.query(span.first_row + query, head, arguments.slope_of(head),
                                span.position(query))};
        for (uint32_t c = 0; c < own; ++c)
          for (uint32_t e = 0; e < chunk; e += 4) {
            for (const Value& one : arguments.four_of_q(valid && has(c), span.first_row + query,
                                                        head, chunk_at(c) * chunk + e)) {
              row.q.push_back(one * factor);
              row.sums.emplace_back(f32, 0.0f, "sum");
            }
          }
        rows.push_back(std::move(row));
      }

      const auto load = [&](const CacheHead& from, Value first) {
        std::vector<CacheHead::Chunk> all;
        for (uint32_t u = 0; u < tile.unroll; ++u)
          for (uint32_t c = 0; c < own; ++c) {
            const Value position = first + slot + u * slots;
            all.push_back(from.load(positions.holds(position) && has(c), position, chunk_at(c)));
          }
        return all;
      };
      for_(begin, end, tile.keys(), [&](Value first) {
        positions.enter(first);
        std::vector<Value> key_at, wanted;
        for (uint32_t u = 0; u < tile.unroll; ++u) {
          key_at.push_back(first + slot + u * slots);
          wanted.push_back(positions.holds(key_at[u]));
        }
        const std::vector<CacheHead::Chunk> key_chunks = load(keys, first);
        const std::vector<CacheHead::Chunk> value_chunks = load(values, first);

        // scores[u][r]
        std::vector<std::vector<Value>> scores(tile.unroll);
        for (uint32_t u = 0; u < tile.unroll; ++u) {
          std::vector<std::vector<Value>> elements;
          for (uint32_t c = 0; c < own; ++c)
            elements.push_back(keys.unpack(key_chunks[u * own + c]));
          for (Row& row : rows) {
            Value sum = constant(f32, 0);
            for (uint32_t c = 0; c < own; ++c) {
              const std::optional<Value>& key_factor = key_chunks[u * own + c].factor;
              Value part = key_factor ? constant(f32, 0) : sum;
              for (uint32_t e = 0; e < chunk; ++e)
                part = fma(row.q[c * chunk + e], elements[c][e], part);
              sum = key_factor ? fma(part, *key_factor, sum) : part;
            }
            for (uint32_t mask = 1; mask < key_lanes; mask *= 2)
              sum = sum + subgroup_shuffle_xor(sum, mask);
            Value seen = wanted[u];
            if (tile.queries > 1) seen = seen && arguments.sees(row.position, key_at[u]);
            if (options.mask) {
              Var masked(f32, kHidden, "masked");
              if_(seen && row.visible,
                  [&] { masked = arguments.score(sum, row.scored, key_at[u]); });
              scores[u].push_back(masked);
            } else {
              scores[u].push_back(
                  select(seen, arguments.score(sum, row.scored, key_at[u]), kHidden));
            }
          }
        }
        // weights[u][r]
        std::vector<std::vector<Value>> weights(tile.unroll);
        for (uint32_t r = 0; r < tile.rows; ++r) {
          Row& row = rows[r];
          Value top = row.maximum;
          for (uint32_t u = 0; u < tile.unroll; ++u) top = fast_max(top, scores[u][r]);
          const Value shrink = fast_exp2(row.maximum - top);
          Value weight = row.weight * shrink;
          for (uint32_t u = 0; u < tile.unroll; ++u) {
            weights[u].push_back(fast_exp2(scores[u][r] - top));
            weight = weight + weights[u][r];
          }
          row.weight = weight;
          row.maximum = top;
          for (Var& sum : row.sums) sum *= shrink;
        }
        for (uint32_t u = 0; u < tile.unroll; ++u)
          for (uint32_t c = 0; c < own; ++c) {
            const CacheHead::Chunk& value = value_chunks[u * own + c];
            const std::vector<Value> elements = values.unpack(value);
            for (uint32_t r = 0; r < tile.rows; ++r) {
              const Value weight = value.factor ? weights[u][r] * *value.factor : weights[u][r];
              for (uint32_t e = 0; e < chunk; ++e) {
                Var& sum = rows[r].sums[c * chunk + e];
                sum = fma(weight, elements[e], sum);
              }
            }
          }
      });

      // Reduce within a subgroup by shuffles, across subgroups through shared memory.
      for (uint32_t r = 0; r < tile.rows; ++r) {
        Row& row = rows[r];
        Value top = row.maximum;
        for (uint32_t mask = key_lanes; mask < kWarp; mask *= 2)
          top = fast_max(top, subgroup_shuffle_xor(top, mask));
        const Value shrink = fast_exp2(row.maximum - top);
        const Value weight = spread_sums({row.weight * shrink}, key_lanes).held[0];
        std::vector<Value> shrunk;
        for (Var& sum : row.sums) shrunk.push_back(sum * shrink);
        const SpreadSums sums = spread_sums(shrunk, key_lanes);
        const Value warp = warp_results.row(tile, constant(u32, r));
        const bool fours = sums.held.size() % 4 == 0 && chunk % 4 == 0;
        for (size_t i = 0; i < sums.held.size(); i += fours ? 4 : 1) {
          const Value number = sums.first + static_cast<uint32_t>(i);
          const Value place = lane + number / chunk * key_lanes;
          const Value to = warp * width + place * chunk + number % chunk;
          if_(sums.mine && place < chunks, [&] {
            if (fours)
              warp_results.sums.store(
                  to, vec(sums.held[i], sums.held[i + 1], sums.held[i + 2], sums.held[i + 3]));
            else
              warp_results.sums[to] = sums.held[i];
          });
        }
        if_(subgroup_lane() == 0u, [&] {
          warp_results.maxima[warp] = top;
          warp_results.weights[warp] = weight;
        });
      }
    });
  });
}

ir::Kernel attention_merge(const AttentionOptions& options, const DecodeTile& tile) {
  check_options(options, "attention_merge");
  const std::string name = fmt::format("attention_merge_{}_r{}x{}_{}_{}", option_name(options),
                                       tile.queries, tile.rows, tile.lanes, tile.keys());
  return kernel(name, tile.lanes, [&] {
    if (options.rounded) require_subgroup_size(kWarp);
    const AttentionArguments arguments(options, AttentionArguments::Result::merged);
    const DecodeTile own = merge_tile(tile);
    const SubgroupSums sums(own, (options.values() + 3) / 4 * 4);
    const RowBlock rows(arguments, own);
    wait_previous();
    if_(rows.used, [&] {
      const Cut cut(arguments, tile, rows.span, rows.block / tile.rows, *arguments.splits);
      sums.read_partial(rows, cut, 2);
      barrier();
      sums.write_result(rows);
    });
  });
}

}  // namespace prism::ops
