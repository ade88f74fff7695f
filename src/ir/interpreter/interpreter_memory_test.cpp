// Tests loads, stores, words, atomics, async copies, cross-lane operations and fragments.
#include <cmath>
#include <numeric>

#include "support/kernels/interpreter_testing.h"

namespace prism::interpreter_testing {
namespace {

using namespace dsl;
using U = std::vector<uint32_t>;
using I = std::vector<int32_t>;
using F = std::vector<float>;

U counting(size_t count, uint32_t from = 0) {
  U values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

template <class T>
std::vector<T> through(DType stored, const std::vector<T>& values) {
  std::vector<T> x = values;
  const size_t count = x.size();
  std::vector<std::byte> kept(count * dtype_bytes(stored) + 8);
  const Kernel narrow = dsl::kernel("narrow", 32, [&] {
    const In from = in("from", dtype_of<T>());
    const Array to = out("to", stored);
    const Value i = global_id();
    if_(i < static_cast<uint32_t>(count), [&] { to[i] = from[i]; });
  });
  const uint32_t groups = static_cast<uint32_t>(count / 32 + 1);
  kept = run(narrow, groups, kept, {host(x)});
  const Kernel widen = dsl::kernel("widen", 32, [&] {
    const In from = in("from", stored);
    const Array to = out("to", dtype_of<T>());
    const Value i = global_id();
    to.store_if(i < static_cast<uint32_t>(count), i,
                from.load_if(i < static_cast<uint32_t>(count), i));
  });
  return run(widen, groups, std::vector<T>(count), {host(kept)});
}

TEST(InterpreterMemory, StorageNarrowsAndWidens) {
  EXPECT_EQ(through<int32_t>(i8, {127, 128, -129, 255, -1}), (I{127, -128, 127, -1, -1}));
  EXPECT_EQ(through<uint32_t>(u8, {255, 256, 0x1234}), (U{255, 0, 0x34}));
  EXPECT_EQ(through<int32_t>(i16, {32768, -32769, 5}), (I{-32768, 32767, 5}));
  EXPECT_EQ(through<uint32_t>(u16, {65535, 65537}), (U{65535, 1}));
  EXPECT_EQ(through<float>(f16, {1 + 0x1p-11f, 65520, 0x1p-25f, -0x1.8p-24f}),
            (F{1, INFINITY, 0, -0x1p-23f}));
  EXPECT_EQ(through<float>(bf16, {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 3.4e38f, 0x1p-133f}),
            (F{1, 1 + 0x1p-6f, INFINITY, 0x1p-133f}));
  EXPECT_EQ(through<double>(f64, {0.1}), (std::vector<double>{0.1}));
  EXPECT_EQ(through<int64_t>(i64, {-5}), (std::vector<int64_t>{-5}));
}

TEST(InterpreterMemory, VectorsOfElementsAndWords) {
  const Kernel kernel = dsl::kernel("vectors", 8, [] {
    const In x = in("x", u8);
    const Array y = out("y", u32);
    const Value i = local_id();
    const Value four = x.load(i * 4u, 4), words = x.load_words(i % 4u * 2u, 2, 2);
    y.store(i * 4u, four * 2u);
    y.store_words(i + 32u, words[0] ^ words[1]);
    y.store(i * 2u + 40u, vec(i, group_size()));
  });
  std::vector<uint8_t> x(32);
  std::iota(x.begin(), x.end(), uint8_t{1});
  const U y = run(kernel, 1, U(56), {host(x)});
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], 2 * (i + 1));
  const U words = [&] {
    U w(8);
    std::memcpy(w.data(), x.data(), 32);
    return w;
  }();
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(y[32 + i], words[i % 4 * 2] ^ words[i % 4 * 2 + 1]);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(y[40 + 2 * i], i);
}

TEST(InterpreterMemory, PredicatesReadAndWriteNothingWhereFalse) {
  const Kernel kernel = dsl::kernel("predicates", 32, [] {
    const In x = in("x", u32);
    const Array y = out("y", u32);
    const Value i = local_id();
    // Out of bounds where the predicate is false.
    const Value odd = x.load_if(
        i % 2u == 1u,
        i * 1000u % 31u + select(i % 2u == 1u, constant(u32, 0u), constant(u32, 1u << 30)));
    const Value same = x.load_if(group_count() == 7u, constant(u32, 1u << 29)) +
                       x.load_if(group_count() == 1u, 3u);
    y.store_if(i != 5u, i, odd + same);
  });
  U x = counting(32, 100);
  U expected(32);
  for (uint32_t i = 0; i < 32; ++i) expected[i] = i == 5 ? 9 : (i % 2 ? x[i * 1000 % 31] : 0) + 103;
  EXPECT_EQ(run(kernel, 1, U(32, 9), {host(x)}), expected);
}

TEST(InterpreterMemory, SharedAndOwnArrays) {
  const Kernel kernel = dsl::kernel("arrays", 48, [] {
    const In x = in("x", u32);
    const Array y = out("y", u32);
    const Array tile = shared(u16, 48), own = local(f16, 4);
    const Value i = local_id();
    tile[i] = x[i];
    barrier();
    for_(4u, [&](Value k) { own[k] = cast(f32, tile.load((i + k) % 48u)); });
    own[i % 4u] = 0.5f;
    Var sum(f32, 0.0f);
    for_(4u, [&](Value k) { sum += Value(own[k]); });
    y[i] = cast(u32, Value(sum) * 2.0f);
  });
  U x = counting(48, 3), expected(48);
  for (uint32_t i = 0; i < 48; ++i) {
    expected[i] = 1;
    for (uint32_t k = 0; k < 4; ++k)
      if (k != i % 4) expected[i] += 2 * x[(i + k) % 48];
  }
  EXPECT_EQ(run(kernel, 1, U(48), {host(x)}), expected);
}

TEST(InterpreterMemory, Atomics) {
  const Kernel kernel = dsl::kernel("atomics", 32, [] {
    const Array y = inout("y", u32);
    const Array count = shared(u32, 1);
    const Value i = local_id();
    if_(i == 0u, [&] { count[0u] = 0u; });
    barrier();
    const Value place = count.atomic_add(0u, 1u);
    y[8u + place] = i;
    y.atomic_add(0u, i);
    y.atomic(AtomicOp::min, 1u, i + 3u);
    y.atomic(AtomicOp::max, 2u, i + 3u);
    y.atomic(AtomicOp::bit_or, 3u, constant(u32, 1u) << i);
    y.atomic(AtomicOp::bit_and, 4u, ~(constant(u32, 1u) << i));
    y.atomic(AtomicOp::bit_xor, 5u, i);
    y.compare_exchange(6u, i, i + 1u);
    if_(i == 9u, [&] { y[7u] = y.atomic(AtomicOp::exchange, 0u, 77u); });
  });
  U expected = {77, 3, 34, 0xffffffff, 0, 0, 32, 496};
  for (uint32_t i = 0; i < 32; ++i) expected.push_back(i);
  U start(40);
  start[1] = 100;
  start[4] = 0xffffffff;
  EXPECT_EQ(run(kernel, 1, start), expected);
}

TEST(InterpreterMemory, FloatAndSignedAtomics) {
  const Kernel kernel = dsl::kernel("float_atomics", 16, [] {
    const Array z = inout("z", i32), y = inout("y", f32);
    const Array sum = shared(f32, 1);
    const Value i = local_id();
    if_(i == 0u, [&] { sum[0u] = 0.0f; });
    barrier();
    y.atomic_add(0u, cast(f32, i) * 0.5f);
    sum.atomic_add(0u, 1.0f);
    z.atomic(AtomicOp::min, 0u, cast(i32, i) - 8);
    barrier();
    if_(i == 0u, [&] { y[1u] = Value(sum[0u]); });
  });
  I z(1, 100);
  EXPECT_EQ(run(kernel, 1, F(2), {host(z)}), (F{60, 16}));
  EXPECT_EQ(z[0], -8);
}

TEST(InterpreterMemory, AsyncCopies) {
  const Kernel kernel = dsl::kernel("ahead", 16, [] {
    const In x = in("x", u16);
    const Array y = out("y", u32);
    const Array tile = shared(u16, 128);
    const Value i = local_id();
    async_copy(tile, i * 4u, x, i * 4u, 4);
    async_commit();
    async_copy_if(i < 8u, tile, i * 4u + 64u, x, i * 4u, 4);
    async_commit();
    async_wait(1);
    barrier();
    y[i] = tile.load(63u - i);
    async_wait();
    barrier();
    y[i + 16u] = tile.load(i * 4u + 64u);
  });
  std::vector<uint16_t> x(64);
  std::iota(x.begin(), x.end(), uint16_t{500});
  U expected(32);
  for (uint32_t i = 0; i < 16; ++i) {
    expected[i] = x[63 - i];
    expected[i + 16] = i < 8 ? x[i * 4] : 0;
  }
  EXPECT_EQ(run(kernel, 1, U(32), {host(x)}), expected);
}

class InterpreterSubgroups : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, InterpreterSubgroups, testing::Values(1u, 2u, 8u, 16u, 32u, 64u));

TEST_P(InterpreterSubgroups, AcrossLanes) {
  const uint32_t size = GetParam(), lanes = 128;
  const Kernel kernel = dsl::kernel("across", lanes, [&] {
    const In x = in("x", u32);
    const Array y = out("y", u32);
    const Value i = local_id(), v = x[i];
    uint32_t row = 0;
    const auto put = [&](Value value) { y[i + row++ * lanes] = value; };
    put(subgroup_size());
    put(subgroup_id());
    put(subgroup_lane());
    put(subgroup_sum(v));
    put(subgroup_max(v));
    put(subgroup_reduce(ReduceOp::min, v));
    put(subgroup_reduce(ReduceOp::bit_xor, v));
    put(subgroup_scan(ReduceOp::add, v, false));
    put(subgroup_scan(ReduceOp::add, v, true));
    put(subgroup_scan(ReduceOp::min, v, true));
    put(subgroup_shuffle(v, (subgroup_lane() + 1u) % subgroup_size()));
    if (size > 1)
      put(subgroup_shuffle_xor(v, size / 2));
    else
      put(v);
    put(group_sum(v));
    put(group_reduce(ReduceOp::bit_or, v));
  });
  U x(lanes);
  for (uint32_t i = 0; i < lanes; ++i) x[i] = (i * 2654435761u) >> 7;
  const U y = run(kernel, 1, U(14 * lanes), {host(x)}, {}, size);
  const uint32_t whole = std::accumulate(x.begin(), x.end(), 0u);
  for (uint32_t i = 0; i < lanes; ++i) {
    const uint32_t first = i / size * size;
    uint32_t sum = 0, most = 0, least = ~0u, parity = 0, before = 0, least_before = ~0u, ones = 0;
    for (uint32_t j = first; j < first + size; ++j) {
      if (j < i) before += x[j], least_before = std::min(least_before, x[j]);
      sum += x[j];
      most = std::max(most, x[j]);
      least = std::min(least, x[j]);
      parity ^= x[j];
    }
    for (uint32_t value : x) ones |= value;
    const uint32_t wanted[] = {size,
                               i / size,
                               i % size,
                               sum,
                               most,
                               least,
                               parity,
                               before + x[i],
                               before,
                               least_before,
                               x[first + (i + 1 - first) % size],
                               x[size > 1 ? i ^ (size / 2) : i],
                               whole,
                               ones};
    for (uint32_t row = 0; row < 14; ++row)
      ASSERT_EQ(y[row * lanes + i], wanted[row]) << "row " << row << " lane " << i;
  }
}

TEST_P(InterpreterSubgroups, FloatsReduceToOneValue) {
  const Kernel kernel = dsl::kernel("sums", 64, [] {
    const In x = in("x", f32);
    const Array y = out("y", f32);
    const Value i = local_id();
    y[i] = subgroup_sum(x[i]);
    y[i + 64u] = group_max(x[i]) + group_sum(x[i] * 0.25f);
  });
  F x(64);
  for (size_t i = 0; i < 64; ++i) x[i] = static_cast<float>(i % 5) - 1.5f;
  const F y = run(kernel, 1, F(128), {host(x)}, {}, GetParam());
  for (size_t i = 0; i < 64; ++i) {
    const size_t size = GetParam(), first = i / size * size;
    EXPECT_EQ(y[i], std::accumulate(x.begin() + static_cast<long>(first),
                                    x.begin() + static_cast<long>(first + size), 0.0f));
    EXPECT_EQ(y[i + 64], 2.5f + 0.25f * std::accumulate(x.begin(), x.end(), 0.0f));
  }
}

TEST_P(InterpreterSubgroups, Fragments) {
  const uint32_t size = GetParam();
  const uint32_t lanes = size * 2;  // two subgroups: each multiplies its own half of b
  const Kernel kernel = dsl::kernel("fragments", lanes, [&] {
    const In a = in("a", f16), b = in("b", f16);
    const Array y = out("y", f32);
    const Fragment left = fragment_a(f16), right = fragment_b(f16), sum = accumulator(f32),
                   rows = accumulator(f32), again = fragment_a(f16), last = accumulator(f32);
    sum.fill(1.0f);
    left.load(a, 0u, 16u);
    right.load(b, subgroup_id() * 256u, 16u, Layout::column_major);
    sum.multiply(left, right);
    sum.map([](Value x, Value r, Value c) { return x + cast(f32, r) * 0.5f - cast(f32, c); });
    sum.store(y, subgroup_id() * 256u, 16u);
    rows.row_reduce(ReduceOp::max, sum);
    rows.map({sum, rows}, [](const std::vector<Value>& v, Value, Value) { return v[1] - v[0]; });
    rows.store(y, subgroup_id() * 256u + 512u, 16u, Layout::column_major);
    again.convert(sum);
    last.fill(0.0f);
    last.multiply(again, right);
    last.store(y, subgroup_id() * 256u + 1024u, 16u);
  });
  std::vector<uint16_t> a(256), b(512);
  F fa(256), fb(512);
  for (size_t i = 0; i < 512; ++i) {
    fb[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5) * 0.5f;
    b[i] = f16_from_f32(fb[i]);
    if (i < 256)
      fa[i] = static_cast<float>(static_cast<int>(i * 5 % 13) - 6), a[i] = f16_from_f32(fa[i]);
  }
  const F y = run(kernel, 1, F(1536), {host(a), host(b)}, {}, size);
  for (size_t g = 0; g < 2; ++g) {
    F sum(256);
    for (size_t r = 0; r < 16; ++r)
      for (size_t c = 0; c < 16; ++c) {
        float x = 1;
        for (size_t k = 0; k < 16; ++k) x += fa[r * 16 + k] * fb[g * 256 + c * 16 + k];
        sum[r * 16 + c] = x + static_cast<float>(r) * 0.5f - static_cast<float>(c);
        ASSERT_EQ(y[g * 256 + r * 16 + c], sum[r * 16 + c]);
      }
    for (size_t r = 0; r < 16; ++r)
      for (size_t c = 0; c < 16; ++c) {
        const float most = *std::max_element(&sum[r * 16], &sum[r * 16] + 16);
        ASSERT_EQ(y[512 + g * 256 + c * 16 + r], most - sum[r * 16 + c]);
        float x = 0;
        for (size_t k = 0; k < 16; ++k)
          x += f32_from_f16(f16_from_f32(sum[r * 16 + k])) * fb[g * 256 + c * 16 + k];
        ASSERT_EQ(y[1024 + g * 256 + r * 16 + c], x);
      }
  }
}

TEST(InterpreterMemory, IntegerFragments) {
  const Kernel kernel = dsl::kernel("bytes", 32, [] {
    const In a = in("a", i8), b = in("b", i8);
    const Array y = out("y", i32);
    const FragmentSize shape{16, 16, 32};
    const Fragment left = fragment_a(i8, shape), right = fragment_b(i8, shape),
                   sum = accumulator(i32, shape);
    sum.fill(0);
    left.load(a, 0u, 32u);
    right.load(b, 0u, 16u);
    sum.multiply(left, right);
    sum.map([](Value x, Value, Value) { return x - 1; });
    sum.store(y, 0u, 16u);
  });
  std::vector<int8_t> a(512), b(512);
  for (size_t i = 0; i < 512; ++i)
    a[i] = static_cast<int8_t>(i * 37), b[i] = static_cast<int8_t>(i * 91 + 3);
  const I y = run(kernel, 1, I(256), {host(a), host(b)});
  for (size_t r = 0; r < 16; ++r)
    for (size_t c = 0; c < 16; ++c) {
      int32_t x = -1;
      for (size_t k = 0; k < 32; ++k) x += a[r * 32 + k] * b[k * 16 + c];
      ASSERT_EQ(y[r * 16 + c], x);
    }
}

}  // namespace
}  // namespace prism::interpreter_testing
