// Runs attention: the native CPU kernel, and the choice of kernels on a device.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/types/gpu_block_layout.h"
#include "cpu/attention.h"
#include "cpu/elementwise.h"
#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_op.h"
#include "ops/products/product_kernels.h"
#include "ops/products/round_rows_op.h"
#include "prism/error.h"
#include "prism/ops/attention.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

// Up to this many queries, decode reads the keys once for all queries of a head group and splits
// fill the device: for lanes and for fragments. More queries use the prompt kernels.
constexpr int64_t kFewQueries = 2, kFewQueriesOfFragments = kMostSplitQueries;

int64_t few_queries(const ops::DecodeTile& tile) {
  return tile.stages > 0 ? kFewQueriesOfFragments : kFewQueries;
}

size_t size(int64_t value) { return static_cast<size_t>(value); }
uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

}  // namespace

std::shared_ptr<const Op> AttentionOp::with_prepared(const Device& device,
                                                     std::span<const Tensor> inputs,
                                                     const Op& prepare, const Shape& seen,
                                                     bool kept) const {
  const Tensor& q = inputs[0];
  const bool decodes = most_queries <= kFewQueries && ops::suits_decode(device.info().capabilities);
  if (rounded || narrow || keeps_sums || kept || !decodes ||
      !dynamic_cast<const RoundRowsOp*>(&prepare) || q.type() != ElementType(DType::f32) ||
      value_dim % 32 != 0 || seen[-1] != q.size(1) * value_dim)
    return nullptr;
  auto op = std::make_shared<AttentionOp>(*this);
  op->rounded = true;
  return op;
}

cpu::Attention AttentionOp::cpu_options(const HostView& q, const HostView& k,
                                        const HostView& v) const {
  cpu::Attention options;
  options.heads = size(q.layout.shape[1]);
  options.kv_heads = size(k.layout.shape[2]);
  options.dim = size(q.layout.shape[2]);
  options.value_dim = size(value_dim);
  options.scale = static_cast<float>(scale);
  options.causal = causal;
  options.window = size(window);
  options.chunked = chunked;
  options.soft_cap = static_cast<float>(soft_cap);
  options.out_row = size(q.layout.shape[1] * value_dim);
  options.out_head = size(value_dim);
  options.cache = k.type;
  const auto strides = [](const HostView& cache) {
    const auto bytes = [&](int axis) {
      return size(cache.layout.stride(axis)) / cache.type.block_elements() *
             cache.type.block_bytes();
    };
    return cpu::Attention::Strides{bytes(0), bytes(1), bytes(2)};
  };
  options.k = strides(k);
  options.v = strides(v);
  options.q_row = size(q.layout.stride(0));
  options.q_head = size(q.layout.stride(1));
  return options;
}

void AttentionOp::run_cpu(const CpuCall& call) const {
  if (rounded)
    throw Error(ErrorCode::kNotSupported,
                "attention: rounded output exists only in device kernels");
  const HostView &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  const HostView &spans = call.inputs[3], &out = call.outputs[0];
  const Shape& shape = q.layout.shape;
  const int64_t rows = shape[0], heads = shape[1], dim = shape[2];
  if (rows * heads * dim == 0) return;

  cpu::Attention options = cpu_options(q, k, v);
  const std::vector<float> slopes =
      max_bias > 0 ? bias_slopes(max_bias, heads) : std::vector<float>();
  if (max_bias > 0) options.slopes = slopes.data();
  size_t next = 4;
  int64_t texts = k.layout.shape[0], positions = k.layout.shape[1];
  if (has_table) {
    const HostView& table = call.inputs[next++];
    options.table = table.first<int32_t>();
    options.table_row = size(table.layout.shape[1]);
    options.block = size(positions);
    texts = table.layout.shape[0];
    positions *= table.layout.shape[1];
  }
  if (has_mask) {
    const Shape& of_mask = call.inputs[next].layout.shape;
    options.mask = call.inputs[next++].first<float>();
    options.mask_row = size(of_mask.elements() / of_mask[0]);
    options.mask_head = of_mask.rank() == 3 ? size(of_mask[2]) : 0;
  }
  if (has_sinks) options.sinks = call.inputs[next].first<float>();

  // The CPU kernel takes f32.
  std::vector<float> wide;
  const float* from = nullptr;
  if (q.type == ElementType(DType::f32)) {
    from = q.first<float>();
  } else {
    wide.resize(size(rows * heads * dim));
    for (int64_t i = 0; i < rows * heads; ++i) {
      const int64_t place = i / heads * q.layout.stride(0) + i % heads * q.layout.stride(1);
      cpu::load(q.type.plain(), q.first<uint16_t>() + place, 1, DType::f32, wide.data() + i * dim,
                size(dim));
    }
    from = wide.data();
    options.q_row = size(heads * dim);
    options.q_head = size(dim);
  }
  const auto sequences = size(spans.layout.shape[0]);
  const auto* words = spans.first<int32_t>();
  std::vector<cpu::AttentionSpan> list(sequences);
  const bool has_positions = causal || window > 0 || max_bias > 0;  // of queries
  for (size_t s = 0; s < sequences; ++s) {
    const int32_t* w = words + 4 * s;
    const bool inside = w[0] >= 0 && w[1] >= 0 && w[2] >= 0 && w[3] >= 0 && w[0] + w[1] <= rows &&
                        (w[1] <= w[2] || !has_positions) && w[2] <= positions && w[3] < texts;
    if (!inside) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("cached_attention: span {} is row {}, {} queries, {} keys, slot {}; q "
                      "has {} rows, the cache {} slots of {} positions",
                      s, w[0], w[1], w[2], w[3], rows, texts, positions));
    }
    list[s] = {word(w[0]), word(w[1]), word(w[2]), word(w[3])};
    if (!has_table || w[1] == 0) continue;
    const int64_t position = w[2] - w[1];
    const int64_t first = window == 0 ? 0
                          : chunked   ? position / window * window
                                      : std::max<int64_t>(0, position + 1 - window);
    for (int64_t b = first / k.layout.shape[1]; b * k.layout.shape[1] < w[2]; ++b) {
      const int32_t block = options.table[w[3] * static_cast<int64_t>(options.table_row) + b];
      if (block < 0 || block >= k.layout.shape[0])
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("cached_attention: block {} of span {} is number {} of the cache, "
                                "which has {} blocks",
                                b, s, block, k.layout.shape[0]));
    }
  }
  const auto cache_at = [](const HostView& view) {
    return view.data + view.layout.offset / view.type.block_elements() * view.type.block_bytes();
  };
  std::vector<float> result;
  float* to = out.first<float>();
  if (out.type != ElementType(DType::f32)) {
    result.resize(size(rows * heads * value_dim));
    to = result.data();
  }
  cpu::attention(call.pool, options, from, cache_at(k), cache_at(v), list.data(), sequences, to);
  if (!result.empty())
    cpu::store(DType::f32, result.data(), out.type.plain(), out.first<uint16_t>(), result.size());
  if (keeps_sums) sums_on_cpu(call);
}

// Only for plans that continue on the CPU after their device failed: the CPU's own gradient needs
// no sums.
void AttentionOp::sums_on_cpu(const CpuCall& call) const {
  const HostView &q = call.inputs[0], &k = call.inputs[1];
  const int64_t heads = q.layout.shape[1], dim = q.layout.shape[2], keys = k.layout.shape[1];
  const int64_t sequences = k.layout.shape[0], queries = q.layout.shape[0] / sequences;
  const int64_t group = heads / k.layout.shape[2];
  const auto element = [](const HostView& x, int64_t at) {
    float value = 0;
    cpu::load(x.type.plain(), x.data + (x.layout.offset + at) * dtype_bytes(x.type.plain()), 1,
              DType::f32, &value, 1);
    return static_cast<double>(value);
  };
  call.pool.parallel_for(size(sequences * queries * heads), 1, [&](uint64_t begin, uint64_t end) {
    for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
      const int64_t row = i / heads, head = i % heads, sequence = row / queries;
      const int64_t position = keys - queries + row % queries;
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t key = 0; key < keys; ++key) {
        const int64_t first = chunked ? position / window * window : position + 1 - window;
        const int64_t past = causal ? position + 1 : chunked ? first + window : position + window;
        if ((causal || window > 0) && key >= past) continue;
        if (window > 0 && key < first) continue;
        double score = 0;
        for (int64_t d = 0; d < dim; ++d)
          score += element(q, row * q.layout.stride(0) + head * q.layout.stride(1) + d) *
                   element(k, sequence * k.layout.stride(0) + key * k.layout.stride(1) +
                                  head / group * k.layout.stride(2) + d);
        score *= scale;
        const double above = std::max(top, score);
        sum = sum * std::exp(top - above) + std::exp(score - above);
        top = above;
      }
      call.outputs[1].first<float>()[i] = static_cast<float>((top + std::log(sum)) / std::log(2.0));
    }
  });
}

void AttentionOp::launch(DeviceCall& call) const {
  const DeviceView &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const DeviceView &spans = call.input(3), &out = call.output();
  const Shape& shape = q.layout.shape;
  const int64_t rows = shape[0], heads = shape[1], dim = shape[2];
  const uint32_t sequences = word(spans.layout.shape[0]), kv_heads = word(k.layout.shape[2]);
  if (rows * heads * dim == 0 || sequences == 0) return;

  ops::AttentionOptions options;
  options.head_dim = word(dim);
  options.value_dim = value_dim < dim ? word(value_dim) : 0;
  options.group = word(heads) / kv_heads;
  options.cache = k.type;
  options.q_type = q.type.plain();
  options.out_type = rounded ? DType::f32 : out.type.plain();
  options.rounded = rounded;
  options.sums = keeps_sums;
  options.causal = causal;
  options.window = window > 0;
  options.chunked = chunked;
  options.slopes = max_bias > 0;
  options.soft_cap = soft_cap > 0;
  options.mask = has_mask;
  options.sinks = has_sinks;
  options.block = has_table ? word(k.layout.shape[1]) : 0;
  ops::AttentionParams params;
  params.q_row = word(q.layout.stride(0));
  params.q_head = word(q.layout.stride(1));
  params.out_row = word(heads * value_dim);
  params.out_head = word(value_dim);
  params.kv_slot = word(k.layout.stride(0));
  params.kv_position = word(k.layout.stride(1));
  params.kv_head = word(k.layout.stride(2));
  if (k.type.is_block()) {  // strides in bytes; a head at one position is one row of planes
    const GpuBlockLayout row = gpu_block_layout(k.type.block(), 1, static_cast<uint64_t>(dim));
    const auto bytes = static_cast<int64_t>(row.row_bytes);
    params.kv_slot = word(k.layout.stride(0) / dim * bytes);
    params.kv_position = word(k.layout.stride(1) / dim * bytes);
    params.kv_head = params.factor_head = word(bytes);
    params.factor_offset = word(static_cast<int64_t>(row.factors.offset));
  }
  if (options.value_dim > 0) {
    params.v_slot = word(v.layout.stride(0));
    params.v_position = word(v.layout.stride(1));
    params.v_head = word(v.layout.stride(2));
    if (v.type.is_block()) {
      const int64_t stored = v.layout.shape[3];
      const GpuBlockLayout row = gpu_block_layout(v.type.block(), 1, static_cast<uint64_t>(stored));
      const auto bytes = static_cast<int64_t>(row.row_bytes);
      params.v_slot = word(v.layout.stride(0) / stored * bytes);
      params.v_position = word(v.layout.stride(1) / stored * bytes);
      params.v_head = word(bytes);
      params.v_factor_offset = word(static_cast<int64_t>(row.factors.offset));
    }
  }
  if (max_bias > 0) {
    params.slope_heads = std::bit_floor(word(heads));
    params.slope_step = static_cast<float>(max_bias / 2 / params.slope_heads);
  }
  params.scale = static_cast<float>(scale);
  params.window = word(window);
  params.soft_cap = static_cast<float>(soft_cap);
  size_t next = 4;
  std::vector<DeviceView> inputs = {q, k, v, spans};
  if (has_table) {
    params.table_row = word(call.input(next).layout.shape[1]);
    inputs.push_back(call.input(next++));
  }
  DeviceView sinks;
  if (has_mask) {
    const Shape& of_mask = call.input(next).layout.shape;
    params.mask_row = word(of_mask.elements() / of_mask[0]);
    params.mask_head = of_mask.rank() == 3 ? word(of_mask[2]) : 0;
    inputs.push_back(call.input(next++));
  }
  if (has_sinks) sinks = call.input(next);
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {}{}{}{}{}{}{}{}", options.head_dim, options.values(),
                  options.group, options.cache.name(), dtype_name(options.q_type),
                  dtype_name(options.out_type), options.block, causal ? 'c' : '-',
                  chunked          ? 'h'
                  : options.window ? 'w'
                                   : '-',
                  options.slopes ? 'a' : '-', options.soft_cap ? 's' : '-', has_mask ? 'm' : '-',
                  has_sinks ? 'k' : '-', rounded ? 'r' : '-', keeps_sums ? 'S' : '-');

  // Round up to powers of two, so that prompts of similar length share kernels.
  ops::DecodeTile decode =
      ops::decode_tile_for(options, std::bit_ceil(word(most_queries)), call.info().capabilities);
  if (!keeps_sums && most_queries <= few_queries(decode) &&
      ops::suits_decode(call.info().capabilities)) {
    const uint32_t splits =
        ops::decode_split_kv(options, decode, kv_heads, sequences, call.info().compute_units);
    decode.direct = splits == 1;
    std::optional<DeviceView> counters;
    if (!decode.direct && ops::suits_merges(options, decode, splits, call.info().capabilities))
      counters = call.zeros(
          {static_cast<int64_t>(ops::decode_counters(options, decode, kv_heads, sequences))},
          DType::u32);
    decode.merges = counters.has_value();
    // Tiles differ between devices of one process.
    const std::string tile =
        fmt::format("{} {} {} {} {} {} {}", key, decode.queries, decode.rows, decode.lanes,
                    decode.key_lanes, decode.unroll, decode.stages);
    if (decode.direct) {
      if (has_sinks) inputs.push_back(sinks);
      inputs.push_back(out);
      return call.launch(
          fmt::format("attention_decode {} direct", tile),
          [&] { return ops::attention_decode(options, decode); },
          ops::decode_grid(options, decode, splits, kv_heads, sequences), inputs,
          params.values(options));
    }
    const DeviceView partial = call.scratch(
        {static_cast<int64_t>(ops::partial_elements(options, splits, kv_heads, word(rows)))},
        DType::f32);
    if (decode.merges && has_sinks) inputs.push_back(sinks);
    inputs.push_back(partial);
    if (decode.merges) {
      inputs.push_back(*counters);
      inputs.push_back(out);
    }
    call.launch(
        fmt::format("attention_decode {}{}", tile, decode.merges ? " merges" : ""),
        [&] { return ops::attention_decode(options, decode); },
        ops::decode_grid(options, decode, splits, kv_heads, sequences), inputs,
        params.values(options));
    if (decode.merges) return;
    std::vector<DeviceView> merged = {partial, spans};
    if (has_sinks) merged.push_back(sinks);
    merged.push_back(out);
    std::vector<ParamValue> values = {splits};
    for (const ParamValue& each : params.values(options)) values.push_back(each);
    call.launch(
        fmt::format("attention_merge {}", tile),
        [&] { return ops::attention_merge(options, decode); },
        ops::merge_grid(options, decode, kv_heads, sequences), merged, std::move(values));
    return;
  }
  if (has_sinks) inputs.push_back(sinks);
  inputs.push_back(out);
  if (keeps_sums) inputs.push_back(call.output(1));
  const auto grid = [&](uint32_t queries) -> std::array<uint32_t, 3> {
    return {word(heads), word((most_queries + queries - 1) / queries), sequences};
  };
  // Use fragments if the device has them and the tile fits its shared memory; otherwise plain f32.
  // Fragments round to f16, so f32 caches with heads that do not fill them use plain f32, and so do
  // f32 queries with a gradient.
  const ir::Capabilities& can = call.info().capabilities;
  const bool has_operand = options.operand() == DType::f16 ? !can.fragments.empty()
                                                           : ops::has_fragments(can, DType::bf16);
  const bool fragments = has_operand && (dim % 16 == 0 || k.type != ElementType(DType::f32)) &&
                         !(keeps_sums && q.type == ElementType(DType::f32));
  for (ops::PromptTile tile : {ops::prompt_tile(options), ops::PromptTile{4, 1, 32, 1, true}}) {
    if (!fragments || most_queries < 16) break;
    tile.subgroup = ops::fragment_subgroup(call.info().capabilities);
    try {
      return call.launch(
          fmt::format("attention_prompt {} {} {} {}", key, tile.blocks, tile.keys, tile.stages),
          [&] { return ops::attention_prompt(options, tile); }, grid(tile.queries()), inputs,
          params.values(options));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported) throw;
    }
  }
  const ops::PlainTile tile = ops::plain_tile(options, call.info().capabilities.shared_bytes);
  call.launch(
      fmt::format("attention_plain {} {} {}", key, tile.queries, tile.keys),
      [&] { return ops::attention_plain(options, tile); }, grid(tile.queries), inputs,
      params.values(options));
}

uint64_t cached_attention_work_bytes(const DeviceInfo& device, int64_t heads, int64_t kv_heads,
                                     int64_t dim, ElementType cache, int64_t most_queries) {
  if (device.is_cpu || !ops::suits_decode(device.capabilities)) return 0;
  ops::AttentionOptions options;
  options.head_dim = word(dim);
  options.group = word(heads / kv_heads);
  options.cache = cache;
  uint64_t most = 0;
  for (int64_t queries = 1; queries <= most_queries; ++queries) {
    const ops::DecodeTile tile =
        ops::decode_tile_for(options, std::bit_ceil(word(queries)), device.capabilities);
    if (queries > few_queries(tile)) break;
    const uint32_t splits =
        ops::decode_split_kv(options, tile, word(kv_heads), 1, device.compute_units);
    if (splits > 1)
      most =
          std::max(most, 4 * ops::partial_elements(options, splits, word(kv_heads), word(queries)));
  }
  return most;
}

}  // namespace prism
