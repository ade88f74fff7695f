// Quantisation is never worse than plain rounding, preserves representable values, and rejects what
// blocks cannot hold.
#include "cpu/quantise/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/system/thread_pool.h"
#include "base/types/block_formats.h"
#include "cpu/quantise/dequantise.h"
#include "prism/error.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

double half(double v) { return f32_from_f16(f16_from_f32(static_cast<float>(v))); }
double code(double v, double lowest, double highest) {
  return std::clamp(std::nearbyint(v), lowest, highest);
}
double square(double v) { return v * v; }

// Plain rounding in double precision: scales from the extremes of each group of n elements, in
// `steps` steps of a common f16 factor if non-zero; every element to its nearest code. Each
// function returns the squared error of a block.
double plain_symmetric(const float* x, int block, int n, int lowest, int highest, int steps) {
  std::vector<double> scales;
  for (int g = 0; g < block; g += n) {
    double most = 0;
    for (int i = 0; i < n; ++i) most = std::max<double>(most, std::abs(x[g + i]));
    scales.push_back(most / highest);
  }
  const double factor = half(*std::ranges::max_element(scales) / steps);
  double error = 0;
  for (int i = 0; i < block; ++i) {
    const double d =
        factor == 0 ? 0 : factor * code(scales[static_cast<size_t>(i / n)] / factor, 0, steps);
    error += square(x[i] - d * (d == 0 ? 0 : code(x[i] / d, lowest, highest)));
  }
  return error;
}

double plain_offset(const float* x, int block, int n, int highest, int steps) {
  std::vector<double> scales, mins;
  for (int g = 0; g < block; g += n) {
    double low = steps ? 0 : x[g], high = x[g];
    for (int i = 0; i < n; ++i) {
      low = std::min<double>(low, x[g + i]);
      high = std::max<double>(high, x[g + i]);
    }
    scales.push_back((high - low) / highest);
    mins.push_back(-low);
  }
  const int most = std::max(steps, 1);
  const double factor = half(*std::ranges::max_element(scales) / most);
  const double min_factor = steps ? half(*std::ranges::max_element(mins) / most) : half(mins[0]);
  double error = 0;
  for (int i = 0; i < block; ++i) {
    const auto g = static_cast<size_t>(i / n);
    const double d = factor == 0 ? 0 : factor * code(scales[g] / factor, 0, most);
    const double m = min_factor == 0 ? 0 : min_factor * code(mins[g] / min_factor, 0, most);
    error += square(x[i] - (d * (d == 0 ? 0 : code((x[i] + m) / d, 0, highest)) - m));
  }
  return error;
}

double plain_mxfp4(const float* x) {
  double most = 0;
  for (int i = 0; i < 32; ++i) most = std::max<double>(most, std::abs(x[i]));
  if (most == 0) return 0;
  const double d = std::exp2(std::max(std::floor(std::log2(most)) - 2, -127.0));
  double error = 0;
  for (int i = 0; i < 32; ++i) {
    double nearest = HUGE_VAL;
    for (const double v : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0})
      nearest = std::min(nearest, std::abs(std::abs(x[i]) - v * d));
    error += square(nearest);
  }
  return error;
}

double plain_error(BlockType type, const float* x) {
  switch (type) {
    case BlockType::q4_0:
      return plain_symmetric(x, 32, 32, -8, 7, 1);
    case BlockType::q5_0:
      return plain_symmetric(x, 32, 32, -16, 15, 1);
    case BlockType::q8_0:
      return plain_symmetric(x, 32, 32, -127, 127, 1);
    case BlockType::q4_1:
      return plain_offset(x, 32, 32, 15, 0);
    case BlockType::q5_1:
      return plain_offset(x, 32, 32, 31, 0);
    case BlockType::q2_k:
      return plain_offset(x, 256, 16, 3, 15);
    case BlockType::q3_k:
      return plain_symmetric(x, 256, 16, -4, 3, 31);
    case BlockType::q4_k:
      return plain_offset(x, 256, 32, 15, 63);
    case BlockType::q5_k:
      return plain_offset(x, 256, 32, 31, 63);
    case BlockType::q6_k:
      return plain_symmetric(x, 256, 16, -32, 31, 127);
    case BlockType::mxfp4:
      return plain_mxfp4(x);
    default:
      return -1;
  }
}

std::vector<uint16_t> room_for(BlockType type, size_t elements) {
  return std::vector<uint16_t>(ElementType(type).row_bytes(elements) / 2 + 1, 0xcdcd);
}

std::vector<float> round_trip(BlockType type, const std::vector<float>& x,
                              const float* importance = nullptr) {
  auto blocks = room_for(type, x.size());
  quantise(type, x.data(), blocks.data(), x.size(), importance);
  std::vector<float> y(x.size(), NAN);
  dequantise(type, blocks.data(), y.data(), y.size());
  return y;
}

double error_of(const float* x, const float* y, size_t count, const float* w = nullptr) {
  double error = 0;
  for (size_t i = 0; i < count; ++i)
    error += (w ? w[i] : 1.0) * square(static_cast<double>(x[i]) - y[i]);
  return error;
}

constexpr size_t kElements = 256 * 40;

class Quantise : public ::testing::TestWithParam<int> {
 protected:
  BlockType type() const { return static_cast<BlockType>(GetParam()); }
  std::vector<float> fill(const std::function<double()>& next) {
    std::vector<float> x(kElements);
    for (float& v : x) v = static_cast<float>(next());
    return x;
  }
  const uint32_t seed_ = test_seed();
  std::mt19937 random_{seed_};
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{0, 1};
};

// Codes are chosen by f32 sums of squares, which agree within this factor.
constexpr double kRounding = 1 + 1e-5;

TEST_P(Quantise, IsNeverFurtherOffThanThePlainWay) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  std::vector<std::pair<std::string, std::vector<float>>> data;
  data.emplace_back("normal", fill([&] { return 0.02 * normal_(random_); }));
  data.emplace_back("uniform", fill([&] { return uniform_(random_); }));
  data.emplace_back("negative", fill([&] { return -3 - uniform_(random_); }));
  data.emplace_back("outliers",
                    fill([&] { return normal_(random_) * (uniform_(random_) < 0.02 ? 50 : 0.5); }));
  data.emplace_back("tiny", fill([&] { return 1e-6 * normal_(random_); }));
  data.emplace_back("large", fill([&] { return 1e4 * normal_(random_); }));
  data.emplace_back("sparse",
                    fill([&] { return uniform_(random_) < 0.03 ? normal_(random_) : 0; }));
  for (const double c : {1.0, -1.0, 0.1, -0.37, 1e-3, 1000.0})
    data.emplace_back("constant " + std::to_string(c), fill([&] { return c; }));
  const size_t block = block_info(type()).elements;
  for (const auto& [name, x] : data) {
    const auto y = round_trip(type(), x);
    for (size_t b = 0; b < kElements; b += block) {
      const double ours = error_of(&x[b], &y[b], block), plain = plain_error(type(), &x[b]);
      ASSERT_LE(ours, plain * kRounding) << name << ", block " << b / block;
    }
  }
}

TEST_P(Quantise, GainsOverThePlainWayOnNormalNumbers) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const auto x = fill([&] { return normal_(random_); });
  const auto y = round_trip(type(), x);
  double plain = 0;
  for (size_t b = 0; b < kElements; b += block_info(type()).elements)
    plain += plain_error(type(), &x[b]);
  const double ratio = error_of(x.data(), y.data(), kElements) / plain;
  std::cout << block_info(type()).name << ": " << ratio << " of the plain way's error, "
            << std::sqrt(error_of(x.data(), y.data(), kElements) / kElements) << " rms\n";
  EXPECT_LT(ratio,
            type() == BlockType::mxfp4 ? 0.99 : 0.97);  // mxfp4 has three powers to choose from
}

TEST_P(Quantise, KeepsZeros) {
  const std::vector<float> x(kElements, 0.0f);
  EXPECT_EQ(round_trip(type(), x), x);
}

TEST_P(Quantise, FollowsImportance) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const auto x = fill([&] { return normal_(random_); });
  std::vector<float> w(kElements);
  for (size_t i = 0; i < kElements; ++i) w[i] = i % 7 == 0 ? 100.0f : 0.01f;
  const auto even = round_trip(type(), x), weighted = round_trip(type(), x, w.data());
  EXPECT_LT(error_of(x.data(), weighted.data(), kElements, w.data()),
            0.98 * error_of(x.data(), even.data(), kElements, w.data()));
  std::fill(w.begin(), w.end(), 0.0f);
  EXPECT_EQ(round_trip(type(), x, w.data()), even);
}

TEST_P(Quantise, GivesTheSameBytesFromThreads) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const auto x = fill([&] { return normal_(random_); });
  constexpr uint64_t kColumns = 512, kRows = kElements / kColumns;
  std::vector<float> w(kColumns), all;
  for (float& v : w) v = static_cast<float>(uniform_(random_));
  for (uint64_t r = 0; r < kRows; ++r) all.insert(all.end(), w.begin(), w.end());
  auto alone = room_for(type(), kElements), shared = alone;
  quantise(type(), x.data(), alone.data(), kElements, all.data());
  ThreadPool pool(3);
  quantise(type(), x.data(), shared.data(), kRows, kColumns, w.data(), pool);
  EXPECT_EQ(alone, shared);
}

void expect_refused(const std::function<void()>& work, const std::string& word) {
  try {
    work();
    ADD_FAILURE() << "not refused: " << word;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST_P(Quantise, NamesTheElementThatIsNotFinite) {
  auto blocks = room_for(type(), 512);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x(512, 1.0f);
    x[389] = bad;
    expect_refused([&] { quantise(type(), x.data(), blocks.data(), 512); }, "element 389 is");
    ThreadPool pool(2);
    expect_refused([&] { quantise(type(), x.data(), blocks.data(), 2, 256, nullptr, pool); },
                   "element 133 of row 1");
  }
  const std::vector<float> x(512, 1.0f);
  std::vector<float> w(512, 1.0f);
  w[300] = -1;
  expect_refused([&] { quantise(type(), x.data(), blocks.data(), 512, w.data()); },
                 "importance of element 300");
  expect_refused([&] { quantise(type(), x.data(), blocks.data(), 511); }, "511 elements");
  if (type() != BlockType::mxfp4) {
    const std::vector<float> huge(512, -1e12f);
    expect_refused([&] { quantise(type(), huge.data(), blocks.data(), 512); }, "element 0 is");
  }
}

std::vector<int> writable() {
  std::vector<int> types;
  for (int t = 0; t < kBlockTypeCount; ++t)
    if (can_quantise(static_cast<BlockType>(t))) types.push_back(t);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Types, Quantise, ::testing::ValuesIn(writable()), [](const auto& test) {
  return block_info(static_cast<BlockType>(test.param)).name;
});

TEST(QuantiseTypes, SayWhichCanBeWritten) {
  EXPECT_EQ(writable().size(), 11u);
  const std::vector<float> x(256, 1.0f);
  uint16_t blocks[100];
  for (const BlockType type : {BlockType::iq4_nl, BlockType::iq4_xs})
    expect_refused([&] { quantise(type, x.data(), blocks, 256); },
                   "q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, mxfp4");
}

}  // namespace
}  // namespace prism::cpu
