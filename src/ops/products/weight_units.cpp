// Units of weights: which words of a row a lane loads, and their decoding.
#include "ops/products/weight_units.h"

#include <cmath>

#include "ops/quantise/code_tables.h"

namespace prism::ops {

using namespace dsl;

namespace {

bool is_header(const PlaneFormat& f) { return f.scales == ScaleFormat::header; }

// In a plane of their own.
bool has_factors(const PlaneFormat& f) {
  return f.factors != FactorFormat::in_header && f.factors != FactorFormat::none;
}

// One of several fields of a word, each of `bits`, chosen by the low part of an index.
Value field(Value word, Value index, uint32_t bits) {
  const Value shift = (index & (32 / bits - 1)) * bits;
  return (word >> shift) & ((1u << bits) - 1);
}

Value signed_byte(Value word, Value index) {
  return extract_bits(bitcast(i32, word), (index & 3u) * 8u, 8u);
}

Value as_float(Value small) { return cast(f32, bitcast(i32, small)); }

// The half of a word that the index names, as a float.
Value half_of(Value word, Value index) {
  return unpack_f16((word >> ((index & 1u) * 16u)) & 0xFFFFu)[0];
}

// 2^(e - 128); the two smallest are subnormal.
Value mxfp4_factor(Value e) {
  return bitcast(f32, select(e < 2u, constant(u32, 0x00200000u) << e, (e - 1u) << 23u));
}

}  // namespace

WeightParams::WeightParams(ElementType type, const std::string& suffix) {
  if (!type.is_block()) return;
  for (const char* name : {"row_words", "high_at", "scales_at", "factors_at"})
    values.push_back(param(name + suffix, u32));
}

std::vector<uint32_t> WeightParams::for_launch(ElementType type, uint64_t k) {
  if (!type.is_block()) return {};
  const GpuBlockLayout layout = gpu_block_layout(type.block(), 1, k);
  const auto words = [](uint64_t bytes) { return static_cast<uint32_t>(bytes / 4); };
  return {words(layout.row_bytes), words(layout.high.offset), words(layout.scales.offset),
          words(layout.factors.offset)};
}

WeightReader::WeightReader(ElementType type, const In& buffer, const WeightParams& params, Value k,
                           bool aligned)
    : type_(type), buffer_(buffer), params_(params.values), k_(k), aligned_(aligned) {}

uint32_t WeightReader::unit_elements(ElementType type) {
  if (type.is_block()) return plane_format(type.block()).quant_bits == 8 ? 16 : 32;
  return static_cast<uint32_t>(16 / dtype_bytes(type.plain()));
}

uint32_t WeightReader::parts_of_unit(ElementType type) {
  return plane_format(type.block()).scale_elements == 16 ? 2 : 1;
}

bool WeightReader::has_minus(ElementType type) {
  const PlaneFormat f = plane_format(type.block());
  return f.zero != 0 || f.has_min() || f.has_offset();
}

uint32_t WeightReader::unit_words(ElementType type, bool aligned) {
  if (!type.is_block()) return aligned ? 4 : unit_elements(type);
  const PlaneFormat f = plane_format(type.block());
  const uint32_t quants = f.quant_bits == 2 ? 2 : 4;
  const uint32_t scales = is_header(f) ? 4 : f.scales == ScaleFormat::none ? 0 : 1;
  return quants + f.high_bits + scales + (has_factors(f) ? 1 : 0);
}

std::vector<Value> WeightReader::load(Value wanted, Value row, Value unit) const {
  std::vector<Value> words;
  const auto take = [&](Value at, uint32_t count) {
    const Value loaded = buffer_.load_words_if(wanted, at, count, count);
    for (uint32_t i = 0; i < count; ++i) words.push_back(count == 1 ? loaded : loaded[i]);
  };
  if (!type_.is_block()) {
    const uint32_t elements = unit_elements(type_);
    const Value first = row * k_ + unit * elements;
    if (aligned_) {
      take(first / (elements / 4), 4);
      return words;
    }
    for (uint32_t i = 0; i < elements; ++i)
      words.push_back(bitcast(u32, buffer_.load_if(wanted && unit * elements + i < k_, first + i)));
    return words;
  }
  const PlaneFormat f = plane_format(type_.block());
  const Value start = row * params_[0];
  if (f.quant_bits == 2)
    take(start + unit * 2u, 2);
  else
    take(start + unit * 4u, 4);
  if (f.high_bits == 1) take(start + params_[1] + unit, 1);
  if (f.high_bits == 2) take(start + params_[1] + unit * 2u, 2);
  const Value scales = start + params_[2], factors = start + params_[3];
  if (is_header(f)) {
    take(scales + unit / 8u * 4u, 4);
    return words;
  }
  if (f.scales != ScaleFormat::none) take(scales + unit / (f.scale_elements == 16 ? 2u : 4u), 1);
  if (!has_factors(f)) return words;
  const uint32_t units = f.factor_elements / unit_elements(type_);  // that share one factor
  const uint32_t in_word = f.factors == FactorFormat::pair   ? 1
                           : f.factors == FactorFormat::e8m0 ? 4
                                                             : 2;
  take(factors + unit / (units * in_word), 1);
  return words;
}

namespace {

// The codes of a unit as bytes without their sign or table, four to a word, in order.
std::vector<Value> codes(const PlaneFormat& f, const std::vector<Value>& words) {
  std::vector<Value> quads;
  if (f.quant_bits == 8) return {words[0], words[1], words[2], words[3]};
  if (f.quant_bits == 2) {
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t m = 0; m < 4; ++m) {
        const Value low = (words[half] >> (2 * m)) & 0x03030303u;
        if (f.high_bits == 0) {
          quads.push_back(low);
          continue;
        }
        // Bit 4 * half + m of each byte of the high word becomes bit 2.
        const uint32_t from = 4 * half + m;
        const Value moved = from < 2 ? words[2] << (2 - from) : words[2] >> (from - 2);
        quads.push_back(low | (moved & 0x04040404u));
      }
    return quads;
  }
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t i = 0; i < 4; ++i) {
      const Value low = (half == 0 ? words[i] : words[i] >> 4u) & 0x0F0F0F0Fu;
      if (f.high_bits == 1) {
        const Value moved = half == 0 ? words[4] << (4 - i) : words[4] >> i;
        quads.push_back(low | (moved & 0x10101010u));
      } else if (f.high_bits == 2) {
        const Value moved = i < 2 ? words[4 + half] << (4 - 2 * i) : words[4 + half] >> (2 * i - 4);
        quads.push_back(low | (moved & 0x30303030u));
      } else {
        quads.push_back(low);
      }
    }
  return quads;
}

}  // namespace

BlockUnit::Part block_part(const PlaneFormat& f, const std::vector<Value>& words, Value scale_index,
                           Value factor_index) {
  if (is_header(f)) {
    const Value pair = unpack_f16(words[0]), shift = (scale_index & 7u) * 4u;
    const Value high = words[3] >> shift;
    const Value scale = ((words[1] >> shift) & 15u) | ((high & 3u) << 4u);
    const Value min = ((words[2] >> shift) & 15u) | ((high & 12u) << 2u);
    return {pair[0] * as_float(scale), pair[1] * as_float(min)};
  }
  if (f.scales == ScaleFormat::ue4m3) return {nvfp4_scale(field(words[0], scale_index, 8)), {}};
  const bool scaled = f.scales != ScaleFormat::none;
  const Value word = words[scaled ? 1 : 0];
  if (f.factors == FactorFormat::pair) {
    const Value pair = unpack_f16(word);
    if (!scaled) return {pair[0], -pair[1]};
    const Value both = field(words[0], scale_index, 8);
    return {pair[0] * as_float(both & 15u), pair[1] * as_float(both >> 4u)};
  }
  Value factor = f.factors == FactorFormat::e8m0 ? mxfp4_factor(field(word, factor_index, 8))
                                                 : half_of(word, factor_index);
  if (f.exponent) factor = factor * std::ldexp(1.0f, f.exponent);
  if (!scaled) return {factor, {}};
  return {factor * cast(f32, signed_byte(words[0], scale_index)), {}};
}

BlockUnit WeightReader::decode_block(const std::vector<Value>& words, Value unit) const {
  const PlaneFormat f = plane_format(type_.block());
  BlockUnit result;
  result.quads = codes(f, words);
  if (f.values == QuantValues::iq4)
    for (uint32_t i = 0; i < 4; ++i) {
      const auto [low, high] = iq4_values(words[i]);
      result.quads[i] = low;
      result.quads[4 + i] = high;
    }
  for (Value& quad : result.quads) quad = code_values(f.values, quad);

  const auto quants = static_cast<std::ptrdiff_t>((f.quant_bits == 2 ? 2 : 4) + f.high_bits);
  const std::vector<Value> rest(words.begin() + quants, words.end());
  const uint32_t units = f.factor_elements / unit_elements(type_);
  const uint32_t count = parts_of_unit(type_);
  for (uint32_t i = 0; i < count; ++i) {
    BlockUnit::Part part =
        block_part(f, rest, count == 1 ? unit : unit * 2u + i, units == 1 ? unit : unit / units);
    if (f.zero) part.minus = part.scale * static_cast<float>(f.zero);
    result.parts.push_back(part);
  }
  return result;
}

std::vector<Value> WeightReader::decode_plain(const std::vector<Value>& words) const {
  std::vector<Value> values;
  for (const Value& word : words) {
    if (!aligned_ || type_ == ElementType(f32)) {
      values.push_back(bitcast(f32, word));
    } else if (type_ == ElementType(f16)) {
      const Value pair = unpack_f16(word);
      values.push_back(pair[0]);
      values.push_back(pair[1]);
    } else {
      values.push_back(bitcast(f32, word << 16u));
      values.push_back(bitcast(f32, word & 0xFFFF0000u));
    }
  }
  return values;
}

std::vector<Value> WeightReader::decode(const std::vector<Value>& words, Value unit) const {
  if (!type_.is_block()) return decode_plain(words);
  const BlockUnit block = decode_block(words, unit);
  const size_t each = block.quads.size() / block.parts.size();
  std::vector<Value> values;
  for (size_t q = 0; q < block.quads.size(); ++q) {
    const Value four = unpack_i8(block.quads[q]);
    const BlockUnit::Part& part = block.parts[q / each];
    for (uint32_t i = 0; i < 4; ++i) {
      const Value code = cast(f32, four[i]);
      values.push_back(part.minus ? fma(part.scale, code, -*part.minus) : part.scale * code);
    }
  }
  return values;
}

}  // namespace prism::ops
