// Loads of rows and queries in nearest_rows, and the keys of scores.
#include "ops/nearest/nearest_kernels.h"
#include "ops/rows/sort_pairs.h"

namespace prism::ops {

using namespace dsl;

std::vector<Value> RowUnits::load_bytes(const In& from, Value wanted, Value row, Value unit) const {
  std::vector<Value> words;
  if (form_.aligned) {
    const Value four = from.load_words_if(wanted, row * (width_ / 4u) + unit * 4u, 4, 4);
    for (uint32_t i = 0; i < 4; ++i) words.push_back(four[i]);
    return words;
  }
  for (uint32_t i = 0; i < 16; ++i) {
    const Value at = unit * 16u + i;
    words.push_back(cast(u32, from.load_if(wanted && at < width_, row * width_ + at)));
  }
  return words;
}

std::vector<Value> RowUnits::load(Value wanted, Value row, Value unit) const {
  if (form_.metric == Metric::hamming) return load_bytes(matrix_, wanted, row, unit);
  const uint32_t count = elements(form_.type);
  std::vector<Value> values;
  if (!form_.aligned) {
    for (uint32_t i = 0; i < count; ++i) {
      const Value at = unit * count + i;
      values.push_back(cast(f32, matrix_.load_if(wanted && at < width_, row * width_ + at)));
    }
    return values;
  }
  return elements_of(load_words(wanted, row, unit));
}

Value RowUnits::load_words(Value wanted, Value row, Value unit) const {
  const uint32_t per_word =
      form_.metric == Metric::hamming ? 4 : RowUnits::elements(form_.type) / 4;
  return matrix_.load_words_if(wanted, row * (width_ / per_word) + unit * 4u, 4, 4);
}

std::vector<Value> RowUnits::elements_of(Value four) const {
  std::vector<Value> values;
  for (uint32_t i = 0; i < 4; ++i) {
    const Value word = four[i];
    if (form_.metric == Metric::hamming) {
      values.push_back(word);
    } else if (form_.type == f32) {
      values.push_back(bitcast(f32, word));
    } else if (form_.type == f16) {
      const Value pair = unpack_f16(word);
      values.push_back(pair[0]);
      values.push_back(pair[1]);
    } else if (form_.type == bf16) {
      values.push_back(bitcast(f32, word << 16u));
      values.push_back(bitcast(f32, word & 0xffff0000u));
    } else {
      const Value bytes = unpack_i8(word);
      for (uint32_t b = 0; b < 4; ++b) values.push_back(cast(f32, bytes[b]));
    }
  }
  return values;
}

std::vector<Value> RowUnits::load_query(const In& queries, Value query, Value unit) const {
  const Value always = constant(u32, 0) == 0u;
  if (form_.metric == Metric::hamming) return load_bytes(queries, always, query, unit);
  const uint32_t count = elements(form_.type);
  const Value first = query * width_ + unit * count;
  std::vector<Value> values;
  for (uint32_t i = 0; i < count; i += 4) {
    if (form_.aligned) {
      const Value four = queries.load(first + i, 4);
      for (uint32_t n = 0; n < 4; ++n) values.push_back(four[n]);
    } else {
      for (uint32_t n = i; n < i + 4 && n < count; ++n)
        values.push_back(queries.load_if(unit * count + n < width_, first + n));
    }
  }
  return values;
}

Value is_allowed(const std::optional<In>& allowed, Value inside, Value row) {
  if (!allowed) return inside;
  return inside && ((allowed->load_if(inside, row / 32u) >> (row % 32u)) & 1u) == 1u;
}

Value nearest_key(Value score, Metric metric) {
  const Value key = sort_key(score, !is_distance(metric));
  // The key of an infinitely bad score: -infinity or +infinity.
  const Value worst = constant(u32, 0xff800000u);
  return select(!is_nan(score) && key < worst, key, constant(u32, kNoKey));
}

Value score_of_key(Value key, Metric metric) {
  const Value up = is_distance(metric) ? key : ~key;
  const Value bits = select((up >> 31u) != 0u, up & 0x7fffffffu, ~up);
  const Value none = constant_bits(u32, is_distance(metric) ? 0x7f800000u : 0xff800000u);
  return bitcast(f32, select(key == kNoKey, none, bits));
}

}  // namespace prism::ops
