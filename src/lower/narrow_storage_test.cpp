// Tests that narrow elements and f16 arithmetic give the same bits on devices without them.
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "prism/kernel.h"
#include "support/kernels/lowering.h"

namespace prism {
namespace {

using namespace dsl;
using namespace test;
using ir::Capabilities;

constexpr DType kNarrow[] = {DType::i8, DType::u8, DType::i16, DType::u16, DType::f16, DType::bf16};

// Every combination of storage features, as the bits of `which`.
Capabilities storage(uint32_t which) {
  Capabilities caps = full_capabilities();
  caps.storage_8 = which & 1;
  caps.storage_16 = which & 2;
  caps.storage_f16 = which & 4;
  caps.storage_bf16 = which & 8;
  caps.narrow_arrays = which & 16;
  return caps;
}
constexpr uint32_t kStorages = 32;

// Inputs for stores of `element`: integers of any size, floats with infinities and NaN.
std::vector<std::byte> wide_values(DType element, size_t count) {
  return is_float(element) ? bytes_of(awkward_floats(count)) : bytes_of(awkward_words(count));
}

TEST(LowerStorage, BuffersOfNarrowElements) {
  for (DType element : kNarrow)
    for (uint32_t lanes : {1u, 2u, 4u}) {
      const Kernel k = kernel("narrow_buffers", 32, [&] {
        const auto wide = in("wide", widened(element));
        const auto a = in("a", element);
        const auto y = inout("y", element);
        const auto z = out("z", widened(element));
        const Value i = global_id() * lanes, keep = (global_id() % 5u) != 0u;
        y.store_if(keep, i, wide.load(i, lanes));
        z.store(i, a.load_if(keep, i, lanes));
        z.store(i + 256u * lanes, y.load(i, lanes));
      });
      const size_t count = 256 * lanes, bytes = count * dtype_bytes(element);
      for (uint32_t which = 0; which < kStorages; ++which)
        expect_same_when_lowered(
            k,
            {{8, 1, 1},
             {},
             {wide_values(element, count), bytes_of(awkward_words(bytes / 4, 9)),
              bytes_of(awkward_words(bytes / 4, 10)), std::vector<std::byte>(count * 8)}},
            storage(which));
    }
}

// If a buffer has a single element type, f16 read by words is stored as words, and single elements
// are extracted from them.
TEST(LowerStorage, HalvesReadByWordsAreWords) {
  const auto make = [](bool by_words) {
    return kernel("halves", 32, [&] {
      const auto a = in("a", f16);
      const auto z = out("z", f32);
      const Value i = global_id(), keep = i % 3u != 0u;
      const Value four = by_words ? Value(a.load_words(i * 4u, 4, 4)) : vec(i, i, i, i);
      const Value pair = unpack_f16(four[3]);
      z[i * 8u] = pair[0] + pair[1];
      z[i * 8u + 1u] = a[i * 5u % 513u];
      z[i * 8u + 2u] = Value(a.load_if(keep, i));
      z.store(i * 8u + 4u, a.load(i * 4u, 4));
    });
  };
  Capabilities of_one_kind = full_capabilities();
  of_one_kind.raw_atomic_buffers = true;
  // No infinities or NaN: their sums differ.
  std::vector<uint32_t> words(64 * 4);
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = f16_from_f32(static_cast<float>(i) - 99.5f) |
               uint32_t{f16_from_f32(0x1p-20f * static_cast<float>(i))} << 16;
  for (const bool by_words : {true, false}) {
    const Kernel k = make(by_words);
    EXPECT_EQ(lower(k, of_one_kind).memories[0].element, by_words ? u32 : f16);
    EXPECT_EQ(lower(k, full_capabilities()).memories[0].element, f16);
    expect_same_when_lowered(k, {{2, 1, 1}, {}, {bytes_of(words), std::vector<std::byte>(64 * 32)}},
                             of_one_kind);
  }
}

TEST(LowerStorage, ABufferThatEndsInsideAWord) {
  const Kernel k = kernel("odd_end", 32, [] {
    const auto a = in("a", u8);
    const auto y = out("y", u8);
    const auto count = param("count", u32);
    if_(global_id() < count, [&] { y[global_id()] = a[global_id()] + 1u; });
  });
  const std::vector<uint8_t> a(37, 255), y(37, 7);
  for (uint32_t which = 0; which < 2; ++which)
    expect_same_when_lowered(k, {{2, 1, 1}, {37}, {bytes_of(a), bytes_of(y)}}, storage(which));
}

TEST(LowerStorage, NeighboursInAWordKeepTheirValues) {
  const Kernel k = kernel("neighbours", 32, [] {
    const auto y = inout("y", u8);
    const auto z = inout("z", i16);
    const Value i = global_id();
    y.store_if(i % 2u == 0u, i, 0x1ffu);
    z.store_if(i % 2u == 1u, i, -3);
  });
  for (uint32_t which = 0; which < 4; ++which)
    expect_same_when_lowered(
        k, {{2, 1, 1}, {}, {bytes_of(awkward_words(16)), bytes_of(awkward_words(32))}},
        storage(which));
}

TEST(LowerStorage, SharedAndPrivateArrays) {
  for (DType element : kNarrow) {
    const Kernel k = kernel("narrow_arrays", 32, [&] {
      const auto wide = in("wide", widened(element));
      const auto y = out("y", widened(element));
      const auto tile = shared(element, 64);
      const auto own = local(element, 4);
      const Value i = local_id() * 2u;
      tile.store(i, wide.load(i, 2));
      for (uint32_t j = 0; j < 4; ++j) own[j] = wide[i / 2u + j];
      barrier();
      const Value other = tile.load(62u - i, 2);
      y.store(i * 2u, vec(other[0], other[1], own.load(3u), own.load(local_id() % 4u)));
    });
    for (uint32_t which = 0; which < kStorages; ++which)
      expect_same_when_lowered(
          k, {{1, 1, 1}, {}, {wide_values(element, 64), std::vector<std::byte>(512)}},
          storage(which));
  }
}

TEST(LowerStorage, EveryHalfBothWays) {
  const Kernel k = kernel("every_half", 64, [] {
    const auto a = in("a", f16);
    const auto b = in("b", bf16);
    const auto words = in("words", u32);
    const auto y = out("y", u32);
    const auto back = out("back", f16);
    const auto bback = out("bback", bf16);
    const Value i = global_id();
    y[i * 4u] = bitcast(u32, a[i]);
    y[i * 4u + 1u] = bitcast(u32, b[i]);
    const Value pair = unpack_f16(words[i]);
    y[i * 4u + 2u] = bitcast(u32, pair[0]) * 3u + bitcast(u32, pair[1]);
    // One step above and below each number, and the midpoint between neighbours, where rounding
    // decides.
    const Value wide = bitcast(f32, bitcast(u32, a[i]) + ((words[i] & 0x3fffu) - 0x1fffu));
    y[i * 4u + 3u] = pack_f16(vec(wide, bitcast(f32, bitcast(u32, a[i]) + 0x1000u)));
    back[i] = wide;
    bback[i] = bitcast(f32, (i << 16u) + (words[i] % 3u + 0x7fffu));
  });
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<uint16_t>(i);
    if ((i & 0x7c00) == 0x7c00 && (i & 0x3ff) != 0)
      all[i] |= 0x200;  // a signalling NaN may become quiet
  }
  std::vector<uint16_t> brain(65536);
  for (size_t i = 0; i < brain.size(); ++i) {
    brain[i] = static_cast<uint16_t>(i);
    if ((i & 0x7f80) == 0x7f80 && (i & 0x7f) != 0) brain[i] |= 0x40;
  }
  std::vector<uint32_t> words = awkward_words(65536);
  for (uint32_t& word : words) {
    if ((word & 0x7c00u) == 0x7c00u) word &= ~0x3ffu;
    if ((word & 0x7c000000u) == 0x7c000000u) word &= ~0x3ff0000u;
  }
  const Launch launch{
      {1024, 1, 1},
      {},
      {bytes_of(all), bytes_of(brain), bytes_of(words), std::vector<std::byte>(65536 * 16),
       std::vector<std::byte>(131072), std::vector<std::byte>(131072)}};
  for (uint32_t which : {0u, 2u, 4u, 8u, 15u}) expect_same_when_lowered(k, launch, storage(which));
}

TEST(LowerHalfMath, TheSameBitsAsNativeHalves) {
  const Kernel k = kernel("half_math", 64, [] {
    const auto a = in("a", f16);
    const auto b = in("b", f16);
    const auto y = out("y", f32);
    const Value i = global_id() * 2u;
    const Value x = cast(f16, a.load(i, 2)), z = cast(f16, b.load(i, 2));
    Var sum(Type{f16, 2}, cast(f16, splat(constant(f32, 1.0), 2)));
    sum = sum + x;
    sum = sum * z;
    sum = select(x < z, sum - x, x / z);
    sum = min(max(sum, -x), abs(z)) + floor(x) + constant(f16, 0.099976);
    const Value word = bitcast(u32, static_cast<Value>(sum));
    const Value moved = bitcast(Type{f16, 2}, word ^ 0x80000000u);
    y.store(i, cast(f32, moved) + cast(f32, sqrt(abs(x))) + cast(f32, cast(i32, z)));
  });
  std::vector<uint16_t> a(4096), b(4096);
  const auto words = awkward_words(8192, 77);
  for (size_t i = 0; i < a.size(); ++i) {  // finite, and quotients that are not NaN
    a[i] = static_cast<uint16_t>((words[i] * 2654435761u >> 16) & 0xbbff);
    b[i] = static_cast<uint16_t>(((words[i + 4096] * 2654435761u >> 16) & 0xb3ff) | 0x0400);
  }
  Capabilities caps = full_capabilities();
  const Launch launch{{32, 1, 1}, {}, {bytes_of(a), bytes_of(b), std::vector<std::byte>(16384)}};
  expect_same_when_lowered(k, launch, caps);
  caps.math_f16 = false;
  expect_same_when_lowered(k, launch, caps);
  caps.storage_f16 = caps.storage_16 = false;
  expect_same_when_lowered(k, launch, caps);
}

TEST(LowerHalfMath, HalvesInSharedAndAcrossLanes) {
  const Kernel k = kernel("half_across", 64, [] {
    const auto a = in("a", f16);
    const auto y = out("y", f32);
    const Value x = cast(f16, a[global_id()]);
    const Value most = subgroup_max(x), moved = subgroup_shuffle_xor(x, 2);
    const Value least = group_reduce(ReduceOp::min, x),
                scanned = subgroup_scan(ReduceOp::max, x, false);
    y[global_id()] = cast(f32, most) + cast(f32, moved) * 2.0f + cast(f32, least) * 4.0f +
                     cast(f32, scanned) * 8.0f;
  });
  std::vector<uint16_t> a(128);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = f16_from_f32(static_cast<float>((i * 37) % 64) - 20.0f);
  for (bool half : {true, false})
    for (uint32_t subgroup : {0u, 8u, 32u}) {
      Capabilities caps = full_capabilities();
      caps.math_f16 = half;
      caps.subgroup_size = subgroup;
      expect_same_when_lowered(k, {{2, 1, 1}, {}, {bytes_of(a), std::vector<std::byte>(512)}},
                               caps);
    }
}

}  // namespace
}  // namespace prism
