// Attention of a few queries over a long cache: keys in splits, each read once for all the heads
// that share it, and the merge of the splits.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/error.h"
#include "ops/attention_parts.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kWarp = 32;

// A partial result: the sums of a row, its maximum and its sum of weights, in whole 16 bytes.
uint32_t partial_stride(const AttentionOptions& options) {
  return (options.head_dim + 3) / 4 * 4 + 4;
}

uint32_t blocks_of_rows(const AttentionOptions& options, const DecodeTile& tile) {
  return (tile.queries * options.group + tile.rows - 1) / tile.rows;
}

// Which keys the rows of a block see, and how they are cut; the same for decode and merge.
struct Cut {
  Value begin, end, each;

  Cut(const AttentionArguments& arguments, const DecodeTile& tile, const Span& span, Value block,
      Value splits)
      : begin(constant(u32, 0)), end(span.keys), each(begin) {
    if (arguments.options.causal && tile.queries > 1) {
      const Value last = (block * tile.rows + (tile.rows - 1)) / arguments.options.group;
      end = min(span.position(last) + 1u, span.keys);
    }
    if (arguments.options.window) {
      const Value first = block * tile.rows / arguments.options.group;
      const Value seen = span.position(first) + 1u;
      begin = select(seen > *arguments.window, seen - *arguments.window, 0u);
    }
    const Value whole = (end - begin + (splits - 1u)) / splits;
    each = (whole + (tile.keys() - 1)) / tile.keys() * tile.keys();
  }
};

// What one lane holds of a row: part of q, part of the sums, the running maximum and sum.
struct Row {
  std::vector<Value> q;
  std::vector<Var> sums;
  Var maximum{f32, kNoMaximum, "maximum"};
  Var weight{f32, 0.0f, "weight"};
  Value query, position, visible, mask_row;
};

void check_tile(const AttentionOptions& options, const DecodeTile& tile) {
  const bool fits = tile.lanes % kWarp == 0 && tile.lanes > 0 &&
                    std::has_single_bit(tile.key_lanes) && tile.key_lanes <= kWarp &&
                    tile.rows > 0 && tile.queries > 0 && tile.unroll > 0 &&
                    tile.rows <= tile.queries * options.group;
  if (!fits)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("attention_decode: {} lanes, {} for a key, {} rows of {}, {} keys at "
                            "once; see DecodeTile",
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
  // A lane keeps q and sums of its elements for all rows: 32 of each leave registers for the loads
  // under way. Fewer lanes a key mean fewer exchanges: on an H200 four a key of 128 f16 give 68% of
  // the read bandwidth, eight 56%.
  const uint32_t elements = std::max(chunk, 32 / tile.rows);
  tile.key_lanes = std::min(std::bit_ceil((chunks * chunk + elements - 1) / elements), kWarp);
  const uint32_t chunks_of_lane = (chunks + tile.key_lanes - 1) / tile.key_lanes;
  // 64 of each leave room for fewer loads (nvcc: 254 registers with four keys under way).
  const uint32_t held = tile.rows * chunks_of_lane * chunk;
  tile.unroll = std::max(1u, (held > 32 ? 2u : tile.rows > 2 ? 4u : 8u) / chunks_of_lane);
  return tile;
}

uint32_t decode_splits(const AttentionOptions& options, const DecodeTile& tile, uint32_t kv_heads,
                       uint32_t sequences, uint32_t compute_units) {
  // Groups that fit a compute unit beside each other by their registers, about 1,024 lanes; a
  // quarter of that is enough for one row, whose splits are then long (8 on an H200, not 17).
  const uint32_t share = tile.rows == 1 ? 4 : 2;
  const uint32_t wanted = std::max(1u, compute_units) * std::max(1u, 1024 / tile.lanes) / share;
  const uint32_t others = std::max(1u, kv_heads * blocks_of_rows(options, tile) * sequences);
  return std::clamp((wanted + others - 1) / others, 1u, 128u);
}

std::array<uint32_t, 3> decode_grid(const AttentionOptions& options, const DecodeTile& tile,
                                    uint32_t splits, uint32_t kv_heads, uint32_t sequences) {
  return {splits, kv_heads * blocks_of_rows(options, tile), sequences};
}

uint64_t partial_elements(const AttentionOptions& options, uint32_t splits, uint32_t kv_heads,
                          uint32_t rows) {
  return uint64_t{rows} * kv_heads * options.group * splits * partial_stride(options);
}

ir::Kernel attention_decode(const AttentionOptions& options, const DecodeTile& tile) {
  check_options(options, "attention_decode");
  check_tile(options, tile);
  const uint32_t dim = options.head_dim, group = options.group;
  const uint32_t chunk = CacheHead::chunk_elements(options), chunks = CacheHead::chunks(options);
  const uint32_t width = chunks * chunk;  // of a head, filled up
  const uint32_t key_lanes = tile.key_lanes, slots = tile.lanes / key_lanes;
  const uint32_t own = (chunks + key_lanes - 1) / key_lanes;  // chunks of a lane
  const uint32_t warps = tile.lanes / kWarp, blocks = blocks_of_rows(options, tile);
  const std::string name =
      fmt::format("attention_decode_{}_r{}x{}_{}_{}_{}{}", option_name(options), tile.queries,
                  tile.rows, tile.lanes, key_lanes, tile.unroll, tile.direct ? "_direct" : "");
  return kernel(name, tile.lanes, [&] {
    require_subgroup_size(kWarp);
    using Result = AttentionArguments::Result;
    const AttentionArguments arguments(options, tile.direct ? Result::out : Result::partial);
    auto warp_sums = shared(f32, warps * tile.rows * width, "warp_sums");
    auto warp_maxima = shared(f32, warps * tile.rows, "warp_maxima");
    auto warp_weights = shared(f32, warps * tile.rows, "warp_weights");

    const Span span(*arguments.spans, group_id(2));
    const Value kv_head = group_id(1) / blocks, block = group_id(1) % blocks;
    const Cut cut(arguments, tile, span, block, group_count(0));
    const Value begin = cut.begin + group_id(0) * cut.each, end = min(begin + cut.each, cut.end);
    const Value some_query = block * tile.rows / group < span.queries;
    // A group of a direct launch has zeros to write even where nothing is seen.
    const Value used = tile.direct ? some_query : some_query && begin < end;
    if_(used, [&] {
      const CacheHead keys(arguments, *arguments.k, span.slot, kv_head),
          values(arguments, *arguments.v, span.slot, kv_head);
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
                span.first_row + query};
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

      for_(begin, end, tile.keys(), [&](Value first) {
        std::vector<Value> key_at, wanted;
        std::vector<std::vector<CacheHead::Chunk>> key_chunks(tile.unroll),
            value_chunks(tile.unroll);
        for (uint32_t u = 0; u < tile.unroll; ++u) {
          key_at.push_back(first + slot + u * slots);
          wanted.push_back(key_at[u] < end);
        }
        for (auto [from, to] : {std::pair{&keys, &key_chunks}, {&values, &value_chunks}})
          for (uint32_t u = 0; u < tile.unroll; ++u)
            for (uint32_t c = 0; c < own; ++c)
              (*to)[u].push_back(from->load(wanted[u] && has(c), key_at[u], chunk_at(c)));

        // scores[u][r]
        std::vector<std::vector<Value>> scores(tile.unroll);
        for (uint32_t u = 0; u < tile.unroll; ++u) {
          std::vector<std::vector<Value>> elements;
          for (uint32_t c = 0; c < own; ++c) elements.push_back(keys.unpack(key_chunks[u][c]));
          for (Row& row : rows) {
            Value sum = constant(f32, 0);
            for (uint32_t c = 0; c < own; ++c) {
              Value part = key_chunks[u][c].factor ? constant(f32, 0) : sum;
              for (uint32_t e = 0; e < chunk; ++e)
                part = fma(row.q[c * chunk + e], elements[c][e], part);
              sum = key_chunks[u][c].factor ? fma(part, *key_chunks[u][c].factor, sum) : part;
            }
            for (uint32_t mask = 1; mask < key_lanes; mask *= 2)
              sum = sum + subgroup_shuffle_xor(sum, mask);
            Value seen = wanted[u];
            if (tile.queries > 1) seen = seen && arguments.sees(row.position, key_at[u]);
            if (options.mask) {
              Var masked(f32, kHidden, "masked");
              if_(seen && row.visible,
                  [&] { masked = arguments.score(sum, row.mask_row, key_at[u]); });
              scores[u].push_back(masked);
            } else {
              scores[u].push_back(
                  select(seen, arguments.score(sum, row.mask_row, key_at[u]), kHidden));
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
            const std::vector<Value> elements = values.unpack(value_chunks[u][c]);
            for (uint32_t r = 0; r < tile.rows; ++r) {
              const Value weight = value_chunks[u][c].factor
                                       ? weights[u][r] * *value_chunks[u][c].factor
                                       : weights[u][r];
              for (uint32_t e = 0; e < chunk; ++e) {
                Var& sum = rows[r].sums[c * chunk + e];
                sum = fma(weight, elements[e], sum);
              }
            }
          }
      });
      launch_next();

      // Over the slots of a subgroup by exchange, over the subgroups through shared memory.
      for (uint32_t r = 0; r < tile.rows; ++r) {
        Row& row = rows[r];
        Value top = row.maximum;
        for (uint32_t mask = key_lanes; mask < kWarp; mask *= 2)
          top = fast_max(top, subgroup_shuffle_xor(top, mask));
        const Value shrink = fast_exp2(row.maximum - top);
        const auto over_slots = [&](Value x) {
          for (uint32_t mask = key_lanes; mask < kWarp; mask *= 2)
            x = x + subgroup_shuffle_xor(x, mask);
          return x;
        };
        const Value weight = over_slots(row.weight * shrink);
        std::vector<Value> sums;
        for (Var& sum : row.sums) sums.push_back(over_slots(sum * shrink));
        const Value warp = subgroup_id() * tile.rows + r;
        if_(subgroup_lane() < key_lanes, [&] {
          for (uint32_t c = 0; c < own; ++c)
            if_(has(c), [&] {
              for (uint32_t e = 0; e < chunk; ++e)
                warp_sums[warp * width + chunk_at(c) * chunk + e] = sums[c * chunk + e];
            });
        });
        if_(subgroup_lane() == 0u, [&] {
          warp_maxima[warp] = top;
          warp_weights[warp] = weight;
        });
      }
      barrier();
      for_(local_id(), tile.rows * dim, tile.lanes, [&](Value element) {
        const Value r = element / dim, d = element % dim;
        const Value at = width == dim ? element : r * width + d;
        Value top = constant(f32, kNoMaximum);
        for (uint32_t w = 0; w < warps; ++w) top = fast_max(top, warp_maxima[r + w * tile.rows]);
        Value sum = constant(f32, 0), weight = constant(f32, 0);
        for (uint32_t w = 0; w < warps; ++w) {
          const Value maximum = warp_maxima[r + w * tile.rows];
          const Value shrink = fast_exp2(maximum - top);
          sum = fma(warp_sums[at + w * (tile.rows * width)], shrink, sum);
          weight = fma(warp_weights[r + w * tile.rows], shrink, weight);
        }
        const Value index = block * tile.rows + r;
        const Value query = index / group, head = kv_head * group + index % group;
        const Value row = span.first_row + query;
        if_(query < span.queries &&
                (tile.rows * blocks == tile.queries * group ? constant(b1, 1)
                                                            : index < tile.queries * group),
            [&] {
              if (tile.direct) {
                Value all = weight, above = top;
                if (options.sinks) {
                  const Value sink = (*arguments.sinks)[head] * kLog2E;
                  above = fast_max(top, sink);
                  all = weight * fast_exp2(top - above) + fast_exp2(sink - above);
                  sum = sum * fast_exp2(top - above);
                }
                (*arguments.out)[row * *arguments.out_row + head * *arguments.out_head + d] =
                    select(weight > 0.0f, sum / select(all > 0.0f, all, 1.0f), 0.0f);
                return;
              }
              const Value heads = group_count(1) / blocks * group;
              const Value to =
                  ((row * heads + head) * group_count(0) + group_id(0)) * partial_stride(options);
              (*arguments.out)[to + d] = sum;
              if_(d == 0u, [&] {
                (*arguments.out)[to + dim] = top;
                (*arguments.out)[to + (dim + 1)] = weight;
              });
            });
      });
    });
  });
}

ir::Kernel attention_merge(const AttentionOptions& options, const DecodeTile& tile) {
  check_options(options, "attention_merge");
  const uint32_t dim = options.head_dim, lanes = std::min((dim + 31) / 32 * 32, 128u);
  const std::string name = fmt::format("attention_merge_{}_r{}x{}_{}", option_name(options),
                                       tile.queries, tile.rows, tile.keys());
  return kernel(name, lanes, [&] {
    const AttentionArguments arguments(options, AttentionArguments::Result::merged);
    wait_previous();
    const In& partial = *arguments.partial;
    const Span span(*arguments.spans, group_id(2));
    const Value head = group_id(0), query = group_id(1);
    if_(query < span.queries, [&] {
      const Value splits = *arguments.splits;
      const Value block = (query * options.group + head % options.group) / tile.rows;
      const Cut cut(arguments, tile, span, block, splits);
      const Value each = max(cut.each, 1u);  // zero where nothing is seen
      const Value used = (cut.end - cut.begin + each - 1u) / each;
      const Value row = span.first_row + query;
      const Value base = (row * (*arguments.kv_heads * options.group) + head) * splits;
      const auto at = [&](Value split) { return (base + split) * partial_stride(options); };
      Var top(f32, kNoMaximum, "top");
      for_(used, [&](Value split) { top = fast_max(top, partial[at(split) + dim]); });
      if (options.sinks) top = fast_max(top, (*arguments.sinks)[head] * kLog2E);
      for_(local_id(), dim, lanes, [&](Value d) {
        Var sum(f32, 0.0f, "sum");
        Var weight(f32, 0.0f, "weight");
        for_(used, [&](Value split) {
          const Value shrink = fast_exp2(partial[at(split) + dim] - top);
          sum = fma(partial[at(split) + d], shrink, sum);
          weight = fma(partial[at(split) + (dim + 1)], shrink, weight);
        });
        Value all = weight;
        if (options.sinks) all = all + fast_exp2((*arguments.sinks)[head] * kLog2E - top);
        (*arguments.out)[row * *arguments.out_row + head * *arguments.out_head + d] =
            select(weight > 0.0f, sum / select(all > 0.0f, all, 1.0f), 0.0f);
      });
    });
    launch_next();
  });
}

}  // namespace prism::ops
