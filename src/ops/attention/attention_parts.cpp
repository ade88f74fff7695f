// Arguments, cache reads and scores of the attention kernels.
#include "ops/attention/attention_parts.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ops/products/rounded_rows.h"
#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

namespace {

bool is_q8(const AttentionOptions& options) {
  return options.cache.is_block() && options.cache.block() == BlockType::q8_0;
}

DType cache_dtype(const AttentionOptions& options) {
  return is_q8(options) ? i8 : options.cache.plain();
}

// Loads of this width are aligned in keys and in values.
uint32_t common_load_bytes(const AttentionOptions& options) {
  return std::min(load_bytes(options.cache, options.head_dim),
                  load_bytes(options.cache, options.values()));
}

}  // namespace

uint32_t load_bytes(ElementType cache, uint32_t head_dim) {
  if (cache.is_block()) return 16;
  const auto unit = static_cast<uint32_t>(dtype_bytes(cache.plain()));
  for (const uint32_t bytes : {16u, 8u, 4u})
    if (head_dim * unit % bytes == 0) return bytes;
  return unit;
}

void check_options(const AttentionOptions& options, const char* kernel) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", kernel, why));
  };
  const bool block = options.cache.is_block();
  const auto is_plain = [&](DType type) { return type == f16 || type == bf16 || type == f32; };
  if (block ? !is_q8(options) : !is_plain(options.cache.plain()))
    fail(fmt::format("the cache is {}; it must be f16, bf16, f32 or q8_0", options.cache.name()));
  const uint32_t multiple = block ? 32 : 1;
  if (options.head_dim == 0 || options.head_dim % multiple != 0 || options.head_dim > kMaxHeadDim)
    fail(fmt::format("the head size is {} in a cache of {}; it must be a multiple of {} up to {}",
                     options.head_dim, options.cache.name(), multiple, kMaxHeadDim));
  if (options.value_dim % multiple != 0 || options.value_dim >= options.head_dim)
    fail(
        fmt::format("values have {} elements, keys {}, in a cache of {}; shorter values must be a "
                    "multiple of {}",
                    options.value_dim, options.head_dim, options.cache.name(), multiple));
  if (options.group == 0) fail("group is 0; it must be at least 1");
  for (const DType type : {options.q_type, options.out_type})
    if (!is_plain(type))
      fail(fmt::format("q or out is {}; it must be f32, f16 or bf16", dtype_name(type)));
  if (options.rounded && (options.values() % 32 != 0 || options.out_type != f32))
    fail(fmt::format("rounded output with head size {} and type {}; needs a multiple of 32 and f32",
                     options.values(), dtype_name(options.out_type)));
  if (options.chunked && !options.window) fail("chunked needs window");
  if (options.block != 0 && !std::has_single_bit(options.block))
    fail(fmt::format("blocks of {} positions; they must be a power of two", options.block));
}

std::string option_name(const AttentionOptions& options) {
  const auto letter = [](DType type) { return type == f16 ? "h" : type == bf16 ? "b" : "f"; };
  std::string name =
      fmt::format("d{}_g{}_{}_{}{}", options.head_dim, options.group, options.cache.name(),
                  letter(options.q_type), letter(options.out_type));
  if (options.causal) name += "_causal";
  if (options.value_dim) name += fmt::format("_v{}", options.value_dim);
  if (options.window) name += options.chunked ? "_chunks" : "_window";
  if (options.slopes) name += "_slopes";
  if (options.soft_cap) name += "_cap";
  if (options.mask) name += "_mask";
  if (options.sinks) name += "_sinks";
  if (options.rounded) name += "_rounded";
  if (options.sums) name += "_sums";
  if (options.block) name += fmt::format("_blocks{}", options.block);
  return name;
}

std::vector<ParamValue> AttentionParams::values(const AttentionOptions& options) const {
  std::vector<ParamValue> all = {q_row, q_head, out_row, out_head, kv_slot, kv_position, kv_head};
  if (options.value_dim)
    for (const uint32_t each : {v_slot, v_position, v_head}) all.emplace_back(each);
  if (options.block) all.emplace_back(table_row);
  if (is_q8(options)) {
    all.emplace_back(factor_offset);
    all.emplace_back(factor_head);
    if (options.value_dim) all.emplace_back(v_factor_offset);
  }
  all.emplace_back(scale);
  if (options.window) all.emplace_back(window);
  if (options.soft_cap) all.emplace_back(soft_cap);
  if (options.mask) {
    all.emplace_back(mask_row);
    all.emplace_back(mask_head);
  }
  if (options.slopes) {
    all.emplace_back(slope_step);
    all.emplace_back(slope_heads);
  }
  return all;
}

Value fast_exp2(Value x) {
  // Uses the hardware instruction if the dialect has one.
  return raw(
      "cuda", "asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"({r}) : \"f\"({0}));", {x}, {f32, 1},
      [&] {
        return raw("hip", "{r} = __builtin_exp2f({0});", {x}, {f32, 1}, [&] { return exp2(x); });
      });
}

Value fast_max(Value a, Value b) {
  return raw("cuda", "{r} = fmaxf({0}, {1});", {a, b}, {f32, 1}, [&] { return max(a, b); });
}

AttentionArguments::AttentionArguments(const AttentionOptions& the_options, Result result)
    : options(the_options) {
  const bool merges = result == Result::merged;
  if (merges) {
    partial.emplace(in("partial", f32));
  } else {
    q = in("q", options.q_type);
    k = in("k", cache_dtype(options));
    v = in("v", cache_dtype(options));
  }
  spans = weights("spans", u32);
  if (options.block && !merges) table = weights("table", u32);
  if (options.mask && !merges) mask = in("mask", f32);
  if (options.sinks && result != Result::partial) sinks = in("sinks", f32);
  if (result == Result::partial) partial = dsl::out("partial", f32);
  if (result == Result::both) {
    partial = inout("partial", f32);
    counters = inout("counters", u32);
  }
  if (result != Result::partial) out = dsl::out("out", options.rounded ? u32 : options.out_type);
  if (options.sums && result == Result::out) sums = dsl::out("sums", f32);
  if (merges) splits = param("splits", u32);
  q_row = param("q_row", u32);
  q_head = param("q_head", u32);
  out_row = param("out_row", u32);
  out_head = param("out_head", u32);
  kv_slot = param("kv_slot", u32);
  kv_position = param("kv_position", u32);
  kv_head = param("kv_head", u32);
  if (options.value_dim) {
    v_slot = param("v_slot", u32);
    v_position = param("v_position", u32);
    v_head = param("v_head", u32);
  }
  if (options.block) table_row = param("table_row", u32);
  if (is_q8(options)) {
    factor_offset = param("factor_offset", u32);
    factor_head = param("factor_head", u32);
    if (options.value_dim) v_factor_offset = param("v_factor_offset", u32);
  }
  scale = param("scale", f32);
  if (options.window) window = param("window", u32);
  if (options.soft_cap) soft_cap = param("soft_cap", f32);
  if (options.mask) {
    mask_row = param("mask_row", u32);
    mask_head = param("mask_head", u32);
  }
  if (options.slopes) {
    slope_step = param("slope_step", f32);
    slope_heads = param("slope_heads", u32);
  }
}

Value AttentionArguments::q_factor() const {
  return options.soft_cap ? *scale / *soft_cap : *scale * kLog2E;
}

void AttentionArguments::store_sum(Value wanted, Value row, Value head, Value heads, Value maximum,
                                   Value weight) const {
  const Value some = weight > 0.0f;
  sums->store_if(wanted, row * heads + head,
                 select(some, maximum + log2(select(some, weight, 1.0f)), -kHidden));
}

std::optional<Value> AttentionArguments::slope_of(Value head) const {
  if (!options.slopes) return std::nullopt;
  const Value odd = (head - *slope_heads) * 2u + 1u;
  const Value power = select(head < *slope_heads, head * 2u + 2u, odd);
  return exp2(-(cast(f32, power) * *slope_step)) * kLog2E;
}

AttentionArguments::Query AttentionArguments::query(Value row, Value head,
                                                    const std::optional<Value>& slope,
                                                    Value position) const {
  Query result;
  if (options.mask) result.mask_start = row * *mask_row + head * *mask_head;
  if (options.slopes) {
    result.slope = slope;
    result.position = position;
  }
  return result;
}

Value AttentionArguments::score(Value product, const Query& query, Value position) const {
  Value result = options.soft_cap ? tanh(product) * (*soft_cap * kLog2E) : product;
  if (options.slopes) {
    const Value distance = abs(cast(f32, bitcast(i32, position - *query.position)));
    result = fma(-distance, *query.slope, result);
  }
  if (options.mask)
    result = max(fma((*mask)[*query.mask_start + position], kLog2E, result), kHidden);
  return result;
}

std::vector<Value> AttentionArguments::four_of_q(Value wanted, Value row, Value head,
                                                 Value d) const {
  const Value at = row * *q_row + head * *q_head + d;
  // Chunks and fragments end with such a head: no check is needed.
  const bool ends_whole = options.head_dim % 16 == 0;
  std::vector<Value> four;
  const auto widened = [](Value one) { return one.element() == f32 ? one : cast(f32, one); };
  if (options.head_dim % 4 == 0) {
    const Value loaded = q->load_if(ends_whole ? wanted : wanted && d < options.head_dim, at, 4);
    for (uint32_t i = 0; i < 4; ++i) four.push_back(widened(loaded[i]));
  } else {
    for (uint32_t i = 0; i < 4; ++i)
      four.push_back(widened(q->load_if(wanted && d + i < options.head_dim, at + i)));
  }
  return four;
}

void AttentionArguments::store(Value wanted, Value row, Value head, Value d, Value value) const {
  if (options.rounded)
    store_rounded_element(*out, wanted, rounded_start(row, *out_row), *out_row,
                          head * *out_head + d, value);
  else
    out->store_if(wanted, row * *out_row + head * *out_head + d, value);
}

Value AttentionArguments::first_seen(Value query_position) const {
  if (!options.window) return constant(u32, 0);
  if (options.chunked) return query_position / *window * *window;
  const Value behind = query_position + 1u;
  return select(behind > *window, behind - *window, 0u);
}

Value AttentionArguments::end_seen(Value query_position, Value keys) const {
  if (options.causal) return min(query_position + 1u, keys);
  if (!options.window) return keys;
  if (options.chunked) return min(first_seen(query_position) + *window, keys);
  return min(query_position + *window, keys);
}

Value AttentionArguments::sees(Value query_position, Value key) const {
  if (!options.causal && !options.window) return constant(b1, 1);
  const Value before = options.causal    ? key <= query_position
                       : options.chunked ? key < first_seen(query_position) + *window
                                         : key < query_position + *window;
  if (options.chunked) return before && key >= first_seen(query_position);
  return options.window ? before && key + *window > query_position : before;
}

Span::Span(const In& spans, Value sequence) : Span(spans.load_words(sequence * 4u, 4, 4)) {}

Span::Span(Value four) : first_row(four[0]), queries(four[1]), keys(four[2]), slot(four[3]) {}

CachePositions::CachePositions(const AttentionArguments& arguments, Value slot, Value begin,
                               Value end, Value seen, uint32_t keys, uint32_t subgroup)
    : arguments_(arguments),
      slot_(slot),
      begin_(begin),
      end_(end),
      seen_(seen),
      keys_(keys),
      subgroup_(subgroup) {
  const uint32_t block = arguments.options.block;
  if (block == 0) set_bases([&](bool of_values) { return slot * slot_step(of_values); });
  if (block == 0 || block % keys != 0) return;
  found_.emplace(u32, block_at(subgroup > 0 ? begin + subgroup_lane() * keys : begin), "block");
}

bool CachePositions::are_apart(bool of_values) const {
  return of_values && arguments_.options.value_dim > 0;
}

Value CachePositions::slot_step(bool of_values) const {
  return are_apart(of_values) ? *arguments_.v_slot : *arguments_.kv_slot;
}

Value CachePositions::position_step(bool of_values) const {
  return are_apart(of_values) ? *arguments_.v_position : *arguments_.kv_position;
}

void CachePositions::set_bases(const std::function<Value(bool)>& base) {
  bases_[0] = base(false);
  bases_[1] = are_apart(true) ? base(true) : *bases_[0];
}

Value CachePositions::block_at(Value position) const {
  // The first block in place of one that no position needs: a load without a condition is used
  // where it arrives, and not copied when the condition is known.
  const Value needed = select(position < end_, position, 0u);
  return (*arguments_.table)[slot_ * *arguments_.table_row + needed / arguments_.options.block];
}

Value CachePositions::in_block(Value block, Value position, bool of_values) const {
  return block * slot_step(of_values) +
         position % arguments_.options.block * position_step(of_values);
}

void CachePositions::enter(Value first) {
  if (!found_) return;
  Value block = *found_;
  if (subgroup_ > 0) {
    // The CUDA compiler lets the next tile wait for a load of this one, which arrives behind this
    // tile's copies.
    const Value tile = (first - begin_) / keys_;
    if_(first != begin_ && tile % subgroup_ == 0u,
        [&] { *found_ = block_at(first + subgroup_lane() * keys_); });
    block = subgroup_shuffle(*found_, tile % subgroup_);
  }
  set_bases([&](bool of_values) { return in_block(block, first, of_values); });
  tile_ = first;
  if (subgroup_ == 0) *found_ = block_at(first + keys_);
}

Value CachePositions::holds(Value position) const {
  return arguments_.options.window ? position < end_ && position >= seen_ : position < end_;
}

Value CachePositions::element(Value position, bool of_values) const {
  const std::optional<Value>& known = bases_[of_values];
  if (!known) return in_block(block_at(position), position, of_values);
  // The distance from the start of a tile is the same in every tile.
  return *known + (tile_ ? position - *tile_ : position) * position_step(of_values);
}

CacheHead::CacheHead(const AttentionArguments& arguments, Of of, const CachePositions& positions,
                     Value head)
    : arguments_(arguments),
      values_(of == Of::values),
      dim_(values_ ? arguments.options.values() : arguments.options.head_dim),
      cache_(values_ ? *arguments.v : *arguments.k),
      positions_(positions),
      base_(head * (values_ && arguments.v_head ? *arguments.v_head : *arguments.kv_head)) {
  if (!is_q8(arguments.options)) return;
  // A head's quants and factors are one row of planes: both have the same stride.
  const bool apart = values_ && arguments.v_factor_offset;
  factor_base_ = (apart ? *arguments.v_factor_offset : *arguments.factor_offset) +
                 head * (apart ? *arguments.v_head : *arguments.factor_head);
}

uint32_t CacheHead::chunks() const {
  const uint32_t each = chunk_elements(arguments_.options);
  return (dim_ + each - 1) / each;
}

uint32_t CacheHead::chunk_elements(const AttentionOptions& options) {
  return static_cast<uint32_t>(16 / dtype_bytes(cache_dtype(options)));
}

uint32_t CacheHead::chunks(const AttentionOptions& options) {
  const uint32_t each = chunk_elements(options);
  return (options.head_dim + each - 1) / each;
}

bool CacheHead::whole_chunks(const AttentionOptions& options) {
  return common_load_bytes(options) == 16;
}

Value CacheHead::element(Value position) const {
  return base_ + positions_.element(position, values_);
}

CacheHead::Chunk CacheHead::load(Value wanted, Value position, Value chunk) const {
  const AttentionOptions& options = arguments_.options;
  const uint32_t each = chunk_elements(options), in_a_word = each / 4;
  const uint32_t unit = common_load_bytes(options);
  // Whether the element is within the head; constant if all chunks are full.
  const auto inside = [&](uint32_t e) {
    if (dim_ == options.head_dim && dim_ % each == 0) return wanted;
    return wanted && chunk * each + e < dim_;
  };
  Chunk result;
  if (unit < 4) {
    for (uint32_t e = 0; e < each; ++e) {
      const Value one = cache_.load_if(inside(e), element(position) + chunk * each + e);
      result.elements.push_back(one.element() == f32 ? one : cast(f32, one));
    }
    return result;
  }
  // Convert element to word indices: strides are multiples of the load width.
  const Value first = in_a_word == 1 ? element(position) : element(position) / in_a_word;
  for (uint32_t w = 0; w < 4; w += unit / 4) {
    const Value words =
        cache_.load_words_if(inside(w * in_a_word), first + chunk * 4u + w, unit / 4, unit / 4);
    for (uint32_t i = 0; i < unit / 4; ++i) result.words.push_back(unit == 4 ? words : words[i]);
  }
  if (is_q8(options)) {
    const Value byte = *factor_base_ + positions_.element(position, values_) + chunk / 2u * 2u;
    const Value word = cache_.load_words_if(inside(0), byte / 4u);
    result.factor = unpack_f16(word >> ((byte & 2u) * 8u))[0];
  }
  return result;
}

std::vector<Value> CacheHead::unpack(const Chunk& chunk) const {
  if (!chunk.elements.empty()) return chunk.elements;
  std::vector<Value> elements;
  for (uint32_t w = 0; w < 4; ++w) {
    const Value word = chunk.words[w];
    switch (cache_dtype(arguments_.options)) {
      case DType::f32:
        elements.push_back(bitcast(f32, word));
        break;
      case DType::f16: {
        const Value pair = unpack_f16(word);
        elements.push_back(pair[0]);
        elements.push_back(pair[1]);
        break;
      }
      case DType::bf16:
        elements.push_back(bitcast(f32, word << 16u));
        elements.push_back(bitcast(f32, word & 0xffff0000u));
        break;
      default: {
        const Value four = unpack_i8(word);
        for (uint32_t i = 0; i < 4; ++i) elements.push_back(cast(f32, four[i]));
      }
    }
  }
  return elements;
}

std::vector<Value> CacheHead::unpack_times_factor(const Chunk& chunk) const {
  // A byte b + 128 placed in the mantissa of 1.0 gives 1 + (b + 128) / 2^15: two instructions per
  // element instead of four, and no conversion.
  const Value wide = *chunk.factor * 32768.0f, offset = *chunk.factor * -32896.0f;
  std::vector<Value> elements;
  for (const Value& word : chunk.words) {
    const Value bytes = word ^ 0x80808080u;
    for (uint32_t i = 0; i < 4; ++i) {
      const Value bits =
          raw("cuda", fmt::format("{{r}} = __byte_perm({{0}}, 0x3F800000u, 0x76{}4u);", i), {bytes},
              {u32, 1}, [&] { return ((bytes >> (8 * i)) & 255u) << 8u | 0x3F800000u; });
      elements.push_back(fma(bitcast(f32, bits), wide, offset));
    }
  }
  return elements;
}

}  // namespace prism::ops
