// Prompt attention with matrix fragments: scores stay in registers; keys and values are prefetched
// through shared memory.
#include <fmt/format.h>

#include "ops/attention/attention_parts.h"
#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kSide = 16;
constexpr uint32_t kPadding = 8;  // elements of 16 bits: avoids bank conflicts among eight rows

void check_tile(const AttentionOptions& options, const PromptTile& tile) {
  if (tile.warps == 0 || tile.blocks == 0 || tile.keys == 0 || tile.keys % kSide != 0 ||
      tile.stages == 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("attention_prompt for heads of {}: {} warps of {} blocks, {} keys, {} "
                            "stages is not a valid tile; see PromptTile",
                            options.head_dim, tile.warps, tile.blocks, tile.keys, tile.stages));
}

// Row length of a tile: a head, zero-padded to whole fragments.
uint32_t tile_width(const AttentionOptions& options) {
  return (options.head_dim + kSide - 1) / kSide * kSide;
}

// Whether keys and values can be copied to shared memory without conversion.
bool is_copied(const AttentionOptions& options) {
  return options.cache == ElementType(options.operand()) && CacheHead::whole_chunks(options);
}

// Fetches rows of the cache into a shared tile.
class TileFetch {
 public:
  TileFetch(const AttentionArguments& arguments, const CachePositions& positions,
            const CacheHead& head, const Array& tile, uint32_t keys, uint32_t lanes)
      : arguments_(arguments),
        positions_(positions),
        head_(head),
        tile_(tile),
        keys_(keys),
        lanes_(lanes) {}

  // Fetches positions [first, first + keys) into a slot; zeros where none is held.
  void fetch(Value slot, Value first) const {
    const AttentionOptions& options = arguments_.options;
    const uint32_t width = tile_width(options), row_length = width + kPadding;
    const bool copies = is_copied(options);
    const uint32_t each = CacheHead::chunk_elements(options), chunks = width / each;
    const uint32_t used = head_.chunks();
    for (uint32_t turn = 0; turn * lanes_ < keys_ * chunks; ++turn) {
      const Value index = local_id() + turn * lanes_;
      const Value row = index / chunks, chunk = index % chunks;
      const Value position = first + row;
      Value wanted = positions_.holds(position);
      if (used != chunks) wanted = wanted && chunk < used;
      const Value to = slot * (keys_ * row_length) + row * row_length + chunk * each;
      const auto move = [&] {
        if (copies) {
          async_copy_if(wanted, tile_, to, head_.cache(), head_.element(position) + chunk * each,
                        each);
          return;
        }
        const CacheHead::Chunk loaded = head_.load(wanted, position, chunk);
        const std::vector<Value> elements = head_.unpack(loaded);
        for (uint32_t e = 0; e < each; e += 4) {
          std::vector<Value> four;
          for (uint32_t i = 0; i < 4; ++i)
            four.push_back(loaded.factor ? elements[e + i] * *loaded.factor : elements[e + i]);
          for (uint32_t i = 0; i < 4; ++i) tile_[to + (e + i)] = four[i];
        }
      };
      if ((turn + 1) * lanes_ <= keys_ * chunks)
        move();
      else
        if_(index < keys_ * chunks, move);
    }
  }

 private:
  const AttentionArguments& arguments_;
  const CachePositions& positions_;
  const CacheHead& head_;
  const Array& tile_;
  uint32_t keys_, lanes_;
};

// The state of 16 queries in one subgroup.
struct Block {
  std::vector<Fragment> q, scores, sums;
  Fragment maximum, previous, weight;
};

}  // namespace

PromptTile prompt_tile(const AttentionOptions& options) {
  PromptTile tile;
  if (options.head_dim > 128) {  // accumulators of 32 queries would not fit the registers
    tile.blocks = 1;
    tile.warps = 8;
    tile.keys = 32;
  }
  return tile;
}

ir::Kernel attention_prompt(const AttentionOptions& options, const PromptTile& tile) {
  check_options(options, "attention_prompt");
  check_tile(options, tile);
  const uint32_t width = tile_width(options), steps = width / kSide;
  const uint32_t lanes = tile.warps * tile.subgroup;
  const uint32_t row_length = width + kPadding, keys = tile.keys, columns = keys / kSide;
  const bool copies = is_copied(options);
  const uint32_t stages = copies ? tile.stages : 1;
  const std::string name =
      fmt::format("attention_prompt_{}_{}x{}_{}_{}{}", option_name(options), tile.warps,
                  tile.blocks, keys, stages, tile.q_in_registers ? "_q" : "") +
      (tile.subgroup == 32 ? "" : fmt::format("_of{}", tile.subgroup));
  return kernel(name, lanes, [&] {
    require_subgroup_size(tile.subgroup);
    const AttentionArguments arguments(options, AttentionArguments::Result::out);
    auto q_tile = shared(options.operand(), tile.queries() * row_length, "q_tile");
    auto k_tile = shared(options.operand(), stages * keys * row_length, "k_tile");
    auto v_tile = shared(options.operand(), stages * keys * row_length, "v_tile");

    const Span span(*arguments.spans, group_id(2));
    const Value head = group_id(0), kv_head = head / options.group;
    // Start with the last queries: they see the most keys, and no long group should run last.
    const Value first_query = (group_count(1) - 1u - group_id(1)) * tile.queries();
    if_(first_query < span.queries, [&] {
      // The keys that at least one query of the group sees.
      const Value last_query = min(first_query + tile.queries(), span.queries) - 1u;
      const Value end = arguments.end_seen(span.position(last_query), span.keys);
      const Value seen = arguments.first_seen(span.position(first_query));
      const Value begin = options.window ? seen / keys * keys : seen;
      const Value turns = (end - begin + (keys - 1)) / keys;
      CachePositions positions(arguments, span.slot, begin, end, seen, keys);
      const CacheHead key_head(arguments, CacheHead::Of::keys, positions, kv_head),
          value_head(arguments, CacheHead::Of::values, positions, kv_head);
      const TileFetch key_fetch(arguments, positions, key_head, k_tile, keys, lanes),
          value_fetch(arguments, positions, value_head, v_tile, keys, lanes);
      const std::optional<Value> slope = arguments.slope_of(head);
      const auto query_of = [&](Value query) {
        return arguments.query(span.first_row + query, head, slope, span.position(query));
      };
      const auto fetch = [&](Value slot, Value first) {
        positions.enter(first);
        key_fetch.fetch(slot, first);
        value_fetch.fetch(slot, first);
        if (copies) async_commit();
      };

      if (copies)
        for (uint32_t s = 0; s + 1 < stages; ++s) fetch(constant(u32, s), begin + s * keys);

      // Write q to shared memory: scaled, rounded, zeros beyond the last query. The gradient
      // multiplies unscaled rows, and bf16 loses too much by another rounding: scale scores
      // instead.
      const bool scales_scores = options.sums || options.operand() == bf16;
      const Value factor = arguments.q_factor();
      for_(local_id(), tile.queries() * (width / 4), lanes, [&](Value index) {
        const Value row = index / (width / 4), d = index % (width / 4) * 4u;
        const Value query = first_query + row;
        const std::vector<Value> four =
            arguments.four_of_q(query < span.queries, span.first_row + query, head, d);
        for (uint32_t i = 0; i < 4; ++i)
          q_tile[row * row_length + d + i] = scales_scores ? four[i] : four[i] * factor;
      });
      barrier();

      const Value own_rows = subgroup_id() * (tile.blocks * kSide);
      const auto load_q = [&](const Fragment& to, uint32_t block, uint32_t step) {
        to.load(q_tile, (own_rows + block * kSide) * row_length + step * kSide, row_length);
      };
      std::vector<Block> blocks;
      for (uint32_t b = 0; b < tile.blocks; ++b) {
        Block block{{}, {}, {}, accumulator(f32), accumulator(f32), accumulator(f32)};
        for (uint32_t s = 0; s < (tile.q_in_registers ? steps : 1); ++s) {
          block.q.push_back(fragment_a(options.operand()));
          if (tile.q_in_registers) load_q(block.q.back(), b, s);
        }
        for (uint32_t c = 0; c < columns; ++c) block.scores.push_back(accumulator(f32));
        for (uint32_t s = 0; s < steps; ++s) {
          block.sums.push_back(accumulator(f32));
          block.sums.back().fill(0.0f);
        }
        block.maximum.fill(kNoMaximum);
        block.weight.fill(0.0f);
        blocks.push_back(std::move(block));
      }
      const Fragment operand = fragment_b(options.operand()),
                     weights_operand = fragment_a(options.operand());

      Var slot(u32, 0u, "slot");
      for_(turns, [&](Value turn) {
        const Value first_key = begin + turn * keys;
        if (copies && stages > 1) {
          async_wait(stages - 2);
          barrier();
          const Value ahead = first_key + (stages - 1) * keys;
          const Value to = select(slot == 0u, stages - 1, slot - 1u);
          fetch(to, ahead);
        } else {
          barrier();  // the previous iteration has read its tiles
          fetch(constant(u32, 0), first_key);
          if (copies) async_wait(0);
          barrier();
        }
        const Value tile_start = slot * (keys * row_length);
        for (const Block& block : blocks)
          for (const Fragment& one : block.scores) one.fill(0.0f);
        for (uint32_t s = 0; s < steps; ++s) {
          if (!tile.q_in_registers)
            for (uint32_t b = 0; b < tile.blocks; ++b) load_q(blocks[b].q[0], b, s);
          for (uint32_t c = 0; c < columns; ++c) {
            operand.load(k_tile, tile_start + (c * kSide * row_length + s * kSide), row_length,
                         Layout::column_major);
            for (const Block& block : blocks)
              block.scores[c].multiply(block.q[tile.q_in_registers ? s : 0], operand);
          }
        }

        for (uint32_t b = 0; b < tile.blocks; ++b) {
          const Block& block = blocks[b];
          const Value block_query = first_query + own_rows + b * kSide;
          const auto each_score = [&](const std::function<Value(Value, Value, Value)>& f) {
            for (uint32_t c = 0; c < columns; ++c)
              block.scores[c].map([&](Value score, Value row, Value column) {
                return f(score, block_query + row, first_key + column + c * kSide);
              });
          };
          if (scales_scores)
            for (const Fragment& score : block.scores)
              score.map([&](Value product, Value, Value) { return product * factor; });
          if (options.mask) {
            each_score([&](Value score, Value query, Value key) {
              const Value inside = query < span.queries && key < end;
              Var masked(f32, kHidden, "masked");
              if_(inside && arguments.sees(span.position(query), key),
                  [&] { masked = arguments.score(score, query_of(query), key); });
              return Value(masked);
            });
          } else {
            if (arguments.scores_differ())
              each_score([&](Value score, Value query, Value key) {
                return arguments.score(score, query_of(query), key);
              });
            // Mask only tiles in which a key is hidden from a query of the group.
            Value hidden = first_key + keys > end;
            if (options.causal)
              hidden = hidden || first_key + keys > span.position(first_query) + 1u;
            else if (options.window)
              hidden = hidden ||
                       first_key + keys > arguments.end_seen(span.position(first_query), span.keys);
            if (options.chunked)
              hidden = hidden || first_key < arguments.first_seen(span.position(last_query));
            else if (options.window)
              hidden = hidden || first_key + *arguments.window <= span.position(last_query);
            if_(hidden, [&] {
              each_score([&](Value score, Value query, Value key) {
                return select(key < end && arguments.sees(span.position(query), key), score,
                              kHidden);
              });
            });
          }

          block.previous.map({block.maximum},
                             [](const std::vector<Value>& e, Value, Value) { return e[0]; });
          std::vector<Fragment> all = block.scores;
          all.push_back(block.maximum);
          block.maximum.map(all, [](const std::vector<Value>& e, Value, Value) {
            Value top = e[0];
            for (size_t i = 1; i < e.size(); ++i) top = fast_max(top, e[i]);
            return top;
          });
          block.maximum.row_reduce(ReduceOp::max, block.maximum);
          block.previous.map(
              {block.previous, block.maximum},
              [](const std::vector<Value>& e, Value, Value) { return fast_exp2(e[0] - e[1]); });
          for (const Fragment& score : block.scores)
            score.map({score, block.maximum}, [](const std::vector<Value>& e, Value, Value) {
              return fast_exp2(e[0] - e[1]);
            });
          std::vector<Fragment> weighed = block.scores;
          weighed.push_back(block.weight);
          weighed.push_back(block.previous);
          block.weight.map(weighed, [&](const std::vector<Value>& e, Value, Value) {
            Value sum = e[columns] * e[columns + 1];
            for (uint32_t c = 0; c < columns; ++c) sum = sum + e[c];
            return sum;
          });
          for (const Fragment& sum : block.sums)
            sum.map({sum, block.previous},
                    [](const std::vector<Value>& e, Value, Value) { return e[0] * e[1]; });
        }

        std::vector<Fragment> weights;
        for (uint32_t c = 0; c < columns; ++c) {
          for (uint32_t b = 0; b < tile.blocks; ++b) {
            if (weights.size() <= b)
              weights.push_back(b == 0 ? weights_operand : fragment_a(options.operand()));
            weights[b].convert(blocks[b].scores[c]);
          }
          for (uint32_t s = 0; s < steps; ++s) {
            operand.load(v_tile, tile_start + (c * kSide * row_length + s * kSide), row_length);
            for (uint32_t b = 0; b < tile.blocks; ++b)
              blocks[b].sums[s].multiply(weights[b], operand);
          }
        }
        if (stages > 1) slot = select(slot == stages - 1, 0u, slot + 1u);
      });
      if (copies) async_wait(0);
      barrier();

      for (uint32_t b = 0; b < tile.blocks; ++b) {
        const Block& block = blocks[b];
        const Value block_query = first_query + own_rows + b * kSide;
        block.weight.row_reduce(ReduceOp::add, block.weight);
        if (options.sums)
          block.maximum.map({block.maximum, block.weight}, [&](const std::vector<Value>& e,
                                                               Value row, Value column) {
            const Value query = block_query + row;
            arguments.store_sum(query < span.queries && column == 0u, span.first_row + query, head,
                                group_count(0), e[0], e[1]);
            return e[0];
          });
        if (options.sinks) {
          const Value sink = (*arguments.sinks)[head] * kLog2E;
          // Include the sink in the normalisation of the sums.
          block.weight.map(
              {block.weight, block.maximum}, [&](const std::vector<Value>& e, Value, Value) {
                const Value top = fast_max(e[1], sink);
                const Value keys_weight = e[0] * fast_exp2(e[1] - top);
                const Value share = fast_exp2(e[1] - top) / (keys_weight + fast_exp2(sink - top));
                return select(e[0] > 0.0f, share, 0.0f);
              });
        } else {
          block.weight.map([](Value weight, Value, Value) {
            return select(weight > 0.0f, 1.0f / select(weight > 0.0f, weight, 1.0f), 0.0f);
          });
        }
        for (const Fragment& sum : block.sums)
          sum.map({sum, block.weight},
                  [](const std::vector<Value>& e, Value, Value) { return e[0] * e[1]; });
        for (uint32_t s = 0; s < steps; ++s)
          block.sums[s].map([&](Value value, Value row, Value column) {
            const Value query = block_query + row;
            const Value at = (span.first_row + query) * *arguments.out_row +
                             head * *arguments.out_head + column + s * kSide;
            Value inside = query < span.queries;
            if ((s + 1) * kSide > options.values())
              inside = inside && column + s * kSide < options.values();
            arguments.out->store_if(inside, at, value);
            return value;
          });
      }
    });
  });
}

}  // namespace prism::ops
