// Splits of decode attention: their cut, and what a group writes of one.
#include "ops/attention_splits.h"

namespace prism::ops {

using namespace dsl;

uint32_t partial_stride(const AttentionOptions& options) {
  return (options.head_dim + 3) / 4 * 4 + 4;
}

uint32_t blocks_of_rows(const AttentionOptions& options, const DecodeTile& tile) {
  return (tile.queries * options.group + tile.rows - 1) / tile.rows;
}

std::array<uint32_t, 3> decode_grid(const AttentionOptions& options, const DecodeTile& tile,
                                    uint32_t splits, uint32_t kv_heads, uint32_t sequences) {
  return {splits, kv_heads * blocks_of_rows(options, tile), sequences};
}

uint64_t partial_elements(const AttentionOptions& options, uint32_t splits, uint32_t kv_heads,
                          uint32_t rows) {
  return uint64_t{rows} * kv_heads * options.group * splits * partial_stride(options);
}

Cut::Cut(const AttentionArguments& arguments, const DecodeTile& tile, const Span& span, Value block,
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

DecodeShare::DecodeShare(const AttentionArguments& arguments, const DecodeTile& tile,
                         const Span& span)
    : kv_head(group_id(1) / blocks_of_rows(arguments.options, tile)),
      block(group_id(1) % blocks_of_rows(arguments.options, tile)),
      begin(constant(u32, 0)),
      end(begin),
      used(block * tile.rows / arguments.options.group < span.queries) {
  const Cut cut(arguments, tile, span, block, group_count(0));
  begin = cut.begin + group_id(0) * cut.each;
  end = min(begin + cut.each, cut.end);
  // A group of a direct launch has zeros to write even where nothing is seen.
  if (!tile.direct) used = used && begin < end;
}

SubgroupSums::SubgroupSums(const DecodeTile& tile, uint32_t row_width)
    : width(row_width),
      sums(shared(f32, tile.lanes / kDecodeSubgroup * tile.rows * width, "warp_sums")),
      maxima(shared(f32, tile.lanes / kDecodeSubgroup * tile.rows, "warp_maxima")),
      weights(shared(f32, tile.lanes / kDecodeSubgroup * tile.rows, "warp_weights")) {}

Value SubgroupSums::row(const DecodeTile& tile, Value r) const {
  return subgroup_id() * tile.rows + r;
}

void SubgroupSums::write(const AttentionArguments& arguments, const DecodeTile& tile,
                         const Span& span, Value kv_head, Value block) const {
  const AttentionOptions& options = arguments.options;
  const uint32_t dim = options.head_dim, group = options.group;
  const uint32_t warps = tile.lanes / kDecodeSubgroup, blocks = blocks_of_rows(options, tile);
  const bool rounds = tile.direct && options.rounded;  // which needs all lanes
  for_(rounds ? constant(u32, 0) : local_id(), tile.rows * dim, tile.lanes, [&](Value number) {
    const Value element = rounds ? number + local_id() : number;
    const Value r = element / dim, d = element % dim;
    const Value at = width == dim ? element : r * width + d;
    const Value index = block * tile.rows + r;
    const Value query = index / group, head = kv_head * group + index % group;
    const Value row = span.first_row + query;
    Value wanted = query < span.queries;
    if (tile.rows * blocks != tile.queries * group) wanted = wanted && index < tile.queries * group;
    if (rounds && tile.rows * dim % tile.lanes != 0) wanted = wanted && element < tile.rows * dim;
    Var made(f32, 0.0f, "made");
    if_(wanted, [&] {
      Value top = constant(f32, kNoMaximum);
      for (uint32_t w = 0; w < warps; ++w) top = fast_max(top, maxima[r + w * tile.rows]);
      Value sum = constant(f32, 0), weight = constant(f32, 0);
      for (uint32_t w = 0; w < warps; ++w) {
        const Value maximum = maxima[r + w * tile.rows];
        const Value shrink = fast_exp2(maximum - top);
        sum = fma(sums[at + w * (tile.rows * width)], shrink, sum);
        weight = fma(weights[r + w * tile.rows], shrink, weight);
      }
      if (tile.direct) {
        Value all = weight, above = top;
        if (options.sinks) {
          const Value sink = (*arguments.sinks)[head] * kLog2E;
          above = fast_max(top, sink);
          all = weight * fast_exp2(top - above) + fast_exp2(sink - above);
          sum = sum * fast_exp2(top - above);
        }
        made = select(weight > 0.0f, sum / select(all > 0.0f, all, 1.0f), 0.0f);
        return;
      }
      const Value heads = group_count(1) / blocks * group;
      const Value to =
          ((row * heads + head) * group_count(0) + group_id(0)) * partial_stride(options);
      (*arguments.out)[to + d] = sum;
      if_(d == 0u,
          [&] { arguments.out->store(to + (partial_stride(options) - 4), vec(top, weight)); });
    });
    if (tile.direct) arguments.store(wanted, row, head, d, made);
  });
}

HeldChunk::HeldChunk(const AttentionOptions& options) {
  const bool words = load_bytes(options.cache, options.head_dim) >= 4;
  const uint32_t elements = words ? 0 : CacheHead::chunk_elements(options);
  for (uint32_t w = 0; w < (words ? 4 : 0); ++w) words_.emplace_back(u32, 0u, "word");
  for (uint32_t e = 0; e < elements; ++e) elements_.emplace_back(f32, 0.0f, "element");
  if (options.cache.is_block()) factor_.emplace_back(f32, 0.0f, "factor");
}

void HeldChunk::hold(const CacheHead::Chunk& chunk) {
  for (size_t w = 0; w < words_.size(); ++w) words_[w] = chunk.words[w];
  for (size_t e = 0; e < elements_.size(); ++e) elements_[e] = chunk.elements[e];
  if (!factor_.empty()) factor_[0] = *chunk.factor;
}

CacheHead::Chunk HeldChunk::chunk() const {
  CacheHead::Chunk chunk;
  for (const Var& word : words_) chunk.words.push_back(word);
  for (const Var& element : elements_) chunk.elements.push_back(element);
  if (!factor_.empty()) chunk.factor = factor_[0];
  return chunk;
}

}  // namespace prism::ops
