// Tests conversions, packing, 16-bit floats and math functions against prism/dtype.h, the C library
// and literals.
#include <cmath>
#include <limits>

#include "ir/interpreter/interpreter_half.h"
#include "support/kernels/interpreter_testing.h"

namespace prism::interpreter_testing {
namespace {

using dsl::Value;
using I = std::vector<int32_t>;
using U = std::vector<uint32_t>;
using F = std::vector<float>;
constexpr int32_t kMin = std::numeric_limits<int32_t>::min(),
                  kMax = std::numeric_limits<int32_t>::max();
const float kInf = std::numeric_limits<float>::infinity(),
            kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(InterpreterConvert, FloatToIntegerSaturates) {
  const F x{1.9f,  -1.9f, 3e9f,          -3e9f,          5e9f,  kInf,
            -kInf, kNaN,  2147483648.0f, -2147483648.0f, -0.5f, 4294967040.0f};
  EXPECT_EQ(each<int32_t>([](Value a) { return cast(dsl::i32, a); }, x),
            (I{1, -1, kMax, kMin, kMax, kMax, kMin, 0, kMax, kMin, 0, kMax}));
  EXPECT_EQ(each<uint32_t>([](Value a) { return cast(dsl::u32, a); }, x),
            (U{1, 0, 3000000000u, 0, 0xffffffff, 0xffffffff, 0, 0, 0x80000000, 0, 0, 4294967040u}));
  EXPECT_EQ(each<int64_t>([](Value a) { return cast(dsl::i64, a); }, F{1e19f, -1e19f, kNaN, -2.5f}),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, -2}));
  EXPECT_EQ(each<uint64_t>([](Value a) { return cast(dsl::u64, a); }, F{2e19f, -1, kNaN, 0x1p63f}),
            (std::vector<uint64_t>{UINT64_MAX, 0, 0, 1ull << 63}));
  EXPECT_EQ((each<int32_t>([](Value a) { return cast(dsl::i32, a); },
                           std::vector<double>{2147483647.9, -2147483648.9, 1e300})),
            (I{kMax, kMin, kMax}));
}

TEST(InterpreterConvert, IntegersAndBooleans) {
  EXPECT_EQ(each<uint32_t>([](Value a) { return cast(dsl::u32, a); }, I{-1, kMin}),
            (U{0xffffffff, 0x80000000}));
  EXPECT_EQ(each<int64_t>([](Value a) { return cast(dsl::i64, a); }, I{-1}),
            (std::vector<int64_t>{-1}));
  EXPECT_EQ(each<int64_t>([](Value a) { return cast(dsl::i64, a); }, U{0xffffffff}),
            (std::vector<int64_t>{0xffffffff}));
  EXPECT_EQ((each<uint32_t>([](Value a) { return cast(dsl::u32, a); },
                            std::vector<int64_t>{-1, 1ll << 33})),
            (U{0xffffffff, 0}));
  EXPECT_EQ(
      each<float>([](Value a) { return cast(dsl::f32, a); }, U{0xffffffff, 16777217, 16777219}),
      (F{0x1p32f, 16777216, 16777220}));
  EXPECT_EQ(each<float>([](Value a) { return cast(dsl::f32, a); }, I{kMin, -16777217}),
            (F{-0x1p31f, -16777216}));
  EXPECT_EQ(each<uint32_t>([](Value a) { return cast(dsl::b1, a); }, F{0, -0.0f, kNaN, 0.5f}),
            (U{0, 0, 1, 1}));
  EXPECT_EQ(each<float>([](Value a) { return cast(dsl::f32, a < 3u); }, U{2, 3}), (F{1, 0}));
}

TEST(InterpreterConvert, Bitcasts) {
  EXPECT_EQ(each<uint32_t>([](Value a) { return bitcast(dsl::u32, a); }, F{1, -0.0f}),
            (U{0x3f800000, 0x80000000}));
  EXPECT_EQ(each<float>([](Value a) { return bitcast(dsl::f32, a); }, I{0x40000000}), (F{2}));
  EXPECT_EQ(each<uint64_t>([](Value a, Value b) { return bitcast(dsl::u64, dsl::vec(a, b)); }, U{1},
                           U{2}),
            (std::vector<uint64_t>{0x200000001}));
  EXPECT_EQ((each<uint32_t>(
                [](Value a) {
                  return bitcast(dsl::Type{dsl::u32, 2}, a)[1];
                },
                std::vector<double>{-1})),
            (U{0xbff00000}));
  EXPECT_EQ(each<uint32_t>(
                [](Value a) {
                  return bitcast(dsl::u32, dsl::vec(cast(dsl::f16, a), cast(dsl::f16, a * 2.0f)));
                },
                F{1}),
            (U{0x40003c00}));
}

// The branch-free conversions agree with prism/dtype.h for every kind of value, and
// half_bits_of_double rounds once.
TEST(InterpreterConvert, SixteenBitFloatsOfEveryKind) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    EXPECT_EQ(std::bit_cast<uint32_t>(ir::vm::half_value(b)),
              std::bit_cast<uint32_t>(f32_from_f16(static_cast<uint16_t>(b))));
    EXPECT_EQ(std::bit_cast<uint32_t>(ir::vm::brain_value(b)),
              std::bit_cast<uint32_t>(f32_from_bf16(static_cast<uint16_t>(b))));
  }
  for (uint64_t b = 0; b < 0x100000000; b += 4099) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(b));
    ASSERT_EQ(ir::vm::half_bits(x), f16_from_f32(x)) << x;
    ASSERT_EQ(ir::vm::brain_bits(x), bf16_from_f32(x)) << x;
    ASSERT_EQ(ir::vm::half_bits_of_double(static_cast<double>(x)), f16_from_f32(x)) << x;
  }
  // Just above the midpoint of 1 and the next f16; as f32 it is the midpoint itself.
  EXPECT_EQ(ir::vm::half_bits_of_double(1 + 0x1p-11 + 0x1p-40), 0x3c01u);
  EXPECT_EQ(ir::vm::half_bits_of_double(1 + 0x1p-11 - 0x1p-40), 0x3c00u);
  EXPECT_EQ(ir::vm::half_bits_of_double(-(1 + 0x1p-11 + 0x1p-40)), 0xbc01u);
}

TEST(InterpreterConvert, PackedHalves) {
  // Ties to even, the largest value, overflow, subnormals, the smallest and half of it.
  const F x{1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65504,      65520, 65519,
            0x1p-24f,     0x1p-25f,         0x1.8p-24f, -0.0f, -kInf};
  EXPECT_EQ(each<uint32_t>([](Value a) { return pack_f16(dsl::vec(a, -a)) & 0xffffu; }, x),
            (U{0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x7bff, 1, 0, 2, 0x8000, 0xfc00}));
  EXPECT_EQ(each<uint32_t>([](Value a) { return pack_f16(dsl::vec(0.0f, a)); }, F{1}),
            (U{0x3c000000}));
  EXPECT_EQ(each<float>(
                [](Value a) {
                  const Value v = unpack_f16(a);
                  return v[0] + v[1] * 4.0f;
                },
                U{0x3c004000, 0x00010000}),
            (F{6, 0x1p-22f}));
}

TEST(InterpreterConvert, HalfArithmetic) {
  // 2048 + 1 is a tie in f16 and goes to even; fma of f16 rounds once.
  const auto h = [](Value a) { return cast(dsl::f16, a); };
  EXPECT_EQ(each<float>([&](Value a, Value b) { return cast(dsl::f32, h(a) + h(b)); },
                        F{2048, 2050, 60000}, F{1, 1, 60000}),
            (F{2048, 2052, kInf}));
  EXPECT_EQ(each<float>([&](Value a, Value b) { return cast(dsl::f32, h(a) / h(b)); }, F{1}, F{3}),
            (F{f32_from_f16(f16_from_f32(1.0f / 3.0f))}));
  EXPECT_EQ(
      each<float>([&](Value a, Value b, Value c) { return cast(dsl::f32, fma(h(a), h(b), h(c))); },
                  F{1 + 0x1p-10f}, F{1 + 0x1p-10f}, F{-(1 + 0x1p-9f)}),
      (F{0x1p-20f}));
  EXPECT_EQ(each<uint32_t>([&](Value a, Value b) { return h(a) < h(b); }, F{1}, F{1 + 0x1p-12f}),
            (U{0}));
  EXPECT_EQ((each<float>([](Value a) { return cast(dsl::f32, cast(dsl::f16, a)); },
                         std::vector<double>{1 + 0x1p-11 + 0x1p-40})),
            (F{1 + 0x1p-10f}));
}

TEST(InterpreterConvert, PackedBytes) {
  const U x{0x80ff7f01};
  EXPECT_EQ(each<int32_t>(
                [](Value a) {
                  const Value v = unpack_i8(a);
                  return v[0] + v[1] * 1000 + v[2] * 1000000 + v[3] * 7;
                },
                x),
            (I{1 + 127000 - 1000000 - 128 * 7}));
  EXPECT_EQ(each<uint32_t>(
                [](Value a) {
                  const Value v = unpack_u8(a);
                  return v[0] + v[1] * 1000u + v[2] * 1000000u + v[3] * 7u;
                },
                x),
            (U{1 + 127000 + 255000000 + 128 * 7}));
  EXPECT_EQ(each<uint32_t>([](Value a) { return pack_8(unpack_u8(a)); }, x), x);
  EXPECT_EQ(each<uint32_t>([](Value a) { return pack_8(dsl::vec(a, a, a, a)); }, I{-2}),
            (U{0xfefefefe}));
  EXPECT_EQ(
      each<int32_t>([](Value a, Value b,
                       Value c) { return dot4_i8(bitcast(dsl::u32, a), bitcast(dsl::u32, b), c); },
                    I{static_cast<int32_t>(0x80808080), 0x01020304},
                    I{static_cast<int32_t>(0x80808080), 0x01010101}, I{kMax, -10}),
      (I{static_cast<int32_t>(0x7fffffffu + 65536u), 0}));
  EXPECT_EQ(each<uint32_t>([](Value a, Value b, Value c) { return dot4_u8(a, b, c); },
                           U{0xffffffff}, U{0xffffffff}, U{5}),
            (U{4 * 65025 + 5}));
}

// Within one unit in the last place of the C library's f64 result; most are the nearest f32.
void expect_close(const F& x, const F& y, double (*exact)(double), const char* name) {
  int nearest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = exact(static_cast<double>(x[i]));
    const float rounded = static_cast<float>(wanted);
    if (std::isnan(rounded)) {
      EXPECT_TRUE(std::isnan(y[i])) << name << "(" << x[i] << ")";
      ++nearest;
      continue;
    }
    if (y[i] == rounded && std::signbit(y[i]) == std::signbit(rounded))
      ++nearest;
    else
      EXPECT_TRUE(y[i] == std::nextafter(rounded, y[i]))
          << name << "(" << x[i] << ") = " << y[i] << ", not " << rounded;
  }
  EXPECT_GE(nearest, static_cast<int>(x.size()) - 1) << name;
}

TEST(InterpreterConvert, Functions) {
  F x{0.0f, -0.0f,  1,      -1,          kInf, -kInf, kNaN,   88.7f,  88.8f, -87,    -103,
      -104, 1e-30f, 1e-40f, 3.14159265f, 1e6f, 1e30f, 0.019f, 0.021f, 9,     127.9f, -149};
  for (int i = 0; i < 500; ++i)
    x.push_back(std::sin(static_cast<float>(i) * 12.9898f) *
                std::exp2(static_cast<float>(i % 40 - 20)));
  expect_close(
      x, each<float>([](Value a) { return exp(a); }, x), [](double a) { return std::exp(a); },
      "exp");
  expect_close(
      x, each<float>([](Value a) { return exp2(a); }, x), [](double a) { return std::exp2(a); },
      "exp2");
  expect_close(
      x, each<float>([](Value a) { return log(a); }, x), [](double a) { return std::log(a); },
      "log");
  expect_close(
      x, each<float>([](Value a) { return log2(a); }, x), [](double a) { return std::log2(a); },
      "log2");
  expect_close(
      x, each<float>([](Value a) { return sin(a); }, x), [](double a) { return std::sin(a); },
      "sin");
  expect_close(
      x, each<float>([](Value a) { return cos(a); }, x), [](double a) { return std::cos(a); },
      "cos");
  expect_close(
      x, each<float>([](Value a) { return tanh(a); }, x), [](double a) { return std::tanh(a); },
      "tanh");
  expect_close(
      x, each<float>([](Value a) { return rsqrt(a); }, x),
      [](double a) { return 1 / std::sqrt(a); }, "rsqrt");
  EXPECT_EQ((each<double>([](Value a) { return exp(a) + tanh(a); }, std::vector<double>{0.5})),
            (std::vector<double>{std::exp(0.5) + std::tanh(0.5)}));
}

}  // namespace
}  // namespace prism::interpreter_testing
