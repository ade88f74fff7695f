// Tests bounded dimensions on every device found: one plan, replayed for counts of 0, 1, all but
// one and all, against float64.
#include <cmath>
#include <iostream>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "prism/compile.h"
#include "prism/device.h"
#include "prism/error.h"
#include "prism/ops/attention.h"
#include "prism/ops/bounded.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"
#include "support/seed.h"

namespace prism {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class BoundedDevice : public testing::Test {
 protected:
  BoundedDevice() {
    const uint64_t seed = test_seed();
    std::cout << "seed " << seed << std::endl;
    engine_.seed(seed);
  }
  static std::vector<Device> devices() {
    std::vector<Device> all;
    for (const BackendReport& report : discover_backends())
      for (const auto& driver : report.devices) all.emplace_back(driver, "a test");
    return all;
  }
  std::vector<float> values(int64_t count) {
    std::uniform_real_distribution<float> draw(-2, 2);
    std::vector<float> all(static_cast<size_t>(count));
    for (float& each : all) each = draw(engine_);
    return all;
  }
  static void expect_near(const std::vector<double>& got, const std::vector<double>& wanted,
                          double bound, const std::string& what) {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(wanted[i]))
        EXPECT_TRUE(std::isnan(got[i])) << what << " [" << i << "] " << got[i];
      else if (std::isinf(wanted[i]))
        EXPECT_EQ(got[i], wanted[i]) << what << " [" << i << "]";
      else
        EXPECT_NEAR(got[i], wanted[i], bound * (1 + std::abs(wanted[i])))
            << what << " [" << i << "]";
    }
  }
  std::mt19937_64 engine_;
};

TEST_F(BoundedDevice, ReductionsSoftmaxAndProductsOfAPrefix) {
  constexpr int64_t kMost = 67, kColumns = 19;
  for (const Device& device : devices()) {
    CompiledFunction f = compile([](std::span<const Tensor> in) {
      const Tensor &x = in[0], &count = in[1], &y = in[2];
      return std::vector<Tensor>{sum(mask_beyond(x, 0, count), {0}),
                                 max(mask_beyond(x, 0, count, -kInfinity), {0}),
                                 softmax(mask_beyond(x.transpose(), 1, count, -kInfinity), -1),
                                 matmul(y, mask_beyond(x, 0, count))};
    });
    for (const int64_t count : {kMost, int64_t{0}, int64_t{1}, kMost - 1, kMost}) {
      const std::string what = device.id() + ", " + std::to_string(count) + " rows, output ";
      auto x = values(kMost * kColumns);
      const auto y = values(3 * kMost);
      const auto n = static_cast<size_t>(count), columns = static_cast<size_t>(kColumns),
                 most = static_cast<size_t>(kMost);
      // Elements beyond the count must not matter.
      for (size_t i = n * columns; i < x.size(); ++i) x[i] = std::nanf("");
      const auto got = f({from_vector(x, {kMost, kColumns}, device),
                          from_vector<int32_t>({static_cast<int32_t>(count)}, {1}, device),
                          from_vector(y, {3, kMost}, device)});
      std::vector<double> sums(columns, 0), most_of(columns, -kInfinity), weights(columns * most),
          products(3 * columns, 0);
      for (size_t c = 0; c < columns; ++c) {
        double total = 0;
        for (size_t r = 0; r < n; ++r) {
          const double value = x[r * columns + c];
          sums[c] += value;
          most_of[c] = std::max(most_of[c], value);
          for (size_t i = 0; i < 3; ++i)
            products[i * columns + c] += static_cast<double>(y[i * most + r]) * value;
        }
        for (size_t r = 0; r < n; ++r)
          total += std::exp(static_cast<double>(x[r * columns + c]) - most_of[c]);
        for (size_t r = 0; r < most; ++r)
          weights[c * most + r] =
              n == 0  ? std::nan("")  // of an empty range
              : r < n ? std::exp(static_cast<double>(x[r * columns + c]) - most_of[c]) / total
                      : 0;
      }
      expect_near(got[0].to_doubles(), sums, 1e-5, what + "0");
      expect_near(got[1].to_doubles(), most_of, 0, what + "1");
      expect_near(got[2].to_doubles(), weights, 1e-5, what + "2");
      expect_near(got[3].to_doubles(), products, 1e-4, what + "3");
    }
    EXPECT_EQ(f.plans(), 1u);
  }
}

TEST_F(BoundedDevice, WritesOnlyTheRowsThatCount) {
  constexpr int64_t kMost = 9, kColumns = 5, kPlaces = 20;
  for (const Device& device : devices()) {
    const auto before = values(kPlaces * kColumns);
    const Tensor cache = from_vector(before, {kPlaces, kColumns}, device);
    CompiledFunction f = compile([&](std::span<const Tensor> in) {
      const Tensor places = mask_beyond(in[0], 0, in[2], -1);
      return std::vector<Tensor>{sum(write_rows(cache, places, in[1]), {0})};
    });
    auto wanted = before;
    for (const int64_t count : {int64_t{0}, int64_t{1}, kMost - 1, kMost, int64_t{0}}) {
      std::vector<int32_t> places(kMost);
      for (int32_t& each : places) each = static_cast<int32_t>(&each - places.data());
      std::shuffle(places.begin(), places.end(), engine_);
      const auto rows = values(kMost * kColumns);
      f({from_vector(places, {kMost}, device), from_vector(rows, {kMost, kColumns}, device),
         from_vector<int32_t>({static_cast<int32_t>(count)}, {1}, device)});
      for (size_t r = 0; r < static_cast<size_t>(count); ++r)
        std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(r * kColumns), kColumns,
                    wanted.begin() + static_cast<std::ptrdiff_t>(places[r] * kColumns));
      EXPECT_EQ(cache.to_vector<float>(), wanted) << device.id() << ", " << count << " rows";
    }
    EXPECT_EQ(f.plans(), 1u);
  }
}

TEST_F(BoundedDevice, AttentionOverAsManyKeysAsThereAre) {
  constexpr int64_t kMost = 33, kHeads = 2, kDim = 32;
  for (const Device& device : devices()) {
    CompiledFunction f = compile([](std::span<const Tensor> in) {
      return std::vector<Tensor>{cached_attention(in[0], in[1], in[2], in[3], 1)};
    });
    for (const int64_t count : {int64_t{0}, int64_t{1}, kMost - 1, kMost, int64_t{1}}) {
      const auto q = values(kHeads * kDim);
      auto k = values(kMost * kHeads * kDim), v = values(kMost * kHeads * kDim);
      for (size_t i = static_cast<size_t>(count * kHeads * kDim); i < k.size(); ++i)
        k[i] = v[i] = std::nanf("");
      const auto got =
          f({from_vector(q, {1, kHeads, kDim}, device),
             from_vector(k, {1, kMost, kHeads, kDim}, device),
             from_vector(v, {1, kMost, kHeads, kDim}, device),
             from_vector<int32_t>({0, count > 0 ? 1 : 0, static_cast<int32_t>(count), 0}, {1, 4},
                                  device)});
      // A sequence without keys has no query either: nothing is written.
      const std::vector<double> result = got[0].to_doubles();
      if (count == 0) continue;
      std::vector<double> wanted(static_cast<size_t>(kHeads * kDim), 0);
      for (size_t h = 0; h < kHeads; ++h) {
        std::vector<double> scores;
        double highest = -kInfinity, total = 0;
        for (size_t j = 0; j < static_cast<size_t>(count); ++j) {
          double dot = 0;
          for (size_t d = 0; d < kDim; ++d)
            dot += static_cast<double>(q[h * kDim + d]) * k[(j * kHeads + h) * kDim + d];
          scores.push_back(dot / std::sqrt(static_cast<double>(kDim)));
          highest = std::max(highest, scores.back());
        }
        for (double& score : scores) total += score = std::exp(score - highest);
        for (size_t j = 0; j < scores.size(); ++j)
          for (size_t d = 0; d < kDim; ++d)
            wanted[h * kDim + d] += scores[j] / total * v[(j * kHeads + h) * kDim + d];
      }
      expect_near(result, wanted, 3e-3, device.id() + ", " + std::to_string(count) + " keys");
    }
    EXPECT_EQ(f.plans(), 1u);
  }
}

TEST_F(BoundedDevice, RefusesCountsThatDoNotFit) {
  const Tensor x = zeros({4, 5}, DType::f32, Device::cpu());
  EXPECT_THROW(mask_beyond(x, 2, from_vector<int32_t>({1}, {1}, Device::cpu())), Error);
  EXPECT_THROW(mask_beyond(x, 0, from_vector<float>({1}, {1}, Device::cpu())), Error);
  EXPECT_THROW(mask_beyond(x, 0, from_vector<int32_t>({1, 1, 1, 1}, {4, 1}, Device::cpu())), Error);
}

}  // namespace
}  // namespace prism
