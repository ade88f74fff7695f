// Tests every arithmetic operation on edge values, against literals or an independent computation.
#include <cmath>
#include <limits>

#include "support/kernels/interpreter_testing.h"

namespace prism::interpreter_testing {
namespace {

using dsl::Value;
constexpr int32_t kMin = std::numeric_limits<int32_t>::min(),
                  kMax = std::numeric_limits<int32_t>::max();
constexpr uint32_t kUMax = 0xffffffffu;
const float kInf = std::numeric_limits<float>::infinity(),
            kNaN = std::numeric_limits<float>::quiet_NaN();

using I = std::vector<int32_t>;
using U = std::vector<uint32_t>;
using F = std::vector<float>;

std::vector<uint32_t> bits(const F& values) {
  U result;
  for (float value : values) result.push_back(std::bit_cast<uint32_t>(value));
  return result;
}

TEST(InterpreterArithmetic, IntegersWrap) {
  EXPECT_EQ(each<int32_t>([](Value a, Value b) { return a + b; }, I{kMax, -1, 5}, I{1, kMin, -7}),
            (I{kMin, kMax, -2}));
  EXPECT_EQ(each<int32_t>([](Value a, Value b) { return a - b; }, I{kMin, 0}, I{1, kMin}),
            (I{kMax, kMin}));
  EXPECT_EQ(
      each<int32_t>([](Value a, Value b) { return a * b; }, I{kMin, 65536, -3}, I{-1, 65536, 7}),
      (I{kMin, 0, -21}));
  EXPECT_EQ(
      each<uint32_t>([](Value a, Value b) { return a * b; }, U{kUMax, 0x10001}, U{kUMax, 0x10001}),
      (U{1, 0x20001}));
  EXPECT_EQ(each<int32_t>([](Value a) { return -a; }, I{kMin, 3, 0}), (I{kMin, -3, 0}));
  EXPECT_EQ(each<int32_t>([](Value a) { return abs(a); }, I{kMin, -3, 4}), (I{kMin, 3, 4}));
  EXPECT_EQ(each<uint32_t>([](Value a) { return -a; }, U{1, 0}), (U{kUMax, 0}));
  EXPECT_EQ((each<int64_t>([](Value a, Value b) { return a + b; }, std::vector<int64_t>{INT64_MAX},
                           std::vector<int64_t>{1})),
            (std::vector<int64_t>{INT64_MIN}));
  EXPECT_EQ(
      (each<uint64_t>([](Value a, Value b) { return a * b; },
                      std::vector<uint64_t>{1ull << 63, 1ull << 32}, std::vector<uint64_t>{2, 3})),
      (std::vector<uint64_t>{0, 3ull << 32}));
}

TEST(InterpreterArithmetic, Division) {
  const I a{7, -7, 7, -7, kMin, kMin, 5, 0, kMin}, b{2, 2, -2, -2, -1, 1, 0, 0, 0};
  EXPECT_EQ(each<int32_t>([](Value x, Value y) { return div_trunc(x, y); }, a, b),
            (I{3, -3, -3, 3, kMin, kMin, 0, 0, 0}));
  EXPECT_EQ(each<int32_t>([](Value x, Value y) { return rem_trunc(x, y); }, a, b),
            (I{1, -1, 1, -1, 0, 0, 5, 0, kMin}));
  EXPECT_EQ(each<int32_t>([](Value x, Value y) { return div_floor(x, y); }, a, b),
            (I{3, -4, -4, 3, kMin, kMin, 0, 0, 0}));
  EXPECT_EQ(each<int32_t>([](Value x, Value y) { return mod_floor(x, y); }, a, b),
            (I{1, 1, -1, -1, 0, 0, 5, 0, kMin}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x / y; }, U{kUMax, 9, 9}, U{2, 0, 10}),
            (U{0x7fffffff, 0, 0}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x % y; }, U{kUMax, 9, 9}, U{2, 0, 10}),
            (U{1, 9, 9}));
  EXPECT_EQ((each<int64_t>([](Value x, Value y) { return div_floor(x, y); },
                           std::vector<int64_t>{INT64_MIN, -7, 1}, std::vector<int64_t>{-1, 3, 0})),
            (std::vector<int64_t>{INT64_MIN, -3, 0}));
}

TEST(InterpreterArithmetic, DivisionByKnownPowersOfTwo) {
  const U x{0, 1, 31, 32, 33, kUMax};
  EXPECT_EQ(each<uint32_t>([](Value a) { return a / 32u * 1000u + a % 32u; }, x),
            (U{0, 1, 31, 1000, 1001, (kUMax / 32) * 1000 + 31}));
  EXPECT_EQ(each<uint32_t>([](Value a) { return a / 1u - a % 1u; }, x), x);
  EXPECT_EQ(each<uint32_t>([](Value a) { return a / 0u + a % 0u; }, x), x);
  EXPECT_EQ(each<uint32_t>(
                [](Value a) { return div_floor(a, 0x80000000u) + mod_floor(a, 0x80000000u); }, x),
            (U{0, 1, 31, 32, 33, 0x80000000u}));
  EXPECT_EQ(each<int32_t>([](Value a) { return div_trunc(a, 4) * 100 + rem_trunc(a, 4); },
                          I{-7, 7, kMin}),
            (I{-103, 103, static_cast<int32_t>(static_cast<uint32_t>(kMin / 4) * 100u)}));
}

TEST(InterpreterArithmetic, HighHalves) {
  EXPECT_EQ(each<uint32_t>([](Value a, Value b) { return mul_high(a, b); },
                           U{kUMax, 0x80000000u, 3}, U{kUMax, 4, 5}),
            (U{0xfffffffe, 2, 0}));
  EXPECT_EQ(each<int32_t>([](Value a, Value b) { return mul_high(a, b); }, I{kMin, -1, kMin},
                          I{kMin, 1, 2}),
            (I{0x40000000, -1, -1}));
}

TEST(InterpreterArithmetic, FloatsRoundOnce) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: a separate product rounds the last term away, fma keeps it.
  const float x = 1 + 0x1p-12f;
  const F c{-(1 + 0x1p-11f)};
  EXPECT_EQ(each<float>([](Value a, Value b, Value d) { return a * b + d; }, F{x}, F{x}, c),
            (F{0}));
  EXPECT_EQ(each<float>([](Value a, Value b, Value d) { return fma(a, b, d); }, F{x}, F{x}, c),
            (F{0x1p-24f}));
  EXPECT_EQ((each<double>([](Value a, Value b, Value d) { return fma(a, b, d); },
                          std::vector<double>{1 + 0x1p-30}, std::vector<double>{1 + 0x1p-30},
                          std::vector<double>{-(1 + 0x1p-29)})),
            (std::vector<double>{0x1p-60}));
  EXPECT_EQ(
      bits(each<float>([](Value a, Value b) { return a / b; }, F{1, -1, 0, 1}, F{0, 0, 0, 3}))[3],
      std::bit_cast<uint32_t>(1.0f / 3.0f));
  const F q = each<float>([](Value a, Value b) { return a / b; }, F{1, -1, 0}, F{0, 0, 0});
  EXPECT_EQ(q[0], kInf);
  EXPECT_EQ(q[1], -kInf);
  EXPECT_TRUE(std::isnan(q[2]));
  EXPECT_EQ(
      each<float>([](Value a, Value b) { return a - b; }, F{1e30f, 0x1p-149f}, F{1, 0x1p-148f}),
      (F{1e30f, -0x1p-149f}));
}

TEST(InterpreterArithmetic, MinAndMaxFollowTheirFormula) {
  const F a{1, kNaN, 1, -0.0f, 0.0f, -kInf}, b{2, 1, kNaN, 0.0f, -0.0f, 5};
  // min(a,b) = b<a ? b : a, so a comparison with NaN, or of the two zeros, gives a.
  EXPECT_EQ(bits(each<float>([](Value x, Value y) { return min(x, y); }, a, b)),
            bits(F{1, kNaN, 1, -0.0f, 0.0f, -kInf}));
  EXPECT_EQ(bits(each<float>([](Value x, Value y) { return max(x, y); }, a, b)),
            bits(F{2, kNaN, 1, -0.0f, 0.0f, 5}));
  EXPECT_EQ(each<int32_t>([](Value x, Value y) { return min(x, y); }, I{kMin, 3}, I{kMax, -3}),
            (I{kMin, -3}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return max(x, y); }, U{kUMax, 3}, U{1, 4}),
            (U{kUMax, 4}));
}

TEST(InterpreterArithmetic, SignsAndRounding) {
  EXPECT_EQ(bits(each<float>([](Value a) { return -a; }, F{0.0f, -0.0f, 2})),
            bits(F{-0.0f, 0.0f, -2}));
  EXPECT_EQ(bits(each<float>([](Value a) { return abs(a); }, F{-0.0f, -kInf})),
            bits(F{0.0f, kInf}));
  const F x{-1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 0x1p30f, -0.25f};
  EXPECT_EQ(bits(each<float>([](Value a) { return floor(a); }, x)),
            bits(F{-2, -1, 0, 1, 2, 0x1p30f, -1}));
  EXPECT_EQ(bits(each<float>([](Value a) { return ceil(a); }, x)),
            bits(F{-1, -0.0f, 1, 2, 3, 0x1p30f, -0.0f}));
  EXPECT_EQ(bits(each<float>([](Value a) { return trunc(a); }, x)),
            bits(F{-1, -0.0f, 0, 1, 2, 0x1p30f, -0.0f}));
  EXPECT_EQ(bits(each<float>([](Value a) { return round_even(a); }, x)),
            bits(F{-2, -0.0f, 0, 2, 2, 0x1p30f, -0.0f}));
  EXPECT_EQ(each<float>([](Value a) { return sqrt(a); }, F{2, 0, kInf}),
            (F{std::sqrt(2.0f), 0, kInf}));
}

TEST(InterpreterArithmetic, Bits) {
  EXPECT_EQ(each<uint32_t>([](Value a, Value b) { return a & b; }, U{0xff00ff00}, U{0x0ff00ff0}),
            (U{0x0f000f00}));
  EXPECT_EQ(each<uint32_t>([](Value a, Value b) { return a | b; }, U{0xff00ff00}, U{0x0ff00ff0}),
            (U{0xfff0fff0}));
  EXPECT_EQ(each<uint32_t>([](Value a, Value b) { return a ^ b; }, U{0xff00ff00}, U{0x0ff00ff0}),
            (U{0xf0f0f0f0}));
  EXPECT_EQ(each<int32_t>([](Value a) { return ~a; }, I{0, -1}), (I{-1, 0}));
  EXPECT_EQ(
      each<uint32_t>([](Value a, Value b) { return a << b; }, U{1, 1, 1, 3}, U{31, 32, 33, 31}),
      (U{0x80000000, 1, 2, 0x80000000}));
  EXPECT_EQ(
      each<uint32_t>([](Value a, Value b) { return a >> b; }, U{0x80000000, 8, 8}, U{31, 32, 35}),
      (U{1, 8, 1}));
  EXPECT_EQ(each<int32_t>([](Value a, Value b) { return a >> b; }, I{kMin, -8, -8}, I{31, 32, 1}),
            (I{-1, -8, -4}));
  EXPECT_EQ((each<int64_t>([](Value a, Value b) { return a >> b; },
                           std::vector<int64_t>{INT64_MIN, -2}, std::vector<int64_t>{63, 64})),
            (std::vector<int64_t>{-1, -2}));
  EXPECT_EQ(each<uint32_t>([](Value a, Value o, Value c) { return extract_bits(a, o, c); },
                           U{0xdeadbeef, 0xdeadbeef, 5, 0xdeadbeef, 0x80000000}, U{8, 0, 3, 28, 31},
                           U{8, 32, 0, 4, 1}),
            (U{0xbe, 0xdeadbeef, 0, 0xd, 1}));
  EXPECT_EQ(
      each<int32_t>([](Value a, Value o,
                       Value c) { return extract_bits(a, cast(dsl::u32, o), cast(dsl::u32, c)); },
                    I{0xbe00, -5, 7, kMin}, I{8, 0, 2, 31}, I{8, 32, 0, 1}),
      (I{-66, -5, 0, -1}));
  EXPECT_EQ(each<uint32_t>(
                [](Value a, Value i, Value o, Value c) { return insert_bits(a, i, o, c); },
                U{0xffffffff, 0, 7, 0}, U{0, 0xfff, 9, 0xabcdef01}, U{8, 4, 0, 0}, U{8, 8, 0, 32}),
            (U{0xffff00ff, 0xff0, 7, 0xabcdef01}));
  EXPECT_EQ(
      each<uint32_t>([](Value a) { return popcount(a); }, U{0, kUMax, 0x80000001, 0x12345678}),
      (U{0, 32, 2, 13}));
  EXPECT_EQ(
      each<uint32_t>([](Value a) { return count_leading_zeros(a); }, U{0, 1, kUMax, 0x00010000}),
      (U{32, 31, 0, 15}));
}

TEST(InterpreterArithmetic, Comparisons) {
  const F a{1, 2, 2, kNaN, 0.0f}, b{2, 1, 2, kNaN, -0.0f};
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x < y; }, a, b), (U{1, 0, 0, 0, 0}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x <= y; }, a, b), (U{1, 0, 1, 0, 1}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x > y; }, a, b), (U{0, 1, 0, 0, 0}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x >= y; }, a, b), (U{0, 1, 1, 0, 1}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x == y; }, a, b), (U{0, 0, 1, 0, 1}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x != y; }, a, b), (U{1, 1, 0, 1, 0}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x < y; }, I{kMin, -1}, I{0, 1}),
            (U{1, 1}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return x < y; }, U{0x80000000, kUMax}, U{0, 1}),
            (U{0, 0}));
  EXPECT_EQ(each<uint32_t>([](Value x, Value y) { return (x < y && x != 0u) || !(y == 7u); },
                           U{0, 1, 9}, U{7, 7, 1}),
            (U{0, 1, 1}));
  EXPECT_EQ(each<float>([](Value x, Value y) { return select(x < y, x, y); }, a, F{2, 1, 2, 3, 1}),
            (F{1, 1, 2, 3, 0}));
  EXPECT_EQ(each<uint32_t>([](Value x) { return is_nan(x); }, F{kNaN, kInf, 0}), (U{1, 0, 0}));
}

TEST(InterpreterArithmetic, Vectors) {
  EXPECT_EQ(each<float>(
                [](Value a, Value b) {
                  const Value v = dsl::vec(a, b, a + b, 3.0f) * 2.0f;
                  const Value chosen = select(a < b, v, dsl::splat(1.0f, 4));
                  return chosen[0] + chosen[1] * 10.0f + chosen[2] * 100.0f + chosen[3] * 1000.0f;
                },
                F{1, 5}, F{2, 3}),
            (F{2 + 40 + 600 + 6000, 1111}));
}

// Lowered forms require operands in range, but inactive lanes must not trap.
TEST(InterpreterArithmetic, LoweredForms) {
  Kernel kernel = dsl::kernel("plain", 32, [] {
    using namespace dsl;
    const In a = in("a", i32), b = in("b", i32);
    const Array y = out("y", i32);
    const Value i = local_id();
    if_(b[i] != 0, [&] {
      const Value q = div_trunc(a[i], b[i]), s = a[i] << b[i], r = a[i] >> b[i],
                  c = cast(i32, cast(f32, a[i]) * 1.5f);
      y[i] = q + s * 1000 + r * 1000000 + c;
    });
  });
  for (ir::Inst& inst : kernel.body.body)
    for (ir::Block& block : inst.blocks)
      for (ir::Inst& inner : block.body) {
        if (inner.op == ir::Op::div_trunc) inner.op = ir::Op::div_plain;
        if (inner.op == ir::Op::shl) inner.op = ir::Op::shl_plain;
        if (inner.op == ir::Op::shr) inner.op = ir::Op::shr_plain;
        if (inner.op == ir::Op::cast && inner.type.element == DType::i32)
          inner.op = ir::Op::cast_plain;
      }
  I a(32), b(32), expected(32, -1);
  for (int32_t i = 0; i < 32; ++i) {
    a[static_cast<size_t>(i)] = 100 + i;
    b[static_cast<size_t>(i)] = i % 3;
    if (i % 3)
      expected[static_cast<size_t>(i)] = (100 + i) / (i % 3) + ((100 + i) << (i % 3)) * 1000 +
                                         ((100 + i) >> (i % 3)) * 1000000 + (100 + i) * 3 / 2;
  }
  EXPECT_EQ(run(kernel, 1, I(32, -1), {host(a), host(b)}), expected);
}

}  // namespace
}  // namespace prism::interpreter_testing
