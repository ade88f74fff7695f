// Tests sums that are scattered over the lanes of a subgroup.
#include "ops/products/spread_sums.h"

#include <bit>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "ir/interpreter/interpreter.h"
#include "support/seed.h"

namespace prism::ops {
namespace {

using namespace dsl;

// y[subgroup][lane % apart][number], each stored by one lane.
ir::Kernel sums_of(uint32_t count, uint32_t apart) {
  const uint32_t numbers = std::bit_ceil(count);
  return kernel("sums", 64, [&] {
    require_subgroup_size(32);
    const In x = in("x", f32);
    const Array y = inout("y", f32);
    std::vector<Value> own;
    for (uint32_t i = 0; i < count; ++i) own.push_back(x.load(local_id() * count + i));
    const SpreadSums spread = spread_sums(own, apart);
    const Value at = (subgroup_id() * apart + subgroup_lane() % apart) * numbers + spread.first;
    if_(spread.mine, [&] {
      for (uint32_t i = 0; i < spread.held.size(); ++i) y[at + i] = y.load(at + i) + spread.held[i];
    });
  });
}

TEST(SpreadSums, EveryNumberOnce) {
  const uint32_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  std::mt19937 engine(seed);
  for (const uint32_t count : {1u, 2u, 3u, 4u, 7u, 24u, 32u, 40u})
    for (const uint32_t apart : {1u, 2u, 4u, 16u, 32u}) {
      const uint32_t numbers = std::bit_ceil(count);
      std::vector<float> x(size_t{64} * count), y(size_t{2} * apart * numbers),
          wanted(y.size());  // small integers: exact in any order
      for (float& each : x) each = static_cast<float>(static_cast<int>(engine() % 201) - 100);
      for (uint32_t lane = 0; lane < 64; ++lane)
        for (uint32_t i = 0; i < count; ++i)
          wanted[(lane / 32 * apart + lane % apart) * numbers + i] += x[lane * count + i];
      const auto bytes = [](std::vector<float>& values) {
        return ir::HostBuffer{reinterpret_cast<std::byte*>(values.data()), values.size() * 4};
      };
      const std::vector<ir::HostBuffer> buffers = {bytes(x), bytes(y)};
      ir::interpret(sums_of(count, apart), {1, 1, 1}, buffers, {});
      EXPECT_EQ(y, wanted) << count << " sums, lanes " << apart << " apart";
    }
}

}  // namespace
}  // namespace prism::ops
