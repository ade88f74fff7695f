// Rounds activations to bytes: scales of 32 elements by shuffles or atomics, in a layout without
// bank conflicts.
#include "ops/products/activation_tile.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kScaled = 32;  // elements that share a scale
// Below this largest magnitude a block counts as zero: 127 / m would leave the range of f32.
constexpr float kSmallest = 0x1p-100f;

// The largest magnitude of four, as bits: magnitudes compare as integers, and a NaN is the largest.
Value top_of(Value four) {
  Value top = constant(u32, 0);
  for (uint32_t i = 0; i < 4; ++i) top = max(top, bitcast(u32, four[i]) & 0x7FFFFFFFu);
  return top;
}

// The quotient put right by one step of Newton's, so that every device rounds alike.
Value inverse_of(Value largest) {
  const Value rough = 127.0f / largest;
  const Value exact = fma(fma(-largest, rough, 127.0f), rough * kRoundedUnit, rough);
  return select(largest > kSmallest, exact, 0.0f);
}

}  // namespace

Value round_one(Value element, Value largest) {
  return cast(i32, round_even(element * inverse_of(largest)));
}

std::vector<Value> round_four(Value four, Value largest) {
  const Value inverse = inverse_of(largest);
  std::vector<Value> rounded;
  for (uint32_t i = 0; i < 4; ++i) rounded.push_back(cast(i32, round_even(four[i] * inverse)));
  return rounded;
}

Value largest_of_block(Value four) {
  Value top = top_of(four);
  for (uint32_t mask = 1; mask < kScaled / 4; mask *= 2)
    top = max(top, subgroup_shuffle_xor(top, mask));
  return bitcast(f32, top);
}

ActivationTile::ActivationTile(uint32_t rows, uint32_t elements, uint32_t unit,
                               uint32_t sum_elements, bool shuffles)
    : rows_(rows),
      elements_(elements),
      unit_(unit),
      sum_elements_(sum_elements),
      shuffles_(shuffles),
      bytes_(shared(u32, uint64_t(rows) * elements / 4, "x_bytes")),
      scales_(shared(shuffles ? f32 : u32, uint64_t(rows) * elements / kScaled, "x_scales")) {
  if (sum_elements)
    sums_ = shared(shuffles ? f32 : i32, uint64_t(rows) * elements / sum_elements, "x_sums");
}

uint64_t ActivationTile::bytes(uint32_t rows, uint32_t elements, uint32_t sum_elements) {
  return uint64_t(rows) *
         (elements + elements / kScaled * 4 + (sum_elements ? elements / sum_elements * 4 : 0));
}

void ActivationTile::for_rows(const std::function<void(Value)>& body) const {
  if (rows_ == 1)
    body(constant(u32, 0));
  else
    for_(rows_, body);
}

Value ActivationTile::place(Value row, Value quad) const {
  const Value start = row * (elements_ / 4);
  if (unit_ == 16) return start + quad;
  // The halves of units apart: lanes side by side then read neighbouring 16 bytes.
  return start + quad / 4u % 2u * (elements_ / 8) + quad / 8u * 4u + quad % 4u;
}

void ActivationTile::fill(const In& x, uint32_t lanes, Value start, Value k, Value row_count,
                          const std::function<Value(Value)>& row_start) const {
  const Value quads = min(k - start, elements_) / 4u;
  if (shuffles_)
    fill_by_shuffles(x, lanes, start, quads, row_count, row_start);
  else
    fill_by_atomics(x, lanes, start, quads, row_count, row_start);
}

void ActivationTile::fill_by_shuffles(const In& x, uint32_t lanes, Value start, Value quads,
                                      Value row_count,
                                      const std::function<Value(Value)>& row_start) const {
  for_rows([&](Value row) {
    const Value from = row_start(row) + start, there = row < row_count;
    for_(0u, quads, lanes, [&](Value first) {
      const Value quad = first + local_id(), wanted = quad < quads;
      const Value four = x.load_if(wanted && there, from + quad * 4u, 4);
      const Value largest = largest_of_block(four), scale = largest * kRoundedUnit;
      const std::vector<Value> rounded = round_four(four, largest);
      bytes_.store_if(wanted, place(row, quad),
                      pack_8(vec(rounded[0], rounded[1], rounded[2], rounded[3])));
      scales_.store_if(wanted && quad % (kScaled / 4) == 0u,
                       row * (elements_ / kScaled) + quad / (kScaled / 4), scale);
      if (!sum_elements_) return;
      Value sum = rounded[0] + rounded[1] + rounded[2] + rounded[3];
      for (uint32_t mask = 1; mask < sum_elements_ / 4; mask *= 2)
        sum = sum + subgroup_shuffle_xor(sum, mask);
      sums_->store_if(wanted && quad % (sum_elements_ / 4) == 0u,
                      row * (elements_ / sum_elements_) + quad / (sum_elements_ / 4),
                      scale * cast(f32, sum));
    });
  });
}

void ActivationTile::fill_by_atomics(const In& x, uint32_t lanes, Value start, Value quads,
                                     Value row_count,
                                     const std::function<Value(Value)>& row_start) const {
  for_(local_id(), rows_ * elements_ / kScaled, lanes, [&](Value i) { scales_[i] = 0u; });
  if (sum_elements_)
    for_(local_id(), rows_ * elements_ / sum_elements_, lanes, [&](Value i) { (*sums_)[i] = 0; });
  barrier();
  const auto for_quads = [&](const std::function<void(Value, Value, Value)>& body) {
    for_rows([&](Value row) {
      const Value from = row_start(row) + start, there = row < row_count;
      for_(local_id(), quads, lanes,
           [&](Value quad) { body(row, quad, x.load_if(there, from + quad * 4u, 4)); });
    });
  };
  for_quads([&](Value row, Value quad, Value four) {
    scales_.atomic(AtomicOp::max, row * (elements_ / kScaled) + quad / (kScaled / 4), top_of(four));
  });
  barrier();
  for_quads([&](Value row, Value quad, Value four) {
    const Value largest =
        bitcast(f32, scales_.load(row * (elements_ / kScaled) + quad / (kScaled / 4)));
    const std::vector<Value> rounded = round_four(four, largest);
    bytes_.store(place(row, quad), pack_8(vec(rounded[0], rounded[1], rounded[2], rounded[3])));
    if (sum_elements_)
      sums_->atomic_add(row * (elements_ / sum_elements_) + quad / (sum_elements_ / 4),
                        rounded[0] + rounded[1] + rounded[2] + rounded[3]);
  });
}

std::vector<Value> ActivationTile::quads(uint32_t row, Value unit) const {
  std::vector<Value> words;
  for (uint32_t half = 0; half < unit_ / 16; ++half) {
    const Value four = bytes_.load(unit * 4u + (row * (elements_ / 4) + half * (elements_ / 8)), 4);
    for (uint32_t i = 0; i < 4; ++i) words.push_back(four[i]);
  }
  return words;
}

Value ActivationTile::scale(uint32_t row, Value unit) const {
  const Value at = unit_ == kScaled ? unit : unit / (kScaled / unit_);
  const Value stored = scales_.load(at + row * (elements_ / kScaled));
  return shuffles_ ? stored : bitcast(f32, stored) * kRoundedUnit;
}

std::vector<Value> ActivationTile::sums(uint32_t row, Value unit) const {
  const uint32_t each = unit_ / sum_elements_;
  std::vector<Value> values;
  for (uint32_t i = 0; i < each; ++i) {
    const Value stored = sums_->load(unit * each + (row * (elements_ / sum_elements_) + i));
    values.push_back(shuffles_ ? stored : scale(row, unit) * cast(f32, stored));
  }
  return values;
}

}  // namespace prism::ops
