// Subgroup sums by recursive halving: in each step lanes exchange half of their sums.
#include "ops/products/spread_sums.h"

#include <bit>

namespace prism::ops {

using namespace dsl;

SpreadSums spread_sums(std::vector<Value> sums, uint32_t apart, uint32_t among) {
  uint32_t lanes = among;  // that have the same numbers
  sums.resize(std::bit_ceil(sums.size()), constant(f32, 0.0));
  const Value lane = subgroup_lane();
  for (; lanes > apart && sums.size() > 1; lanes /= 2) {
    const uint32_t mask = lanes / 2;
    const size_t half = sums.size() / 2;
    const Value upper = (lane & mask) != 0u;
    for (size_t i = 0; i < half; ++i) {
      const Value kept = select(upper, sums[half + i], sums[i]);
      sums[i] = kept + subgroup_shuffle_xor(select(upper, sums[i], sums[half + i]), mask);
    }
    sums.resize(half, sums[0]);
  }
  const Value first = lane % among / lanes * static_cast<uint32_t>(sums.size());
  for (uint32_t mask = lanes / 2; mask >= apart; mask /= 2)
    for (Value& sum : sums) sum = sum + subgroup_shuffle_xor(sum, mask);
  return {std::move(sums), first, lane % lanes < apart};
}

}  // namespace prism::ops
