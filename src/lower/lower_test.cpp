// Tests that lowered arithmetic, reductions, subgroups, dot products, atomics and grids give the
// results of the original kernels, and that limits are reported.
#include "lower/lower.h"

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/kernel.h"
#include "support/kernels/lowering.h"

namespace prism {
namespace {

using namespace dsl;
using namespace test;
using ir::Capabilities;
using ir::Op;

constexpr uint32_t kSubgroups[] = {0, 8, 16, 32, 64};

Capabilities with_subgroups(uint32_t size) {
  Capabilities caps = full_capabilities();
  caps.subgroup_size = size;
  caps.subgroup_sizes.clear();
  if (size) caps.subgroup_sizes = {size};
  caps.fragments.clear();
  return caps;
}

// The initial contents of output buffers.
std::vector<std::byte> poison(size_t bytes) {
  return std::vector<std::byte>(bytes, std::byte{0xa5});
}

using Binary = Value (*)(Operand, Operand);
constexpr std::pair<const char*, Binary> kDivisions[] = {{"div_trunc", div_trunc},
                                                         {"rem_trunc", rem_trunc},
                                                         {"div_floor", div_floor},
                                                         {"mod_floor", mod_floor}};

Kernel binary_kernel(const std::string& name, DType type, uint32_t lanes, Binary op) {
  return kernel(name, 64, [&] {
    const auto a = in("a", type), b = in("b", type);
    const auto y = out("y", type);
    const Value i = global_id() * lanes;
    y.store(i, op(a.load(i, lanes), b.load(i, lanes)));
  });
}

TEST(LowerArithmetic, DivisionsOfEveryWidthAndShape) {
  for (const auto& [name, op] : kDivisions)
    for (DType type : {i32, u32, i64, u64})
      for (uint32_t lanes : {1u, 2u, 4u}) {
        const Kernel k = binary_kernel(name, type, lanes, op);
        const size_t words = 2048 * lanes * dtype_bytes(type) / 4;
        expect_same_when_lowered(k,
                                 {{32, 1, 1},
                                  {},
                                  {bytes_of(awkward_words(words, 1)),
                                   bytes_of(awkward_words(words, 2)), poison(words * 4)}},
                                 full_capabilities());
      }
}

TEST(LowerArithmetic, DivisionsByKnownNumbers) {
  for (const auto& [name, op] : kDivisions)
    for (int64_t divisor : {0ll, 1ll, -1ll, 7ll, -7ll, -2147483648ll}) {
      const Kernel k = kernel(name, 64, [&, op = op] {
        const auto a = in("a", i32);
        const auto y = out("y", i32);
        y[global_id()] = op(a[global_id()], constant(i32, divisor));
        y[global_id() + 1024u] =
            bitcast(i32, op(bitcast(u32, a[global_id()]), constant(u32, divisor)));
      });
      expect_same_when_lowered(k, {{16, 1, 1}, {}, {bytes_of(awkward_words(1024)), poison(8192)}},
                               full_capabilities());
    }
}

TEST(LowerArithmetic, ShiftsOfAnyCount) {
  for (DType type : {i32, u32, i64, u64})
    for (uint32_t lanes : {1u, 4u})
      for (Binary op : {static_cast<Binary>(operator<<), static_cast<Binary>(operator>>)}) {
        const size_t words = 1024 * lanes * dtype_bytes(type) / 4;
        expect_same_when_lowered(binary_kernel("shift", type, lanes, op),
                                 {{16, 1, 1},
                                  {},
                                  {bytes_of(awkward_words(words, 3)),
                                   bytes_of(awkward_words(words, 4)), poison(words * 4)}},
                                 full_capabilities());
      }
  for (int64_t count : {0ll, 1ll, 31ll, 32ll, 33ll, 64ll, -1ll}) {
    const Kernel k = kernel("shift_known", 64, [&] {
      const auto a = in("a", i32);
      const auto y = out("y", i32);
      const Value i = global_id(), n = constant(i32, count);
      y[i * 2u] = a[i] << n;
      y[i * 2u + 1u] = a[i] >> n;
    });
    expect_same_when_lowered(k, {{1, 1, 1}, {}, {bytes_of(awkward_words(64)), poison(512)}},
                             full_capabilities());
  }
}

TEST(LowerArithmetic, ConversionsSaturate) {
  for (DType from : {f32, f64, f16})
    for (DType to : {i32, u32, i64, u64, b1})
      for (uint32_t lanes : {1u, 4u}) {
        const Kernel k = kernel("convert", 64, [&] {
          const auto a = in("a", f32);
          const auto y = out("y", to == b1 ? u32 : to);
          const Value i = global_id() * lanes;
          const Value made = cast(to, cast(from, a.load(i, lanes)));
          y.store(i, to == b1 ? cast(u32, made) : made);
        });
        const size_t count = 2048 * lanes;
        expect_same_when_lowered(
            k, {{32, 1, 1}, {}, {bytes_of(awkward_floats(count)), poison(count * dtype_bytes(to))}},
            full_capabilities());
      }
}

TEST(LowerArithmetic, ConversionsOfTruthAndIntegers) {
  const Kernel k = kernel("truth", 64, [] {
    const auto a = in("a", i32);
    const auto y = out("y", f32);
    const auto z = out("z", i32);
    const Value i = global_id();
    y[i * 2u] = cast(f32, a[i] > 0) + cast(f32, a[i]);
    y[i * 2u + 1u] = cast(f32, bitcast(u32, a[i]));
    z[i] = cast(i32, cast(b1, a[i])) + cast(i32, cast(i64, a[i]) * constant(i64, 3));
  });
  expect_same_when_lowered(
      k, {{16, 1, 1}, {}, {bytes_of(awkward_words(1024)), poison(8192), poison(4096)}},
      full_capabilities());
}

// Every operation and type, twice in a row and in a uniform loop, so that scratch memory is reused.
Kernel reduce_kernel(uint32_t group_size, bool whole_group) {
  return kernel(whole_group ? "group_reduce" : "subgroup_reduce", group_size, [&] {
    const auto a = in("a", u32);
    const auto y = inout("y", u32);
    const Value i = global_id(), word = a[i];
    const auto reduce = [&](ReduceOp op, Value v) {
      return whole_group ? group_reduce(op, v) : subgroup_reduce(op, v);
    };
    Var sum(u32, 0u);
    for (ReduceOp op : {ReduceOp::add, ReduceOp::min, ReduceOp::max, ReduceOp::bit_and,
                        ReduceOp::bit_or, ReduceOp::bit_xor}) {
      sum = sum * 31u + reduce(op, word);
      sum = sum * 31u + bitcast(u32, reduce(op, bitcast(i32, word)));
      sum = sum * 31u + bitcast(Type{u32, 2}, reduce(op, cast(u64, word) << 7u))[1];
    }
    for (ReduceOp op : {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor})
      sum = sum * 2u + cast(u32, reduce(op, (word & 7u) != 0u));
    // Integers with sums below 2^24: every order of addition gives the same result.
    const Value small = cast(f32, word & 0xfffu);
    for (ReduceOp op : {ReduceOp::add, ReduceOp::min, ReduceOp::max}) {
      sum = sum + cast(u32, reduce(op, small));
      sum = sum + cast(u32, reduce(op, cast(f64, small)));
    }
    sum = sum + cast(u32, cast(f32, reduce(ReduceOp::max, cast(f16, cast(f32, word & 0xffu)))));
    for_(3u, [&](Value round) { sum = sum + reduce(ReduceOp::add, word ^ (round + sum)); });
    y[i] = sum;
  });
}

Launch reduce_launch(uint32_t group_size) {
  return {{3, 1, 1}, {}, {bytes_of(awkward_words(group_size * 3)), poison(group_size * 12)}};
}

TEST(LowerGroups, ReductionsOverGroupsOfAnySize) {
  for (uint32_t subgroup : kSubgroups)
    for (uint32_t group_size : {1u, 2u, 7u, 8u, 32u, 40u, 64u, 96u, 100u, 256u, 1000u, 1024u})
      expect_same_when_lowered(reduce_kernel(group_size, true), reduce_launch(group_size),
                               with_subgroups(subgroup));
}

TEST(LowerGroups, ReductionsOverSubgroups) {
  for (uint32_t subgroup : kSubgroups)
    for (uint32_t group_size : {1u, 7u, 8u, 32u, 40u, 64u, 100u, 256u})
      expect_same_when_lowered(reduce_kernel(group_size, false), reduce_launch(group_size),
                               with_subgroups(subgroup));
}

TEST(LowerGroups, ScansOverSubgroups) {
  for (uint32_t subgroup : kSubgroups)
    for (uint32_t group_size : {1u, 8u, 40u, 64u, 100u, 256u}) {
      const Kernel k = kernel("scan", group_size, [&] {
        const auto a = in("a", u32);
        const auto y = inout("y", u32);
        const Value i = global_id(), word = a[i];
        Var sum(u32, 0u);
        for (bool exclusive : {false, true}) {
          for (ReduceOp op : {ReduceOp::add, ReduceOp::min, ReduceOp::max, ReduceOp::bit_and,
                              ReduceOp::bit_or, ReduceOp::bit_xor}) {
            sum = sum * 31u + subgroup_scan(op, word, exclusive);
            sum = sum * 31u + bitcast(u32, subgroup_scan(op, bitcast(i32, word), exclusive));
          }
          for (ReduceOp op : {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor})
            sum = sum * 31u + cast(u32, subgroup_scan(op, (word & 7u) != 0u, exclusive));
          const Value small = cast(f32, word & 0xfffu);
          sum = sum + cast(u32, subgroup_scan(ReduceOp::add, small, exclusive));
          sum = sum * 31u + bitcast(u32, subgroup_scan(ReduceOp::min, small, exclusive));
          sum = sum * 31u + bitcast(u32, subgroup_scan(ReduceOp::max, small, exclusive));
        }
        y[i] = sum;
      });
      expect_same_when_lowered(k, reduce_launch(group_size), with_subgroups(subgroup));
    }
}

TEST(LowerGroups, ShufflesAndPlaces) {
  for (uint32_t subgroup : kSubgroups)
    for (uint32_t group_size : {8u, 64u, 96u, 256u}) {
      const Kernel k = kernel("shuffle", group_size, [&] {
        const auto a = in("a", u32);
        const auto y = out("y", u32);
        const Value i = global_id(), word = a[i];
        const Value pair = vec(cast(f32, word & 0xffu), cast(f32, word >> 24u));
        const Value moved =
            subgroup_shuffle(pair, (subgroup_lane() * 5u + 3u) % min(subgroup_size(), group_size));
        Var sum(u32, subgroup_size() * 64u + subgroup_id() * 8u + subgroup_lane());
        sum = sum * 31u + cast(u32, moved[0]) * 256u + cast(u32, moved[1]);
        sum = sum * 31u + cast(u32, subgroup_shuffle((word & 3u) == 0u, 1u));
        for (uint32_t mask : {1u, 2u, 4u}) sum = sum * 31u + subgroup_shuffle_xor(word, mask);
        y[i] = sum;
      });
      expect_same_when_lowered(k, reduce_launch(group_size), with_subgroups(subgroup));
    }
}

TEST(LowerGroups, WholeSubgroupsStayTheDevicesOwn) {
  const Kernel whole = lower(reduce_kernel(64, false), with_subgroups(16));
  EXPECT_EQ(whole.subgroup_size, 16u);
  EXPECT_GT(count_ops(whole, Op::subgroup_reduce), 0u);
  EXPECT_EQ(lower(reduce_kernel(40, false), with_subgroups(16)).subgroup_size, 0u);
  EXPECT_EQ(lower(binary_kernel("none", i32, 1, div_trunc), with_subgroups(16)).subgroup_size, 0u);
}

TEST(LowerSimple, DotProducts) {
  const Kernel k = kernel("dot", 64, [] {
    const auto a = in("a", u32), b = in("b", u32);
    const auto y = out("y", u32);
    const Value i = global_id();
    y[i * 2u] = dot4_u8(a[i], b[i], b[i]);
    y[i * 2u + 1u] = bitcast(u32, dot4_i8(a[i], b[i], bitcast(i32, a[i])));
  });
  Capabilities caps = full_capabilities();
  const Launch launch{
      {16, 1, 1},
      {},
      {bytes_of(awkward_words(1024, 5)), bytes_of(awkward_words(1024, 6)), poison(8192)}};
  expect_same_when_lowered(k, launch, caps);
  caps.dot4 = false;
  expect_same_when_lowered(k, launch, caps);
}

TEST(LowerSimple, FloatAtomics) {
  const Kernel k = kernel("float_atomics", 64, [] {
    const auto a = in("a", f32);
    const auto y = inout("y", f32);
    const auto z = inout("z", f32);
    const auto tile = shared(f32, 4);
    const Value i = global_id(), lane = local_id();
    tile.store_if(lane < 4u, lane, 0.0f);
    barrier();
    tile.atomic_add(lane % 4u, a[i]);
    y.atomic_add(i % 8u, a[i] * 2.0f);
    barrier();
    if_(lane == 0u, [&] {
      const Value sums = tile.load(0u, 4);
      for (uint32_t j = 0; j < 4; ++j) y.atomic_add(8u + j, sums[j]);
      z[group_id()] = z.atomic(AtomicOp::exchange, group_id(), sums[0]) + tile.load(3u);
    });
  });
  std::vector<float> a(256);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(i % 37) - 11.0f;  // exact in any order
  const Launch launch{
      {4, 1, 1},
      {},
      {bytes_of(a), bytes_of(std::vector<float>(12, 1.0f)), bytes_of(std::vector<float>(4, 5.0f))}};
  Capabilities caps = full_capabilities();
  expect_same_when_lowered(k, launch, caps);
  caps.float_atomics = false;
  expect_same_when_lowered(k, launch, caps);
}

TEST(LowerSimple, CopiesThatRunAhead) {
  for (DType type : {f32, f16, i8, u32})
    for (bool narrow : {true, false}) {
      const uint32_t elements = static_cast<uint32_t>(16 / dtype_bytes(type));
      const Kernel k = kernel("async", 32, [&] {
        const auto a = in("a", type);
        const auto y = out("y", type);
        const auto tile = shared(type, 64 * elements);
        const Value at = local_id() * elements, half = constant(u32, 32 * elements);
        async_copy(tile, at, a, at, elements);
        async_commit();
        async_copy_if(local_id() % 3u != 0u, tile, at + half, a, at + half, elements);
        async_commit();
        async_wait(1);
        barrier();
        const Value other = (31u - local_id()) * elements;
        for (uint32_t j = 0; j < elements; ++j) y[at + j] = tile.load(other + j);
        async_wait(0);
        barrier();
        for (uint32_t j = 0; j < elements; ++j) y[at + half + j] = tile.load(other + half + j);
      });
      std::vector<uint32_t> words = awkward_words(64 * 4);
      for (uint32_t& word : words) word &= 0x3bff3bff;  // no infinities or NaN in any of the types
      for (bool async : {true, false}) {
        Capabilities caps = full_capabilities();
        caps.async_copy = async;
        caps.storage_8 = caps.storage_16 = caps.storage_f16 = caps.narrow_arrays = narrow;
        expect_same_when_lowered(k, {{1, 1, 1}, {}, {bytes_of(words), poison(1024)}}, caps);
      }
    }
}

TEST(LowerSimple, FoldedGrids) {
  const Kernel k = kernel("grid", 8, [] {
    const auto y = out("y", u32);
    const auto scale = param("scale", u32);
    const Value group = (group_id(2) * group_count(1) + group_id(1)) * group_count(0) + group_id(0);
    const Value total = group_sum(local_id() * scale);
    y[group * 8u + local_id()] =
        total + group_id(0) + group_id(1) * 100u + group_id(2) * 10000u + group_count(2) * 1000000u;
  });
  Capabilities caps = full_capabilities();
  caps.max_groups = {4, 4, 4};
  for (std::array<uint32_t, 3> groups :
       {std::array<uint32_t, 3>{13, 1, 1}, {3, 5, 1}, {1, 2, 5}, {5, 1, 3}, {4, 4, 1}})
    expect_same_when_lowered(k, {groups, {3}, {poison(8 * 4 * groups[0] * groups[1] * groups[2])}},
                             caps);
}

TEST(LowerSimple, SplitBuffers) {
  const Kernel k = kernel("split", 32, [] {
    const auto a = in("a", u32);
    const auto narrow = inout("narrow", u8);
    const auto sums = inout("sums", u32);
    const auto y = inout("y", u32);
    const Value i = global_id();
    const Value four = a.load(i * 4u, 4);
    sums.atomic_add(four[0] % 200u, 1u);
    const Value gone = a.load_if(i % 3u == 0u, select(i % 3u == 0u, i, constant(u32, 0xffffffffu)));
    y.store_if(i % 5u != 0u, i * 2u, four[1] + four[2] * 3u + gone);
    y[i * 2u + 1u] = narrow.load(i) + four[3];
    narrow[i] = four[0];
  });
  Capabilities caps = full_capabilities();
  caps.max_binding_bytes = 256;
  for (bool bytes : {true, false}) {
    caps.storage_8 = bytes;
    expect_same_when_lowered(k,
                             {{8, 1, 1},
                              {},
                              {bytes_of(awkward_words(1024)), bytes_of(awkward_words(64, 2)),
                               bytes_of(std::vector<uint32_t>(200)), poison(2048)}},
                             caps);
  }
}

TEST(LowerSimple, WordsAcrossThePiecesOfASplitBuffer) {
  for (uint32_t lanes : {2u, 4u})
    for (uint32_t alignment : {1u, 2u}) {
      const Kernel k = kernel("split_words", 32, [&] {
        const auto a = in("a", u8);
        const auto y = out("y", u16);
        const auto z = out("z", u32);
        const Value i = global_id();
        const Value four = a.load_words(i * alignment, lanes, alignment);
        Var sum(u32, 0u);
        for (uint32_t j = 0; j < lanes; ++j) sum = sum * 31u + four[j];
        const Value guarded = a.load_words_if(i % 2u == 0u, i * alignment, lanes, alignment);
        z[i] = sum + guarded[lanes - 1];
        // Offset by `alignment`, so that accesses straddle a boundary.
        y.store_words(i * lanes + alignment, four, alignment);
      });
      Capabilities caps = full_capabilities();
      caps.max_binding_bytes = 256;
      expect_same_when_lowered(
          k,
          {{8, 1, 1},
           {},
           {bytes_of(awkward_words(516)), poison(256 * lanes * 4 + 16), poison(1024)}},
          caps);
    }
}

TEST(LowerSimple, CopiesThatRunAheadOutOfASplitBuffer) {
  const Kernel k = kernel("split_async", 32, [] {
    const auto a = in("a", f32);
    const auto y = out("y", f32);
    const auto tile = shared(f32, 128);
    async_copy(tile, local_id() * 4u, a, global_id() * 4u, 4);
    async_commit();
    async_wait();
    barrier();
    y.store(global_id() * 4u, tile.load((31u - local_id()) * 4u, 4));
  });
  Capabilities caps = full_capabilities();
  caps.max_binding_bytes = 512;
  std::vector<float> a(512);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  expect_same_when_lowered(k, {{4, 1, 1}, {}, {bytes_of(a), poison(2048)}}, caps);
}

TEST(LowerSimple, RawTextIsForItsDialectOnly) {
  const Kernel k = kernel("raw", 32, [] {
    const auto y = out("y", u32);
    const Value x = local_id();
    y[local_id()] = raw("cuda", "{r} = __brev({0})", {x}, Type{u32, 1}, [&] { return x * 3u; });
  });
  Capabilities caps = full_capabilities();
  expect_same_when_lowered(k, {{1, 1, 1}, {}, {poison(128)}}, caps);
  EXPECT_EQ(count_ops(lower(k, caps), Op::raw), 0u);
  caps.dialect = "cuda";
  EXPECT_EQ(count_ops(lower(k, caps), Op::raw), 1u);
}

TEST(LowerSimple, DropsWhatNobodyReads) {
  const Kernel k = kernel("dead", 32, [] {
    const auto a = in("a", f32);
    const auto y = out("y", f32);
    const Value unused = exp(a[global_id()]) * 2.0f;
    if_(unused > 1.0f, [] { (void)(local_id() + 1u); });
    y[global_id()] = 1.0f;
  });
  Capabilities caps = full_capabilities();
  const Kernel lowered = lower(k, caps);
  for (Op op : {Op::exp, Op::gt, Op::load, Op::if_})
    EXPECT_EQ(count_ops(lowered, op), 0u) << ir::op_name(op);
  EXPECT_EQ(count_ops(lowered, Op::wait_previous), 1u);
  caps.dependent_launch = false;
  EXPECT_EQ(count_ops(lower(k, caps), Op::wait_previous), 0u);
}

std::string refusal(const Kernel& k, const Capabilities& caps, const LaunchVariant& variant = {}) {
  try {
    lower(k, caps, variant);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    return error.what();
  }
  return "";
}

TEST(LowerLimits, NamesWhatTheDeviceLacks) {
  const Capabilities full = full_capabilities();
  const Kernel wide = kernel("wide", 64, [] {
    const auto y = out("y", i64);
    const auto tile = shared(f64, 64);
    tile[local_id()] = cast(f64, local_id());
    y[local_id()] = cast(i64, tile.load(local_id()));
  });
  EXPECT_EQ(refusal(wide, full), "");
  Capabilities caps = full;
  caps.math_i64 = false;
  EXPECT_NE(refusal(wide, caps).find("64-bit integers"), std::string::npos);
  caps = full;
  caps.math_f64 = false;
  EXPECT_NE(refusal(wide, caps).find("f64"), std::string::npos);
  caps = full;
  caps.max_group_size = 32;
  EXPECT_NE(refusal(wide, caps).find("groups of 64 lanes; the device allows 32"),
            std::string::npos);
  caps = full;
  caps.shared_bytes = 256;
  EXPECT_NE(refusal(wide, caps).find("512 bytes of shared memory; the device has 256"),
            std::string::npos);
  caps = full;
  caps.max_buffers = 4;
  EXPECT_NE(refusal(wide, caps, {false, {5}}).find("5 bindings"), std::string::npos);
}

}  // namespace
}  // namespace prism
