// Split-KV decode attention: how keys are split, and writing and merging the partial results.
#include "ops/attention/attention_split_kv.h"

#include <algorithm>
#include <span>

namespace prism::ops {

using namespace dsl;

namespace {

// Up to this many iterations one group takes all keys, which is faster than merging splits (H200, a
// 7B model with up to 128 keys: 706 tokens/s through CUDA with 2, 700 with 4, 697 with 0; through
// forwarded HIP 636, 635 and 624).
constexpr uint32_t kTurnsAlone = 2;

// Splits that are added together once their maximum is known.
constexpr uint32_t kMergedAtOnce = 4;

// The partial result of a split for four elements of a row.
struct Part {
  Value sums, maximum, weight;
};

// The running sum of one lane over splits of a row.
struct Strand {
  explicit Strand(Value number) : index(number) {
    for (uint32_t i = 0; i < 4; ++i) four.emplace_back(f32, 0.0f, "sum");
  }
  void add(std::span<const Part> parts) {
    Value above = top;
    for (const Part& part : parts) above = fast_max(above, part.maximum);
    const Value shrink = fast_exp2(top - above);
    top = above;
    weight *= shrink;
    for (Var& sum : four) sum *= shrink;
    for (const Part& part : parts) {
      const Value share = fast_exp2(part.maximum - above);
      weight = fma(part.weight, share, weight);
      for (uint32_t i = 0; i < 4; ++i) four[i] = fma(part.sums[i], share, four[i]);
    }
  }
  Value index;
  Var top{f32, kNoMaximum, "top"}, weight{f32, 0.0f, "weight"};
  std::vector<Var> four;
};

// Split s belongs to strand s % strands whichever lanes add it, so that both kinds of merge give
// the same bits. As many strands run in parallel as there are lanes; the others run one after the
// other in the same lane.
struct MergeShare {
  uint32_t strands, quads, items, beside, own;
  MergeShare(const AttentionOptions& options, const DecodeTile& tile)
      : strands(tile.lanes / kDecodeSubgroup),
        quads((options.values() + 3) / 4),
        items(tile.rows * quads),
        beside(strands) {
    while (beside > 1 && (strands % beside != 0 || beside * items > tile.lanes)) --beside;
    own = strands / beside;
  }
};

}  // namespace

uint32_t partial_stride(const AttentionOptions& options) {
  return (options.values() + 3) / 4 * 4 + 4;
}

uint32_t blocks_of_rows(const AttentionOptions& options, const DecodeTile& tile) {
  return (tile.queries * options.group + tile.rows - 1) / tile.rows;
}

std::array<uint32_t, 3> decode_grid(const AttentionOptions& options, const DecodeTile& tile,
                                    uint32_t splits, uint32_t kv_heads, uint32_t sequences) {
  return {splits, kv_heads * blocks_of_rows(options, tile), sequences};
}

uint64_t decode_counters(const AttentionOptions& options, const DecodeTile& tile, uint32_t kv_heads,
                         uint32_t sequences) {
  return uint64_t{kv_heads} * blocks_of_rows(options, tile) * sequences;
}

bool suits_merges(const AttentionOptions& options, const DecodeTile& tile, uint32_t splits,
                  const ir::Capabilities& capabilities) {
  const uint32_t buffers = 7 + options.mask + options.sinks + (options.block > 0);
  // With overlapping launches a second launch costs less than the fences (H200, 4,096 keys, 8 kv
  // heads, group 4: 9.1 against 10.4 us; one row of q8_0: 16.3 against 17.2), except for one row of
  // f16: 20.0 either way.
  const bool costs_less = tile.rows > 1 || options.cache.is_block();
  if ((capabilities.dependent_launch && costs_less) || !capabilities.device_fence ||
      buffers > std::min(ir::kMaxBuffers, capabilities.max_buffers))
    return false;
  // Merge here only if it takes at most five dependent loads, about 0.5 us each, which is what a
  // launch and its wait cost. Estimated, not measured.
  const MergeShare lanes(options, tile);
  const uint32_t turns_of_splits = (splits - 1) / (lanes.strands * kMergedAtOnce) + 1;
  return turns_of_splits * ((lanes.beside * lanes.items - 1) / tile.lanes + 1) <= 5;
}

DecodeTile merge_tile(const DecodeTile& decode) {
  DecodeTile tile = decode;
  tile.rows = 1;
  return tile;
}

std::array<uint32_t, 3> merge_grid(const AttentionOptions& options, const DecodeTile& tile,
                                   uint32_t kv_heads, uint32_t sequences) {
  return decode_grid(options, merge_tile(tile), 1, kv_heads, sequences);
}

uint64_t partial_elements(const AttentionOptions& options, uint32_t splits, uint32_t kv_heads,
                          uint32_t rows) {
  return uint64_t{rows} * kv_heads * options.group * splits * partial_stride(options);
}

uint32_t keys_alone(const DecodeTile& tile) { return kTurnsAlone * tile.keys(); }

Cut::Cut(const AttentionArguments& arguments, const DecodeTile& tile, const Span& span, Value block,
         Value all_splits)
    : splits(all_splits),
      begin(constant(u32, 0)),
      end(span.keys),
      each(begin),
      seen(begin),
      alone(constant(b1, 0)) {
  if ((arguments.options.causal || arguments.options.window) && tile.queries > 1) {
    const Value last = (block * tile.rows + (tile.rows - 1)) / arguments.options.group;
    end = arguments.end_seen(span.position(last), span.keys);
  }
  if (arguments.options.window) {
    seen = arguments.first_seen(span.position(block * tile.rows / arguments.options.group));
    begin = seen / tile.keys() * tile.keys();
  }
  const Value whole = (end - begin + (splits - 1u)) / splits;
  each = (whole + (tile.keys() - 1)) / tile.keys() * tile.keys();
  if (!tile.merges) return;
  alone = end - begin <= keys_alone(tile);
  each = select(alone, keys_alone(tile), each);
}

RowBlock::RowBlock(const AttentionArguments& the_arguments, const DecodeTile& the_tile)
    : arguments(the_arguments),
      tile(the_tile),
      span(*arguments.spans, group_id(2)),
      kv_head(group_id(1) / blocks_of_rows(arguments.options, tile)),
      block(group_id(1) % blocks_of_rows(arguments.options, tile)),
      kv_heads(group_count(1) / blocks_of_rows(arguments.options, tile)),
      used(block * tile.rows / arguments.options.group < span.queries) {
  launch_next();
}

RowBlock::Row RowBlock::at(Value r) const {
  const uint32_t group = arguments.options.group, all = tile.queries * group;
  const Value index = block * tile.rows + r, query = index / group;
  Value wanted = query < span.queries;
  if (tile.rows * blocks_of_rows(arguments.options, tile) != all) wanted = wanted && index < all;
  return {query, kv_head * group + index % group, span.first_row + query, wanted};
}

Value RowBlock::partial(const Row& row, Value splits, Value split) const {
  const Value heads = kv_heads * arguments.options.group;
  return ((row.row * heads + row.head) * splits + split) * partial_stride(arguments.options);
}

SubgroupSums::SubgroupSums(const DecodeTile& tile, uint32_t row_width)
    : width(row_width),
      sums(shared(f32, tile.lanes / kDecodeSubgroup * tile.rows * width, "warp_sums")),
      maxima(shared(f32, tile.lanes / kDecodeSubgroup * tile.rows, "warp_maxima")),
      weights(shared(f32, tile.lanes / kDecodeSubgroup * tile.rows, "warp_weights")) {}

Value SubgroupSums::row(const DecodeTile& tile, Value r) const {
  return subgroup_id() * tile.rows + r;
}

SubgroupSums::Whole SubgroupSums::over_subgroups(const DecodeTile& tile, Value r, Value at) const {
  const uint32_t warps = tile.lanes / kDecodeSubgroup;
  Value top = constant(f32, kNoMaximum);
  for (uint32_t w = 0; w < warps; ++w) top = fast_max(top, maxima[r + w * tile.rows]);
  Value sum = constant(f32, 0), weight = constant(f32, 0);
  for (uint32_t w = 0; w < warps; ++w) {
    const Value maximum = maxima[r + w * tile.rows];
    const Value shrink = fast_exp2(maximum - top);
    sum = fma(sums[at + w * (tile.rows * width)], shrink, sum);
    weight = fma(weights[r + w * tile.rows], shrink, weight);
  }
  return {sum, top, weight};
}

void SubgroupSums::write_partial(const RowBlock& rows, Value splits, Value split) const {
  const DecodeTile& tile = rows.tile;
  const AttentionOptions& options = rows.arguments.options;
  const uint32_t dim = options.values();
  const Array& partial = *rows.arguments.partial;
  for_(local_id(), tile.rows * dim, tile.lanes, [&](Value element) {
    const Value r = element / dim, d = element % dim;
    const RowBlock::Row row = rows.at(r);
    if_(row.wanted, [&] {
      const Whole whole = over_subgroups(tile, r, width == dim ? element : r * width + d);
      const Value to = rows.partial(row, splits, split);
      partial[to + d] = whole.sum;
      if_(d == 0u,
          [&] { partial.store(to + (partial_stride(options) - 4), vec(whole.top, whole.weight)); });
    });
  });
}

void SubgroupSums::write_result(const RowBlock& rows) const {
  const DecodeTile& tile = rows.tile;
  const AttentionOptions& options = rows.arguments.options;
  const uint32_t dim = options.values(), elements = tile.rows * dim;
  // Rounding needs all lanes.
  for_(options.rounded ? constant(u32, 0) : local_id(), elements, tile.lanes, [&](Value number) {
    const Value element = options.rounded ? number + local_id() : number;
    const Value r = element / dim, d = element % dim;
    const RowBlock::Row row = rows.at(r);
    Value wanted = row.wanted;
    if (options.rounded && elements % tile.lanes != 0) wanted = wanted && element < elements;
    Var made(f32, 0.0f, "made");
    if_(wanted, [&] {
      const Whole whole = over_subgroups(tile, r, width == dim ? element : r * width + d);
      Value sum = whole.sum, all = whole.weight;
      if (options.sinks) {
        const Value sink = (*rows.arguments.sinks)[row.head] * kLog2E;
        const Value above = fast_max(whole.top, sink), shrink = fast_exp2(whole.top - above);
        all = all * shrink + fast_exp2(sink - above);
        sum = sum * shrink;
      }
      made = select(whole.weight > 0.0f, sum / select(all > 0.0f, all, 1.0f), 0.0f);
    });
    rows.arguments.store(wanted, row.row, row.head, d, made);
  });
}

void SubgroupSums::read_partial(const RowBlock& rows, const Cut& cut, uint32_t fours) const {
  const DecodeTile& tile = rows.tile;
  const AttentionOptions& options = rows.arguments.options;
  const Array& partial = *rows.arguments.partial;
  const MergeShare lanes(options, tile);
  const uint32_t strands = lanes.strands, quads = lanes.quads, items = lanes.items;
  const uint32_t at_once = fours * kMergedAtOnce;
  for_(local_id(), lanes.beside * items, tile.lanes, [&](Value number) {
    const Value r = number % items / quads, quad = number % quads;
    const RowBlock::Row row = rows.at(r);
    std::vector<Strand> own;
    for (uint32_t s = 0; s < lanes.own; ++s) own.emplace_back(number / items * lanes.own + s);
    if_(row.wanted, [&] {
      for_(constant(u32, 0), cut.splits, constant(u32, strands * at_once), [&](Value first) {
        std::vector<Part> parts;
        for (const Strand& strand : own)
          for (uint32_t a = 0; a < at_once; ++a) {
            const Value split = first + strand.index + a * strands;
            const Value wanted = split < cut.splits && split * cut.each < cut.end - cut.begin;
            // Load split 0 in place of a missing one: unconditional loads are issued together.
            const Value from = rows.partial(row, cut.splits, select(wanted, split, 0u));
            const Value four = partial.load(from + quad * 4u, 4);
            const Value pair = partial.load(from + (partial_stride(options) - 4), 2);
            parts.push_back(
                {four, select(wanted, pair[0], kHidden), select(wanted, pair[1], 0.0f)});
          }
        for (size_t i = 0; i < parts.size(); i += kMergedAtOnce)
          own[i / at_once].add(std::span(parts).subspan(i, kMergedAtOnce));
      });
    });
    for (const Strand& strand : own) {
      const Value place = strand.index * tile.rows + r;
      sums.store(place * width + quad * 4u,
                 vec(strand.four[0], strand.four[1], strand.four[2], strand.four[3]));
      if_(quad == 0u, [&] {
        maxima[place] = strand.top;
        weights[place] = strand.weight;
      });
    }
  });
}

AttentionArguments::Result result_of(const DecodeTile& tile) {
  using Result = AttentionArguments::Result;
  return tile.direct ? Result::out : tile.merges ? Result::both : Result::partial;
}

void with_split(const RowBlock& rows, const SubgroupSums& sums,
                const std::function<void(const SplitKeys&)>& attend) {
  const DecodeTile& tile = rows.tile;
  const Value split = group_id(0), splits = group_count(0);
  const Cut cut(rows.arguments, tile, rows.span, rows.block, splits);
  const Value begin = cut.begin + split * cut.each, end = min(begin + cut.each, cut.end);
  CachePositions positions(rows.arguments, rows.span.slot, begin, end, cut.seen, tile.keys(),
                           kDecodeSubgroup);
  wait_previous();
  const auto attend_all = [&] {
    attend({begin, end, cut.seen, positions});
    barrier();
  };
  if (tile.direct) {  // zeros if no key is seen
    if_(rows.used, [&] {
      attend_all();
      sums.write_result(rows);
    });
    return;
  }
  if (!tile.merges) {
    if_(rows.used && begin < end, [&] {
      attend_all();
      sums.write_partial(rows, splits, split);
    });
    return;
  }
  if_(rows.used, [&] {
    Var last(b1, cut.alone && split == 0u, "last");  // zeros if no key is seen
    if_(Value(last) || begin < end, attend_all);
    if_(!cut.alone, [&] {
      if_(begin < end, [&] {
        sums.write_partial(rows, splits, split);
        device_fence();
      });
      barrier();
      // Every group of the block counts itself, even without keys; the last one to arrive merges.
      const Array& counters = *rows.arguments.counters;
      const Value counter = group_id(2) * group_count(1) + group_id(1);
      Var arrived(u32, 0u, "arrived");
      if_(local_id() == 0u, [&] { arrived = counters.atomic_add(counter, 1u) + 1u; });
      last = group_max(arrived) == splits;
      if_(last, [&] {
        device_fence();
        sums.read_partial(rows, cut, 1);
        barrier();
        // Reset for the next launch.
        if_(local_id() == 0u, [&] { counters.atomic(AtomicOp::exchange, counter, 0u); });
      });
    });
    if_(last, [&] { sums.write_result(rows); });
  });
}

}  // namespace prism::ops
