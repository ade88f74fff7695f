// Kernels that use every operation of the kernel language.
#include "support/kernels/op_kernels.h"

#include <string>

#include "prism/kernel.h"

namespace prism::test {

using namespace dsl;

namespace {

Kernel float_arithmetic() {
  return kernel("float_arithmetic", 64, [] {
    auto a = in("a", f32), b = in("b", f32);
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto scale = param("scale", f32);
    auto i = global_id();
    if_(i < count, [&] {
      Value x = a[i], z = b[i];
      Value r = x + z * scale - x / z;
      r = fma(r, x, -z);
      r = min(r, abs(x)) + max(r, z);
      r = r + floor(x) + ceil(x) + trunc(x) + round_even(x);
      r = r + sqrt(abs(x)) + rsqrt(abs(z) + 1.0f);
      y[i] = select(x < z || x >= 2.0f, r, select(is_nan(x) && x != z, 0.0f, r + 1.0f));
    });
  });
}

Kernel float_functions() {
  return kernel("float_functions", 64, [] {
    auto a = in("a", f32);
    auto y = out("y", f32);
    auto i = global_id();
    Value x = a[i];
    y[i] = exp(x) + exp2(x) + log(abs(x) + 1.0f) + log2(abs(x) + 1.0f) + sin(x) + cos(x) + tanh(x);
  });
}

Kernel integer_arithmetic() {
  return kernel("integer_arithmetic", 64, [] {
    auto a = in("a", i32), b = in("b", i32);
    auto y = out("y", i32);
    auto z = out("z", u32);
    auto i = global_id();
    Value p = a[i], q = b[i];
    Value r = div_trunc(p, q) + rem_trunc(p, q) + div_floor(p, q) + mod_floor(p, q);
    r = r + mul_high(p, q) + abs(p) - min(p, q) * max(p, -q);
    r = r + (p << (q & 31)) + (p >> (q & 31)) + extract_bits(p, constant(u32, 3), constant(u32, 7));
    y[i] = r;
    Value u = bitcast(u32, p), v = bitcast(u32, q);
    Value s = u / (v | 1u) + u % (v | 1u) + mul_high(u, v) + (u << (v & 31u)) + (u >> (v & 31u));
    s = s + extract_bits(u, constant(u32, 5), constant(u32, 9));
    s = s ^ insert_bits(u, v, constant(u32, 4), constant(u32, 8));
    s = s + popcount(u) + count_leading_zeros(v) + (~u & v) + (u | v);
    z[i] = select(u == v || !(u < v), s, s + min(u, v) + max(u, v));
  });
}

Kernel conversions() {
  return kernel("conversions", 64, [] {
    auto a = in("a", f32);
    auto b = in("b", i32);
    auto y = out("y", f32);
    auto z = out("z", u32);
    auto i = global_id();
    Value x = a[i];
    Value n = b[i];
    Value whole = cast(i32, x), natural = cast(u32, x);
    y[i] = cast(f32, whole) + cast(f32, natural) + cast(f32, n) + cast(f32, n > 3) +
           cast(f32, cast(b1, x));
    z[i] = cast(u32, n) + bitcast(u32, x) + cast(u32, cast(b1, n)) + cast(u32, x < 1.0f);
  });
}

Kernel packing() {
  return kernel("packing", 64, [] {
    auto a = in("a", u32);
    auto x = in("x", f32);
    auto y = out("y", u32);
    auto z = out("z", f32);
    auto i = global_id();
    Value w = a[i];
    Value signed_bytes = unpack_i8(w), bytes = unpack_u8(w);
    Value packed = pack_8(bytes) + pack_8(signed_bytes);
    Value dots =
        bitcast(u32, dot4_i8(w, packed, constant(i32, 7))) + dot4_u8(w, packed, constant(u32, 9));
    y[i] = packed + dots + pack_f16(vec(x[i], x[i] + 1.0f));
    Value pair = unpack_f16(w);
    z[i] = pair[0] + pair[1];
  });
}

Kernel vectors() {
  return kernel("vectors", 64, [] {
    auto a = in("a", f32);
    auto b = in("b", f32);
    auto y = out("y", f32);
    auto i = global_id();
    Value x = a.load(i * 4u, 4), z = b.load(i * 4u, 4);
    Value r = fma(x, z, splat(0.5f, 4)) + min(x, z) - max(x, -z) / (abs(z) + splat(1.0f, 4));
    r = select(x < z, r, splat(0.0f, 4));
    r = select(x[0] < 1.0f, r, x);
    Value pair = vec(r[0] + r[1], r[2] - r[3]);
    Value bits = bitcast(Type{DType::u32, 4}, r) & splat(0xffff0000u, 4);
    y.store(i * 4u, bitcast(Type{DType::f32, 4}, bits));
    y.store(i * 4u, vec(pair[1], pair[0]));
  });
}

Kernel words() {
  return kernel("words", 64, [] {
    auto a = in("a", f32);
    auto b = in("b", u8);
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto i = global_id();
    Value four = a.load_words(i * 4u, 4, 4);
    Value loose = a.load_words_if(i < count, i, 4, 1);
    Value half = a.load_words(i * 2u, 4, 2);
    Value two = b.load_words_if(i < count, i * 2u, 2, 2);
    Value one = b.load_words(i);
    y.store_words(i * 4u, four + loose + half, 4);
    y.store_words(i * 2u, two, 1);
    y.store_words(i, one);
  });
}

Kernel narrow_storage(DType type, const std::string& name) {
  return kernel(name, 64, [=] {
    auto a = in("a", type);
    auto y = out("y", type);
    auto count = param("count", u32);
    auto tile = shared(type, 256, "tile");
    auto own = local(type, 4, "own");
    auto i = global_id();
    own[i & 3u] = a.load_if(i < count, i);
    tile[local_id()] = own[i & 3u];
    barrier();
    Value x = tile[local_id() ^ 1u];
    y.store_if(i < count, i, x + x);
    Value four = a.load_if(i * 4u < count, i * 4u, 4);
    barrier();
    tile.store(local_id() * 4u, four);
    barrier();
    y.store_if(i * 4u < count, i * 4u, tile.load(local_id() * 4u, 4));
  });
}

Kernel control_flow() {
  return kernel("control_flow", 64, [] {
    auto a = in("a", u32);
    auto y = out("y", u32);
    auto count = param("count", u32);
    auto i = global_id();
    Var sum(u32, 0u, "sum");
    for_(i, count, constant(u32, 64), [&](Value k) {
      if_(a[k] == 7u, [&] { break_(); });
      sum += a[k];
    });
    unrolled_for(4, [&](Value k) { sum += k; });
    Var n(u32, count, "n");
    while_([&] { return Value(n) > 1u; },
           [&] {
             if_((n & 1u) == 1u, [&] { n = n * 3u + 1u; }, [&] { n = n >> 1u; });
             sum += 1u;
             if_(sum > 1000u, [&] { break_(); });
           });
    for_(constant(i32, -4), constant(i32, 4), constant(i32, 2),
         [&](Value k) { for_(3u, [&](Value m) { sum += bitcast(u32, k) * m; }); });
    Var flag(b1, i < count, "flag");
    flag = flag && (sum != 3u);
    if_(
        flag, [&] { y[i] = sum; }, [&] { y[i] = n; });
  });
}

Kernel atomics() {
  return kernel("atomics", 64, [] {
    auto a = in("a", u32);
    auto counts = inout("counts", u32);
    auto extremes = inout("extremes", i32);
    auto total = inout("total", f32);
    auto bins = shared(u32, 64, "bins");
    auto sums = shared(f32, 64, "sums");
    auto lane = local_id();
    bins[lane] = 0u;
    sums[lane] = 0.0f;
    barrier();
    Value x = a[global_id()];
    bins.atomic_add(x & 63u, 1u);
    sums.atomic_add(x & 63u, cast(f32, x));
    barrier();
    Value old = counts.atomic(AtomicOp::exchange, lane, bins[lane]);
    counts.atomic(AtomicOp::bit_or, lane, old);
    counts.atomic(AtomicOp::bit_and, lane, 0xffffu);
    counts.atomic(AtomicOp::bit_xor, lane, x);
    counts.atomic(AtomicOp::min, lane, x);
    counts.atomic(AtomicOp::max, lane, x);
    counts.compare_exchange(lane, constant(u32, 3), constant(u32, 4));
    extremes.atomic(AtomicOp::min, lane, bitcast(i32, x));
    extremes.atomic(AtomicOp::max, lane, bitcast(i32, x));
    total.atomic_add(lane, sums[lane]);
    total.atomic(AtomicOp::exchange, lane + 64u, sums[lane]);
  });
}

Kernel across_lanes() {
  return kernel("across_lanes", 64, [] {
    auto a = in("a", f32);
    auto b = in("b", u32);
    auto y = out("y", f32);
    auto z = out("z", u32);
    auto i = global_id();
    Value x = a[i], n = b[i];
    Value f = subgroup_sum(x) + subgroup_max(x) + subgroup_reduce(ReduceOp::min, x);
    f = f + subgroup_scan(ReduceOp::add, x, false) + subgroup_scan(ReduceOp::add, x, true);
    f = f + subgroup_shuffle(x, subgroup_lane() ^ 1u) + subgroup_shuffle_xor(x, 2);
    f = f + group_sum(x) + group_max(x);
    Value u = subgroup_reduce(ReduceOp::bit_and, n) + subgroup_reduce(ReduceOp::bit_or, n);
    u = u + subgroup_reduce(ReduceOp::bit_xor, n) + subgroup_reduce(ReduceOp::max, n);
    u = u + subgroup_scan(ReduceOp::add, n, true);
    Value s = bitcast(i32, n);
    u = u + bitcast(u32, subgroup_reduce(ReduceOp::min, s) + subgroup_reduce(ReduceOp::max, s));
    y[i] = f;
    z[i] = u + subgroup_id() + subgroup_lane() + subgroup_size();
  });
}

Kernel copies() {
  return kernel("copies", 64, [] {
    auto a = in("a", f32);
    auto y = out("y", f32);
    auto tile = shared(f32, 256, "tile");
    auto lane = local_id();
    async_copy(tile, lane * 4u, a, group_id() * 256u + lane * 4u, 4);
    async_commit();
    async_wait();
    barrier();
    launch_next();
    comment("each lane reads another's");
    y[global_id()] = tile[(lane * 4u + 5u) & 255u];
  });
}

Kernel grid() {
  return kernel("grid", 64, [] {
    auto y = out("y", u32);
    Value group = (group_id(2) * group_count(1) + group_id(1)) * group_count(0) + group_id(0);
    y[group * 64u + local_id()] = group;
  });
}

}  // namespace

std::vector<Kernel> op_kernels() {
  return {float_arithmetic(),
          float_functions(),
          integer_arithmetic(),
          conversions(),
          packing(),
          vectors(),
          words(),
          narrow_storage(u8, "storage_u8"),
          narrow_storage(i8, "storage_i8"),
          narrow_storage(u16, "storage_u16"),
          narrow_storage(i16, "storage_i16"),
          narrow_storage(f16, "storage_f16"),
          narrow_storage(bf16, "storage_bf16"),
          control_flow(),
          atomics(),
          across_lanes(),
          copies(),
          grid()};
}

std::vector<Kernel> f16_kernels() {
  return {kernel("values_f16", 64, [] {
    auto a = in("a", f16);
    auto y = out("y", f16);
    auto i = global_id();
    Value x = cast(f16, a[i]);
    Value r = fma(x, x, x) + x * cast(f16, 0.5f) - abs(x);
    r = select(r < x, max(r, x), r);
    y[i] = cast(f32, r) + cast(f32, cast(f16, cast(i32, r)));
  })};
}

std::vector<Kernel> i64_kernels() {
  return {kernel("values_i64", 64, [] {
    auto a = in("a", i64);
    auto b = in("b", u32);
    auto y = out("y", u64);
    auto i = global_id();
    Value x = a[i];
    Value wide = cast(u64, b[i]) * cast(u64, b[i + 1u]);
    Value mixed =
        bitcast(u64, x + cast(i64, bitcast(i32, b[i]))) ^ bitcast(u64, vec(b[i], b[i + 1u]));
    y[i] = select(x < cast(i64, constant(i32, -5)), wide + (mixed >> cast(u64, 3u)),
                  mixed << cast(u64, 7u));
  })};
}

std::vector<Kernel> fence_kernels() {
  return {kernel("fences", 64, [] {
    auto a = in("a", u32);
    auto parts = inout("parts", u32);
    auto counters = inout("counters", u32);
    auto y = out("y", u32);
    parts[global_id()] = a[global_id()] & 0xffffu;
    device_fence();
    barrier();
    Var arrived(u32, 0u, "arrived");
    if_(local_id() == 0u, [&] { arrived = counters.atomic_add(group_id() % 2u, 1u) & 0xffu; });
    const Value number = group_max(arrived);
    device_fence();
    y[global_id()] = parts[group_id() * 64u + ((local_id() + 1u) & 63u)] + number;
  })};
}

std::vector<Kernel> f64_kernels() {
  return {kernel("values_f64", 64, [] {
    auto a = in("a", f64);
    auto b = in("b", f32);
    auto y = out("y", f64);
    auto i = global_id();
    Value x = a[i];
    Value r = fma(x, x, cast(f64, b[i])) + sqrt(abs(x)) * floor(x);
    y[i] = r + cast(f64, cast(f32, x)) + cast(f64, cast(i32, x)) + max(x, r);
  })};
}

std::vector<Kernel> fragment_kernels() {
  return {kernel("fragments", 64, [] {
    auto x = in("x", f16), w = in("w", f16);
    auto y = out("y", f32);
    auto depth = param("depth", u32);
    auto tile = shared(f16, 16 * 16, "tile");
    auto a = fragment_a(f16);
    auto b = fragment_b(f16);
    auto sum = accumulator(f32);
    sum.fill(0.0f);
    for_(constant(u32, 0), depth, constant(u32, 16), [&](Value k) {
      for_(local_id(), constant(u32, 256), constant(u32, 64),
           [&](Value e) { tile[e] = x[k * 16u + e]; });
      barrier();
      a.load(tile, 0u, 16u);
      b.load(w, k, depth, Layout::column_major);
      sum.multiply(a, b);
      barrier();
    });
    sum.store(y, group_id() * 256u, 16u);
  })};
}

}  // namespace prism::test
