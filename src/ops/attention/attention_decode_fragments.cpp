// Decode attention with matrix fragments: the rows that share a key/value head form a block of 16,
// and each subgroup prefetches its own keys through shared memory.
#include <fmt/format.h>

#include "ops/attention/attention_split_kv.h"
#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kSide = 16;
constexpr uint32_t kPadding = 8;  // f16 elements: avoids bank conflicts among eight rows

void check_tile(const AttentionOptions& options, const DecodeTile& tile) {
  const bool fits = tile.lanes % kDecodeSubgroup == 0 && tile.lanes > 0 && tile.rows > 0 &&
                    tile.rows <= kSide && tile.queries > 0 && tile.unroll > 0 &&
                    tile.rows <= tile.queries * options.group && CacheHead::whole_chunks(options) &&
                    (options.cache == ElementType(f16) || options.cache.is_block());
  if (!fits)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("attention_decode with fragments: {} lanes, {} rows of {}, {} blocks of "
                    "keys, heads of {} in {} is not a valid tile; see DecodeTile",
                    tile.lanes, tile.rows, tile.queries * options.group, tile.unroll,
                    options.head_dim, options.cache.name()));
}

// A chunk of a q8_0 cache in variables: loaded in one iteration, used in the next.
class HeldChunk {
 public:
  HeldChunk() {
    for (uint32_t w = 0; w < 4; ++w) words_.emplace_back(u32, 0u, "word");
  }
  void hold(const CacheHead::Chunk& chunk) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] = chunk.words[w];
    factor_ = *chunk.factor;
  }
  CacheHead::Chunk chunk() const { return {{words_.begin(), words_.end()}, {}, factor_}; }

 private:
  std::vector<Var> words_;
  Var factor_{f32, 0.0f, "factor"};
};

// Prefetches keys or values into a shared f16 tile: by async copies, or through registers if they
// must be unpacked.
class Stream {
 public:
  Stream(const AttentionArguments& arguments, CacheHead::Of of, const CachePositions& positions,
         Value kv_head, const Array& tile, const DecodeTile& cut, uint32_t width)
      : positions_(positions),
        head_(arguments, of, positions, kv_head),
        tile_(tile),
        keys_(cut.keys()),
        lanes_(cut.lanes),
        each_(CacheHead::chunk_elements(arguments.options)),
        used_(head_.chunks()),
        chunks_(width / each_),
        row_length_(width + kPadding),
        copies_(arguments.options.cache == ElementType(f16)) {
    if (!copies_) held_ = std::vector<HeldChunk>((keys_ * chunks_ + lanes_ - 1) / lanes_);
  }

  // Starts loading positions [first, first + keys) into a slot of the tile; zeros where none is
  // held.
  void ask(Value slot, Value first) {
    each_chunk([&](uint32_t turn, Value row, Value chunk) {
      const Value position = first + row;
      Value wanted = positions_.holds(position);
      if (used_ != chunks_) wanted = wanted && chunk < used_;
      if (copies_) {
        async_copy_if(wanted, tile_, place(slot, row, chunk), head_.cache(),
                      head_.element(position) + chunk * each_, each_);
        return;
      }
      held_[turn].hold(head_.load(wanted, position, chunk));
    });
  }

  // Writes the chunks loaded last to a slot of the tile.
  void unpack(Value slot) {
    each_chunk([&](uint32_t turn, Value row, Value chunk) {
      const std::vector<Value> elements = head_.unpack_times_factor(held_[turn].chunk());
      const Value to = place(slot, row, chunk);
      for (uint32_t e = 0; e < each_; e += 4)
        tile_.store(to + e, vec(elements[e], elements[e + 1], elements[e + 2], elements[e + 3]));
    });
  }

 private:
  Value place(Value slot, Value row, Value chunk) const {
    return slot * (keys_ * row_length_) + row * row_length_ + chunk * each_;
  }
  void each_chunk(const std::function<void(uint32_t, Value, Value)>& body) {
    for (uint32_t turn = 0; turn * lanes_ < keys_ * chunks_; ++turn) {
      const Value index = local_id() + turn * lanes_;
      // Turns of whole rows differ by a constant, which compilers do not see.
      const bool by_rows = lanes_ % chunks_ == 0;
      const auto one = [&] {
        if (by_rows)
          body(turn, local_id() / chunks_ + turn * (lanes_ / chunks_), local_id() % chunks_);
        else
          body(turn, index / chunks_, index % chunks_);
      };
      if ((turn + 1) * lanes_ <= keys_ * chunks_)
        one();
      else
        if_(index < keys_ * chunks_, one);
    }
  }

  const CachePositions& positions_;
  CacheHead head_;
  const Array& tile_;
  uint32_t keys_, lanes_, each_, used_, chunks_, row_length_;
  bool copies_;
  std::vector<HeldChunk> held_;
};

// Row length of a tile: a head, zero-padded to whole fragments.
uint32_t tile_width(const AttentionOptions& options) {
  return (options.head_dim + kSide - 1) / kSide * kSide;
}

}  // namespace

uint64_t fragment_shared_bytes(const AttentionOptions& options, const DecodeTile& tile) {
  const uint64_t width = tile_width(options), warps = tile.lanes / kDecodeSubgroup;
  const uint64_t rows_of_f16 = kSide + 2 * uint64_t{tile.stages} * tile.keys();
  const uint64_t numbers = (warps * tile.rows * 4 + 15) / 16 * 16;  // maximum and weight per row
  const uint64_t counted = (warps * 4 + 15) / 16 * 16;  // whether this group is the last
  return rows_of_f16 * (width + kPadding) * 2 + warps * tile.rows * width * 4 + 2 * numbers +
         counted;
}

ir::Kernel attention_decode_by_fragments(const AttentionOptions& options, const DecodeTile& tile) {
  check_tile(options, tile);
  const uint32_t group = options.group;
  const uint32_t width = tile_width(options), steps = width / kSide;
  const uint32_t row_length = width + kPadding, keys = tile.keys(), columns = tile.unroll;
  const bool copies = options.cache == ElementType(f16);
  const uint32_t stages = tile.stages;
  // Keep q in shared memory if registers hold prefetched chunks or the sums of long heads.
  const bool q_in_registers = copies && steps <= 8;
  const std::string name =
      fmt::format("attention_decode_{}_r{}x{}_{}_fragments_{}_{}{}", option_name(options),
                  tile.queries, tile.rows, tile.lanes, columns, stages,
                  tile.direct   ? "_direct"
                  : tile.merges ? "_merges"
                                : "");
  return kernel(name, tile.lanes, [&] {
    require_subgroup_size(kDecodeSubgroup);
    const AttentionArguments arguments(options, result_of(tile));
    auto q_tile = shared(f16, kSide * row_length, "q_tile");
    auto k_tile = shared(f16, stages * keys * row_length, "k_tile");
    auto v_tile = shared(f16, stages * keys * row_length, "v_tile");
    const SubgroupSums results(tile, width);

    const RowBlock own_rows(arguments, tile);
    const Span& span = own_rows.span;
    const Value &kv_head = own_rows.kv_head, &block = own_rows.block;
    // Tiles that are loaded before the loop, and the first that it loads.
    const uint32_t ahead = copies ? stages : 2;
    with_split(own_rows, results, [&](const SplitKeys& split) {
      const Value &begin = split.begin, &end = split.end;
      CachePositions& positions = split.positions;
      Stream key_stream(arguments, CacheHead::Of::keys, positions, kv_head, k_tile, tile, width),
          value_stream(arguments, CacheHead::Of::values, positions, kv_head, v_tile, tile, width);
      const auto ask = [&](Value slot, Value first) {
        const auto both = [&] {
          positions.enter(first);
          key_stream.ask(slot, first);
          value_stream.ask(slot, first);
        };
        // Keep the register loads out of branches, so that the compiler can move them (H200, 32,768
        // keys of q8_0: 48 us with a branch, 38 without).
        if (!copies) return both();
        if_(first < end, both);
        async_commit();
      };
      for (uint32_t s = 0; s + 1 < ahead; ++s) ask(constant(u32, s), begin + s * keys);

      // Write q to shared memory: scaled, rounded, zeros beyond the last row.
      const Value factor = arguments.q_factor();
      for_(local_id(), kSide * (width / 4), tile.lanes, [&](Value index) {
        const Value r = index / (width / 4), d = index % (width / 4) * 4u;
        const Value row = block * tile.rows + r, query = row / group;
        const std::vector<Value> four =
            arguments.four_of_q(r < tile.rows && query < span.queries, span.first_row + query,
                                kv_head * group + row % group, d);
        q_tile.store(r * row_length + d,
                     vec(four[0] * factor, four[1] * factor, four[2] * factor, four[3] * factor));
      });
      barrier();
      const auto load_q = [&](const Fragment& to, uint32_t step) {
        to.load(q_tile, constant(u32, step * kSide), constant(u32, row_length));
      };
      std::vector<Fragment> q, scores, sums;
      for (uint32_t s = 0; s < steps; ++s) {
        if (s == 0 || q_in_registers) q.push_back(fragment_a(f16));
        if (q_in_registers) load_q(q.back(), s);
        sums.push_back(accumulator(f32));
        sums.back().fill(0.0f);
      }
      for (uint32_t c = 0; c < columns; ++c) scores.push_back(accumulator(f32));
      const Fragment maximum = accumulator(f32), shrink = accumulator(f32),
                     weight = accumulator(f32), operand = fragment_b(f16),
                     weights = fragment_a(f16);
      maximum.fill(kNoMaximum);
      weight.fill(0.0f);

      const Value own_keys = subgroup_id() * (columns * kSide);
      Var slot(u32, 0u, "slot");
      for_(begin, end, keys, [&](Value first) {
        const Value next = select(slot == stages - 1, 0u, slot + 1u);
        if (copies && stages > 1) {
          async_wait(stages - 2);
          barrier();
          ask(select(slot == 0u, stages - 1, slot - 1u), first + (stages - 1) * keys);
        } else if (copies) {
          barrier();  // the previous iteration has read its tiles
          ask(slot, first);
          async_wait(0);
          barrier();
        } else {
          if (stages == 1) barrier();
          key_stream.unpack(slot);
          value_stream.unpack(slot);
          ask(slot, first + keys);
          barrier();
        }
        const Value start = (slot * keys + own_keys) * row_length, first_key = first + own_keys;
        for (uint32_t c = 0; c < columns; ++c) scores[c].fill(0.0f);
        for (uint32_t s = 0; s < steps; ++s) {
          if (!q_in_registers) load_q(q[0], s);
          for (uint32_t c = 0; c < columns; ++c) {
            operand.load(k_tile, start + (c * kSide * row_length + s * kSide), row_length,
                         Layout::column_major);
            scores[c].multiply(q[q_in_registers ? s : 0], operand);
          }
        }

        const auto each_score = [&](const std::function<Value(Value, Value, Value, Value)>& f) {
          for (uint32_t c = 0; c < columns; ++c)
            scores[c].map([&](Value score, Value r, Value column) {
              return f(score, r, (block * tile.rows + r) / group, first_key + column + c * kSide);
            });
        };
        const auto query_of = [&](Value r, Value query) {
          const Value head = kv_head * group + (block * tile.rows + r) % group;
          return arguments.query(span.first_row + query, head, arguments.slope_of(head),
                                 span.position(query));
        };
        const auto sees = [&](Value query, Value key) {
          return tile.queries > 1 ? key < end && arguments.sees(span.position(query), key)
                                  : positions.holds(key);
        };
        if (options.mask) {
          each_score([&](Value score, Value r, Value query, Value key) {
            Var masked(f32, kHidden, "masked");
            if_(r < tile.rows && query < span.queries && sees(query, key),
                [&] { masked = arguments.score(score, query_of(r, query), key); });
            return Value(masked);
          });
        } else {
          if (arguments.scores_differ())
            each_score([&](Value score, Value r, Value query, Value key) {
              return arguments.score(score, query_of(r, query), key);
            });
          const auto hide = [&] {
            each_score([&](Value score, Value, Value query, Value key) {
              return select(sees(query, key), score, kHidden);
            });
          };
          // A single query sees all keys of its split: only the last tile, and with a window the
          // first, can contain others.
          const Value last = first + keys > end;
          if (tile.queries > 1)
            hide();
          else
            if_(options.window ? last || first < split.seen : last, hide);
        }

        shrink.map({maximum}, [](const std::vector<Value>& e, Value, Value) { return e[0]; });
        std::vector<Fragment> all = scores;
        all.push_back(maximum);
        maximum.map(all, [](const std::vector<Value>& e, Value, Value) {
          Value top = e[0];
          for (size_t i = 1; i < e.size(); ++i) top = fast_max(top, e[i]);
          return top;
        });
        maximum.row_reduce(ReduceOp::max, maximum);
        shrink.map({shrink, maximum}, [](const std::vector<Value>& e, Value, Value) {
          return fast_exp2(e[0] - e[1]);
        });
        for (const Fragment& score : scores)
          score.map({score, maximum}, [](const std::vector<Value>& e, Value, Value) {
            return fast_exp2(e[0] - e[1]);
          });
        std::vector<Fragment> weighed = scores;
        weighed.push_back(weight);
        weighed.push_back(shrink);
        weight.map(weighed, [&](const std::vector<Value>& e, Value, Value) {
          Value sum = e[columns] * e[columns + 1];
          for (uint32_t c = 0; c < columns; ++c) sum = sum + e[c];
          return sum;
        });
        for (const Fragment& sum : sums)
          sum.map({sum, shrink},
                  [](const std::vector<Value>& e, Value, Value) { return e[0] * e[1]; });
        for (uint32_t c = 0; c < columns; ++c) {
          weights.convert(scores[c]);
          for (uint32_t s = 0; s < steps; ++s) {
            operand.load(v_tile, start + (c * kSide * row_length + s * kSide), row_length);
            sums[s].multiply(weights, operand);
          }
        }
        if (stages > 1) slot = next;
      });
      if (copies) async_wait(0);

      weight.row_reduce(ReduceOp::add, weight);
      const auto store_rows = [&](const Fragment& fragment, const Array& to,
                                  const std::function<Value(Value, Value)>& at, Value columns_end) {
        fragment.map([&](Value value, Value r, Value column) {
          to.store_if(r < tile.rows && column < columns_end, at(results.row(tile, r), column),
                      value);
          return value;
        });
      };
      const auto of_row = [](Value row, Value) { return row; };
      store_rows(maximum, results.maxima, of_row, constant(u32, 1));
      store_rows(weight, results.weights, of_row, constant(u32, 1));
      for (uint32_t s = 0; s < steps; ++s)
        store_rows(
            sums[s], results.sums,
            [&](Value row, Value column) { return row * width + column + s * kSide; },
            constant(u32, kSide));
    });
  });
}

}  // namespace prism::ops
