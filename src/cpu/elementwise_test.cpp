// Tests every function on every instruction set of this machine against float64, and conversions
// against prism/dtype.h.
#include "cpu/elementwise.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "cpu/simd_targets.h"
#include "prism/error.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

uint32_t fresh_seed() {
  const uint32_t seed = test_seed();
  std::printf("seed %u\n", seed);
  return seed;
}

const std::vector<float>& special_values() {
  static const std::vector<float> values = {0.0f,          -0.0f,
                                            1.0f,          -1.0f,
                                            0.5f,          -0.5f,
                                            2.0f,          -2.0f,
                                            3.0f,          1e-45f,
                                            -1e-45f,       1e-40f,
                                            -1e-40f,       1.17549435e-38f,
                                            3.4028235e38f, -3.4028235e38f,
                                            kInfinity,     -kInfinity,
                                            kNaN,          88.7f,
                                            88.73f,        -87.4f,
                                            -103.9f,       -104.1f,
                                            89.5f,         1e6f,
                                            -1e6f,         1e7f,
                                            3e10f,         1e30f,
                                            -1e30f,        0.625f,
                                            11.0f,         -14.3f,
                                            -15.0f,        -20.0f,
                                            3.1415927f,    6.2831855f,
                                            1.5707964f,    0.70710677f,
                                            1.4142135f,    710475.0f,
                                            2.5f,          -2.5f,
                                            3.5f,          8388607.5f,
                                            16777216.0f,   -7.0f};
  return values;
}

double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

struct Case {
  ScalarOp op;
  std::function<double(double, double)> reference;
  double tolerance;           // relative
  double absolute = 1.5e-45;  // one subnormal unit
};

std::vector<Case> cases() {
  return {
      {ScalarOp::neg, [](double x, double) { return -x; }, 0},
      {ScalarOp::abs, [](double x, double) { return std::abs(x); }, 0},
      {ScalarOp::sign, [](double x, double) { return x > 0   ? 1.0
                                                     : x < 0 ? -1.0
                                                             : x; }, 0},
      {ScalarOp::exp, [](double x, double) { return std::exp(x); }, 2.5e-7},
      {ScalarOp::log, [](double x, double) { return std::log(x); }, 2.5e-7},
      {ScalarOp::log1p, [](double x, double) { return std::log1p(x); }, 4e-7},
      {ScalarOp::sqrt, [](double x, double) { return std::sqrt(x); }, 6.1e-8},
      {ScalarOp::rsqrt, [](double x, double) { return 1 / std::sqrt(x); }, 1.9e-7},
      {ScalarOp::sin, [](double x, double) { return std::sin(x); }, 6.5e-8},
      {ScalarOp::cos, [](double x, double) { return std::cos(x); }, 6.5e-8},
      {ScalarOp::tanh, [](double x, double) { return std::tanh(x); }, 4e-7},
      {ScalarOp::erf, [](double x, double) { return std::erf(x); }, 6.5e-8},
      {ScalarOp::sigmoid, [](double x, double) { return sigmoid(x); }, 4e-7},
      {ScalarOp::relu, [](double x, double) { return x < 0 ? 0 : x; }, 0},
      {ScalarOp::gelu, [](double x, double) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); },
       6.5e-8},
      {ScalarOp::gelu_tanh,
       [](double x, double) {
         return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
       },
       6.5e-8},
      {ScalarOp::silu, [](double x, double) { return x * sigmoid(x); }, 4e-7, 2e-43},
      {ScalarOp::square, [](double x, double) { return x * x; }, 6.1e-8},
      {ScalarOp::reciprocal, [](double x, double) { return 1 / x; }, 6.1e-8},
      {ScalarOp::floor, [](double x, double) { return std::floor(x); }, 0},
      {ScalarOp::ceil, [](double x, double) { return std::ceil(x); }, 0},
      {ScalarOp::round, [](double x, double) { return std::nearbyint(x); }, 0},
      {ScalarOp::add, [](double x, double y) { return x + y; }, 6.1e-8},
      {ScalarOp::sub, [](double x, double y) { return x - y; }, 6.1e-8},
      {ScalarOp::mul, [](double x, double y) { return x * y; }, 6.1e-8},
      {ScalarOp::div, [](double x, double y) { return x / y; }, 6.1e-8},
      {ScalarOp::pow, [](double x, double y) { return std::pow(x, y); }, 6.5e-8},
      {ScalarOp::min, [](double x, double y) { return y < x || y != y ? y : x; }, 0},
      {ScalarOp::max, [](double x, double y) { return x < y || y != y ? y : x; }, 0},
  };
}

void expect_close(float got, double wanted, double tolerance, double absolute,
                  const std::string& what) {
  const float rounded = static_cast<float>(wanted);
  if (std::isnan(rounded)) {
    ASSERT_TRUE(std::isnan(got)) << what << " gave " << got;
  } else if (std::isinf(rounded)) {
    ASSERT_EQ(got, rounded) << what;
  } else {
    const double error = std::abs(static_cast<double>(got) - wanted);
    ASSERT_LE(error, tolerance * std::abs(wanted) + absolute)
        << what << " gave " << got << ", not " << wanted;
    if (tolerance == 0) {
      ASSERT_EQ(std::signbit(got), std::signbit(rounded)) << what;
    }
  }
}

// All magnitudes, a common range, and special values.
std::vector<float> samples(std::mt19937& random, size_t count) {
  std::vector<float> x = special_values();
  std::uniform_real_distribution<float> everyday(-12.0f, 12.0f), wide(-110.0f, 110.0f);
  while (x.size() < count) {
    x.push_back(everyday(random));
    x.push_back(wide(random));
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  }
  return x;
}

TEST(Elementwise, F32AgreesWithFloat64OnEveryInstructionSet) {
  std::mt19937 random(fresh_seed());
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    std::printf("on %s\n", simd_target_name(target));
    for (const Case& c : cases()) {
      const std::vector<float> x = samples(random, 30011);
      std::vector<float> y = samples(random, x.size());
      std::shuffle(y.begin(), y.end(), random);
      // Random samples would rarely have integer powers of negative bases.
      if (c.op == ScalarOp::pow)
        for (size_t i = 0; i < x.size(); i += 3) y[i] = std::floor(y[i]);
      std::vector<float> out(x.size() + 1, kNaN);
      out.back() = 77.0f;
      apply(c.op, DType::f32, x.data(), y.data(), nullptr, out.data(), x.size());
      ASSERT_EQ(out.back(), 77.0f);
      for (size_t i = 0; i < x.size() && !HasFatalFailure(); ++i)
        expect_close(out[i], c.reference(x[i], y[i]), c.tolerance, c.absolute,
                     std::string(simd_target_name(target)) + " " +
                         std::string(scalar_op_name(c.op)) + "(" + std::to_string(x[i]) + ", " +
                         std::to_string(y[i]) + ")");
    }
  }
}

TEST(Elementwise, PowersOfAllPairsOfSpecialValues) {
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    std::vector<float> x, y;
    for (float a : special_values())
      for (float b : special_values()) {
        x.push_back(a);
        y.push_back(b);
      }
    std::vector<float> out(x.size(), kNaN);
    apply(ScalarOp::pow, DType::f32, x.data(), y.data(), nullptr, out.data(), x.size());
    for (size_t i = 0; i < x.size() && !HasFatalFailure(); ++i)
      expect_close(out[i], std::pow(static_cast<double>(x[i]), static_cast<double>(y[i])), 6.5e-8,
                   1.5e-45, "pow(" + std::to_string(x[i]) + ", " + std::to_string(y[i]) + ")");
  }
}

TEST(Elementwise, F64AgreesWithTheLibrary) {
  std::mt19937 random(fresh_seed());
  std::uniform_real_distribution<double> range(-12, 12);
  for (const Case& c : cases()) {
    std::vector<double> x(1009), y(1009), out(1009, kNaN);
    for (double& v : x) v = range(random);
    for (double& v : y) v = range(random);
    apply(c.op, DType::f64, x.data(), y.data(), nullptr, out.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double wanted = c.reference(x[i], y[i]);
      if (std::isnan(wanted))
        ASSERT_TRUE(std::isnan(out[i])) << scalar_op_name(c.op);
      else
        ASSERT_NEAR(out[i], wanted, std::abs(wanted) * 1e-13) << scalar_op_name(c.op) << x[i];
    }
  }
}

template <class T>
void check_comparisons_and_select(DType type, std::mt19937& random) {
  for (size_t n : {0, 1, 7, 16, 1009}) {
    std::vector<T> x(n), y(n), chosen(n);
    for (size_t i = 0; i < n; ++i) {
      x[i] = static_cast<T>(static_cast<int>(random() % 5) - 2);
      y[i] = static_cast<T>(static_cast<int>(random() % 5) - 2);
      if (std::is_floating_point_v<T> && random() % 7 == 0) y[i] = static_cast<T>(kNaN);
    }
    std::vector<int32_t> truth(n, 0x5a5a5a5a);
    const auto check = [&](ScalarOp op, auto f) {
      apply(op, type, x.data(), y.data(), nullptr, truth.data(), n);
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(truth[i], f(x[i], y[i]) ? 1 : 0) << scalar_op_name(op);
    };
    check(ScalarOp::eq, [](T a, T b) { return a == b; });
    check(ScalarOp::ne, [](T a, T b) { return a != b; });
    check(ScalarOp::lt, [](T a, T b) { return a < b; });
    check(ScalarOp::le, [](T a, T b) { return a <= b; });
    check(ScalarOp::gt, [](T a, T b) { return a > b; });
    check(ScalarOp::ge, [](T a, T b) { return a >= b; });
    apply(ScalarOp::select, type, truth.data(), x.data(), y.data(), chosen.data(), n);
    for (size_t i = 0; i < n; ++i) {
      const T wanted = truth[i] ? x[i] : y[i];
      ASSERT_EQ(std::memcmp(&chosen[i], &wanted, sizeof(T)), 0);
    }
  }
}

TEST(Elementwise, ComparisonsAndSelect) {
  std::mt19937 random(fresh_seed());
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    check_comparisons_and_select<float>(DType::f32, random);
    check_comparisons_and_select<double>(DType::f64, random);
    check_comparisons_and_select<int32_t>(DType::i32, random);
    check_comparisons_and_select<int64_t>(DType::i64, random);
  }
}

TEST(Elementwise, LogicTakesAnyNonZeroForTrue) {
  const std::vector<int32_t> a = {0, 0, 5, -1, 0, 1, 2}, b = {0, 7, 0, 2, 1, 1, 4};
  std::vector<int32_t> out(a.size());
  apply(ScalarOp::logical_and, DType::f32, a.data(), b.data(), nullptr, out.data(), a.size());
  EXPECT_EQ(out, (std::vector<int32_t>{0, 0, 0, 1, 0, 1, 1}));
  apply(ScalarOp::logical_or, DType::i32, a.data(), b.data(), nullptr, out.data(), a.size());
  EXPECT_EQ(out, (std::vector<int32_t>{0, 1, 1, 1, 1, 1, 1}));
  apply(ScalarOp::logical_not, DType::i32, a.data(), nullptr, nullptr, out.data(), a.size());
  EXPECT_EQ(out, (std::vector<int32_t>{1, 1, 0, 0, 1, 0, 0}));
}

template <class T>
void check_integers(DType type) {
  using U = std::make_unsigned_t<T>;
  const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  const std::vector<T> values = {0, 1, -1, 2, -7, 100, most, least, least + 1};
  for (T x : values)
    for (T y : values) {
      const auto result = [&](ScalarOp op) {
        T out = 99;
        apply(op, type, &x, &y, nullptr, &out, 1);
        return out;
      };
      EXPECT_EQ(result(ScalarOp::add), T(U(x) + U(y)));
      EXPECT_EQ(result(ScalarOp::sub), T(U(x) - U(y)));
      EXPECT_EQ(result(ScalarOp::mul), T(U(x) * U(y)));
      EXPECT_EQ(result(ScalarOp::div), y == 0 ? 0 : y == -1 ? T(U(0) - U(x)) : x / y);
      EXPECT_EQ(result(ScalarOp::min), std::min(x, y));
      EXPECT_EQ(result(ScalarOp::max), std::max(x, y));
      EXPECT_EQ(result(ScalarOp::neg), T(U(0) - U(x)));
      EXPECT_EQ(result(ScalarOp::abs), x < 0 ? T(U(0) - U(x)) : x);
      EXPECT_EQ(result(ScalarOp::sign), (x > 0) - (x < 0));
      EXPECT_EQ(result(ScalarOp::relu), std::max<T>(x, 0));
      EXPECT_EQ(result(ScalarOp::square), T(U(x) * U(x)));
      EXPECT_THROW(result(ScalarOp::exp), Error);
      EXPECT_THROW(result(ScalarOp::pow), Error);
    }
}

TEST(Elementwise, IntegersWrap) {
  check_integers<int32_t>(DType::i32);
  check_integers<int64_t>(DType::i64);
  float x = 0;
  EXPECT_THROW(apply(ScalarOp::add, DType::f16, &x, &x, nullptr, &x, 1), Error);
}

TEST(Elementwise, InPlaceAndAnyLength) {
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    for (size_t n = 0; n < 70; ++n) {
      std::vector<float> x(n + 1, 2.0f), y(n + 1, 3.0f);
      apply(ScalarOp::mul, DType::f32, x.data(), y.data(), nullptr, x.data(), n);
      apply(ScalarOp::gelu, DType::f32, y.data(), nullptr, nullptr, y.data(), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(x[i], 6.0f);
        ASSERT_FLOAT_EQ(y[i], 2.99595031f);
      }
      ASSERT_EQ(x[n], 2.0f);
      ASSERT_EQ(y[n], 3.0f);
    }
  }
}

TEST(Convert, EveryF16AndBf16BothWays) {
  std::vector<uint16_t> bits(65536), back(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    for (DType type : {DType::f16, DType::bf16}) {
      std::vector<float> wide(65536, kNaN);
      load(type, bits.data(), 1, DType::f32, wide.data(), wide.size());
      store(DType::f32, wide.data(), type, back.data(), wide.size());
      for (size_t i = 0; i < wide.size(); ++i) {
        const float wanted = type == DType::f16 ? f32_from_f16(bits[i]) : f32_from_bf16(bits[i]);
        if (std::isnan(wanted)) {
          ASSERT_TRUE(std::isnan(wide[i]));
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(wanted));
          ASSERT_EQ(back[i], bits[i]);
        }
      }
    }
  }
}

TEST(Convert, RoundingTo16BitsIsThatOfBase) {
  std::mt19937 random(fresh_seed());
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    std::vector<float> x = samples(random, 20011);
    for (size_t i = 0; i < 20000; ++i) {  // ties and their neighbours
      const float base = f32_from_f16(static_cast<uint16_t>(random()));
      const float next = std::bit_cast<float>(std::bit_cast<uint32_t>(base) + 0x1000u);
      x.push_back(next);
      x.push_back(std::nextafter(next, 0.0f));
    }
    std::vector<uint16_t> half(x.size(), 0xcdcd), brain(x.size(), 0xcdcd);
    store(DType::f32, x.data(), DType::f16, half.data(), x.size());
    store(DType::f32, x.data(), DType::bf16, brain.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(half[i], f16_from_f32(x[i])) << simd_target_name(target) << " " << x[i];
      ASSERT_EQ(brain[i], bf16_from_f32(x[i])) << simd_target_name(target) << " " << x[i];
    }
  }
}

TEST(Convert, NarrowingWrapsAndFloatsSaturate) {
  const std::vector<int32_t> ints = {0, 1, -1, 127, 128, 255, 256, -129, 70000};
  std::vector<int8_t> i8(ints.size());
  store(DType::i32, ints.data(), DType::i8, i8.data(), ints.size());
  EXPECT_EQ(i8, (std::vector<int8_t>{0, 1, -1, 127, -128, -1, 0, 127, 112}));
  const std::vector<float> floats = {0.9f, -0.9f,     300.0f,     -300.0f,
                                     kNaN, kInfinity, -kInfinity, 3e9f};
  std::vector<uint8_t> u8(floats.size());
  store(DType::f32, floats.data(), DType::u8, u8.data(), floats.size());
  EXPECT_EQ(u8, (std::vector<uint8_t>{0, 0, 255, 0, 0, 255, 0, 255}));
  std::vector<int32_t> i32(floats.size());
  convert_registers(DType::f32, floats.data(), DType::i32, i32.data(), floats.size());
  EXPECT_EQ(i32, (std::vector<int32_t>{0, 0, 300, -300, 0, INT32_MAX, INT32_MIN, INT32_MAX}));
  std::vector<int64_t> i64(floats.size());
  convert_registers(DType::f32, floats.data(), DType::i64, i64.data(), floats.size());
  EXPECT_EQ(i64, (std::vector<int64_t>{0, 0, 300, -300, 0, INT64_MAX, INT64_MIN, 3000000000}));
  std::vector<uint8_t> truth(floats.size(), 9);
  store(DType::f32, floats.data(), DType::b1, truth.data(), floats.size());
  EXPECT_EQ(truth, (std::vector<uint8_t>(floats.size(), 1)));
}

TEST(Convert, StridesAndRepeats) {
  const std::vector<int16_t> stored = {1, -2, 3, -4, 5};
  std::vector<float> to(3, kNaN);
  load(DType::i16, stored.data(), 2, DType::f32, to.data(), 3);
  EXPECT_EQ(to, (std::vector<float>{1, 3, 5}));
  load(DType::i16, stored.data() + 4, -2, DType::f32, to.data(), 3);
  EXPECT_EQ(to, (std::vector<float>{5, 3, 1}));
  load(DType::i16, stored.data() + 1, 0, DType::f32, to.data(), 3);
  EXPECT_EQ(to, (std::vector<float>{-2, -2, -2}));
  const std::vector<uint64_t> big = {UINT64_MAX, 5};
  std::vector<double> wide(2);
  load(DType::u64, big.data(), 1, DType::f64, wide.data(), 2);
  EXPECT_EQ(wide, (std::vector<double>{18446744073709551615.0, 5}));
  EXPECT_THROW(load(DType::i16, stored.data(), 1, DType::i8, to.data(), 1), Error);
}

}  // namespace
}  // namespace prism::cpu
