// Tests lowered matrix fragments against the interpreter's native fragments.
#include <gtest/gtest.h>

#include <span>

#include "lower/lower.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "support/kernels/lowering.h"

namespace prism {
namespace {

using namespace dsl;
using namespace test;
using ir::Capabilities;

// Small integers: products and sums are exact in any order.
std::vector<std::byte> small_numbers(DType type, size_t count, uint32_t seed) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < count; ++i) {
    const int number = static_cast<int>((i * 2654435761u + seed * 97u) >> 20 & 7) - 3;
    const uint16_t bits = type == DType::i8    ? static_cast<uint8_t>(number)
                          : type == DType::f16 ? f16_from_f32(static_cast<float>(number))
                                               : bf16_from_f32(static_cast<float>(number));
    for (size_t b = 0; b < dtype_bytes(type); ++b)
      bytes.push_back(static_cast<std::byte>(bits >> (8 * b)));
  }
  return bytes;
}

Capabilities without_fragments(uint32_t subgroup) {
  Capabilities caps = full_capabilities();
  caps.fragments.clear();
  caps.subgroup_size = subgroup;
  return caps;
}

struct Shape {
  DType operand;
  FragmentSize size;
};
const Shape kShapes[] = {{f16, {16, 16, 16}}, {bf16, {16, 16, 16}}, {i8, {16, 16, 32}},
                         {f16, {8, 32, 16}},  {f16, {8, 8, 8}},     {i8, {5, 6, 7}}};

// Every subgroup of the group multiplies its own rows, in both layouts; the result is also written
// through shared memory.
Kernel product(const Shape& shape, uint32_t lanes, uint32_t subgroups) {
  return kernel("product", lanes, [&] {
    const uint32_t m = shape.size.m, n = shape.size.n, k = shape.size.k;
    const DType sum_type = widened(shape.operand);
    const auto a = in("a", shape.operand), b = in("b", shape.operand);
    const auto c = inout("c", sum_type);
    const auto y = out("y", sum_type);
    const auto tile = shared(sum_type, subgroups * m * n);
    const auto fa = fragment_a(shape.operand, shape.size);
    const auto fb = fragment_b(shape.operand, shape.size);
    const auto sum = accumulator(sum_type, shape.size);
    const Value which = subgroup_id(), at = which * (m * n);
    sum.load(c, at, n);
    for_(2u, [&](Value step) {
      fa.load(a, which * (2 * m * k) + step * k, 2 * k);
      fb.load(b, step * (k * n), k, Layout::column_major);
      sum.multiply(fa, fb);
    });
    sum.store(tile, at, m, Layout::column_major);
    sum.store(c, at, n);
    barrier();
    for_(local_id(), subgroups * m * n, lanes, [&](Value i) { y[i] = tile.load(i); });
  });
}

TEST(LowerFragments, ProductsOfEveryShape) {
  for (const Shape& shape : kShapes)
    for (uint32_t subgroup : {0u, 8u, 16u, 32u, 64u}) {
      const uint32_t lanes = 128, subgroups = lanes / (subgroup ? subgroup : 32);
      const uint32_t m = shape.size.m, n = shape.size.n, k = shape.size.k;
      std::vector<std::byte> c(subgroups * m * n * 4);
      const Launch launch{{1, 1, 1},
                          {},
                          {small_numbers(shape.operand, subgroups * m * 2 * k, 1),
                           small_numbers(shape.operand, 2 * k * n, 2), c, c}};
      expect_same_when_lowered(product(shape, lanes, subgroups), launch,
                               without_fragments(subgroup));
    }
}

TEST(LowerFragments, StayWhereTheDeviceHasTheShape) {
  EXPECT_EQ(
      count_ops(lower(product(kShapes[0], 128, 4), full_capabilities()), ir::Op::fragment_multiply),
      1u);
  EXPECT_EQ(
      count_ops(lower(product(kShapes[3], 128, 4), full_capabilities()), ir::Op::fragment_multiply),
      0u);
  Capabilities no_layout = full_capabilities();
  no_layout.fragment_layout = false;
  EXPECT_EQ(count_ops(lower(product(kShapes[0], 128, 4), no_layout), ir::Op::fragment_multiply),
            1u);
}

// The pattern of attention: a product, its rows reduced and mapped, and the result as the next
// operand.
TEST(LowerFragments, MapRowReduceAndConvert) {
  const Kernel k = kernel("attention", 64, [] {
    const auto a = in("a", f16), b = in("b", f16);
    const auto y = out("y", f32);
    const auto fa = fragment_a(f16), next = fragment_a(f16);
    const auto fb = fragment_b(f16);
    const auto scores = accumulator(f32), most = accumulator(f32), sums = accumulator(f32),
               result = accumulator(f32);
    scores.fill(0.5f);
    fa.load(a, subgroup_id() * 256u, 16u);
    fb.load(b, 0u, 16u);
    scores.multiply(fa, fb);
    most.row_reduce(ReduceOp::max, scores);
    scores.map({scores, most}, [](const std::vector<Value>& x, Value row, Value column) {
      return select(column <= row, (x[1] - x[0]) * 0.5f, constant(f32, 2.0));
    });
    sums.row_reduce(ReduceOp::add, scores);
    next.convert(scores);
    result.fill(0.0f);
    result.multiply(next, fb);
    result.map([](Value x, Value row, Value column) { return x + cast(f32, row * 16u + column); });
    result.map({result, sums},
               [](const std::vector<Value>& x, Value, Value) { return x[0] * 2.0f + x[1]; });
    result.store(y, subgroup_id() * 256u, 16u);
  });
  for (uint32_t subgroup : {0u, 8u, 16u, 32u, 64u}) {
    const uint32_t subgroups = 64 / (subgroup ? subgroup : 32);
    expect_same_when_lowered(k,
                             {{1, 1, 1},
                              {},
                              {small_numbers(f16, subgroups * 256, 3), small_numbers(f16, 256, 4),
                               std::vector<std::byte>(subgroups * 1024)}},
                             without_fragments(subgroup));
  }
}

std::vector<std::byte> words(size_t count) {
  const std::vector<uint32_t> all = awkward_words(count);
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

// Operands made from packed words: 4-bit codes times a scale for each row.
Kernel made_operands(DType element, uint32_t lanes) {
  return kernel("made", lanes, [&] {
    const auto codes = in("codes", u32);
    const auto scales = in("scales", f16);
    const auto b = in("b", element);
    const auto y = out("y", f32);
    const auto fa = fragment_a(element), other = fragment_a(element);
    const auto fb = fragment_b(element);
    const auto sum = accumulator(f32);
    sum.fill(0.0f);
    fb.load(b, 0u, 16u);
    const auto make = [&](const Fragment& to, uint32_t start) {
      to.make([&](Value row, Value k) {
        const Value word = codes.load(subgroup_id() * 64u + start + row * 2u + k / 8u);
        const auto value = [&](Value i) {
          return cast(f32, bitcast(i32, (word >> (i % 8u * 4u)) & 15u)) * scales.load(row);
        };
        if (element == f16) return pack_f16(vec(value(k), value(k + 1u)));
        return (bitcast(u32, value(k)) >> 16u) | (bitcast(u32, value(k + 1u)) & 0xFFFF0000u);
      });
    };
    make(fa, 0);
    make(other, 32);
    sum.multiply(fa, fb);
    sum.multiply(other, fb);
    make(fa, 32);
    sum.multiply(fa, fb);
    sum.store(y, subgroup_id() * 256u, 16u);
  });
}

TEST(LowerFragments, MadeOperands) {
  for (const DType element : {f16, bf16})
    for (uint32_t subgroup : {0u, 8u, 32u, 64u}) {
      const uint32_t subgroups = 64 / (subgroup ? subgroup : 32);
      const Launch launch{
          {1, 1, 1},
          {},
          {words(subgroups * 64), small_numbers(f16, 16, 6), small_numbers(element, 256, 7),
           std::vector<std::byte>(subgroups * 1024)}};
      expect_same_when_lowered(made_operands(element, 64), launch, without_fragments(subgroup));
    }
}

TEST(LowerFragments, MadeOperandsAreStagedWithoutALayout) {
  Capabilities no_layout = full_capabilities();
  no_layout.fragment_layout = false;
  const Kernel staged = lower(made_operands(f16, 64), no_layout);
  EXPECT_EQ(count_ops(staged, ir::Op::fragment_make), 0u);
  EXPECT_EQ(count_ops(staged, ir::Op::fragment_multiply), 3u);
  EXPECT_EQ(count_ops(lower(made_operands(f16, 64), full_capabilities()), ir::Op::fragment_make),
            3u);
  const Launch launch{{1, 1, 1},
                      {},
                      {words(128), small_numbers(f16, 16, 6), small_numbers(f16, 256, 7),
                       std::vector<std::byte>(2048)}};
  expect_same_when_lowered(made_operands(f16, 64), launch, no_layout);
}

TEST(LowerFragments, RowsOfTwoShapesInOneKernel) {
  const Kernel k = kernel("two_shapes", 64, [] {
    const auto y = out("y", f32);
    const auto small = accumulator(f32, {8, 8, 8}), small_sum = accumulator(f32, {8, 8, 8});
    const auto large = accumulator(f32), large_sum = accumulator(f32);
    small.fill(1.0f);
    small.map([](Value x, Value row, Value column) { return x + cast(f32, row * column); });
    small_sum.row_reduce(ReduceOp::add, small);
    small_sum.store(y, subgroup_id() * 320u, 8u);
    large.fill(2.0f);
    large.map([](Value x, Value row, Value column) { return x + cast(f32, row ^ column); });
    large_sum.row_reduce(ReduceOp::max, large);
    large_sum.store(y, subgroup_id() * 320u + 64u, 16u);
  });
  for (uint32_t subgroup : {8u, 32u})
    expect_same_when_lowered(k, {{1, 1, 1}, {}, {std::vector<std::byte>(64 / subgroup * 1280)}},
                             without_fragments(subgroup));
}

TEST(LowerFragments, NeedWholeSubgroups) {
  const Kernel k = kernel("parts", 40, [] {
    const auto y = out("y", f32);
    const auto sum = accumulator(f32);
    sum.fill(1.0f);
    sum.store(y, 0u, 16u);
  });
  try {
    lower(k, without_fragments(0));
    ADD_FAILURE() << "40 lanes are no whole subgroups of 32";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("40 lanes are not a multiple of 32"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace prism
