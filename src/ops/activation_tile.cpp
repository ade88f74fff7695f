// Rounding activations to bytes: the scale of 32 elements by shuffles, the bytes laid out so that
// lanes side by side read different banks.
#include "ops/activation_tile.h"

namespace prism::ops {

using namespace dsl;

namespace {
constexpr uint32_t kScaled = 32;  // elements that share a scale
// Below this largest magnitude a block counts as zero: 127 / m would leave the range of f32.
constexpr float kSmallest = 0x1p-100f;
}  // namespace

ActivationTile::ActivationTile(uint32_t rows, uint32_t elements, uint32_t unit,
                               uint32_t sum_elements)
    : rows_(rows),
      elements_(elements),
      unit_(unit),
      sum_elements_(sum_elements),
      bytes_(shared(u32, rows * elements / 4, "x_bytes")),
      scales_(shared(f32, rows * elements / kScaled, "x_scales")) {
  if (sum_elements) sums_ = shared(f32, rows * elements / sum_elements, "x_sums");
}

uint64_t ActivationTile::bytes(uint32_t rows, uint32_t elements, uint32_t sum_elements) {
  return uint64_t(rows) *
         (elements + elements / kScaled * 4 + (sum_elements ? elements / sum_elements * 4 : 0));
}

void ActivationTile::fill(const In& x, uint32_t lanes, Value start, Value k, Value row_count,
                          const std::function<Value(Value)>& row_start) const {
  const Value width = min(k - start, elements_), quads = width / 4u;
  const auto one_row = [&](Value row) {
    const Value from = row_start(row) + start, there = row < row_count;
    for_(0u, quads, lanes, [&](Value first) {
      const Value quad = first + local_id(), wanted = quad < quads;
      const Value four = x.load_if(wanted && there, from + quad * 4u, 4);
      // Magnitudes compare as integers, and so that a NaN is the largest of all.
      Value top = constant(u32, 0);
      for (uint32_t i = 0; i < 4; ++i) top = max(top, bitcast(u32, four[i]) & 0x7FFFFFFFu);
      for (uint32_t mask = 1; mask < kScaled / 4; mask *= 2)
        top = max(top, subgroup_shuffle_xor(top, mask));
      const Value largest = bitcast(f32, top);
      // The quotient put right by one step of Newton's, so that every device rounds alike.
      const Value rough = 127.0f / largest;
      const Value exact = fma(fma(-largest, rough, 127.0f), rough * (1.0f / 127.0f), rough);
      const Value inverse = select(largest > kSmallest, exact, 0.0f);
      std::vector<Value> rounded;
      for (uint32_t i = 0; i < 4; ++i) rounded.push_back(cast(i32, round_even(four[i] * inverse)));
      const Value packed = pack_8(vec(rounded[0], rounded[1], rounded[2], rounded[3]));
      const Value scale = largest * (1.0f / 127.0f);
      Value sum = rounded[0] + rounded[1] + rounded[2] + rounded[3];
      if (sum_elements_)
        for (uint32_t mask = 1; mask < sum_elements_ / 4; mask *= 2)
          sum = sum + subgroup_shuffle_xor(sum, mask);
      const Value place =
          unit_ == 16 ? quad : quad / 4u % 2u * (elements_ / 8) + quad / 8u * 4u + quad % 4u;
      bytes_.store_if(wanted, row * (elements_ / 4) + place, packed);
      scales_.store_if(wanted && quad % (kScaled / 4) == 0u,
                       row * (elements_ / kScaled) + quad / (kScaled / 4), scale);
      if (sum_elements_)
        sums_->store_if(wanted && quad % (sum_elements_ / 4) == 0u,
                        row * (elements_ / sum_elements_) + quad / (sum_elements_ / 4),
                        scale * cast(f32, sum));
    });
  };
  if (rows_ == 1)
    one_row(constant(u32, 0));
  else
    for_(rows_, one_row);
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
  return scales_.load(at + row * (elements_ / kScaled));
}

std::vector<Value> ActivationTile::sums(uint32_t row, Value unit) const {
  const uint32_t each = unit_ / sum_elements_;
  std::vector<Value> values;
  for (uint32_t i = 0; i < each; ++i)
    values.push_back(sums_->load(unit * each + (row * (elements_ / sum_elements_) + i)));
  return values;
}

}  // namespace prism::ops
