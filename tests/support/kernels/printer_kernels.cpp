// Kernels for corner cases of printers.
#include "support/kernels/printer_kernels.h"

#include <cmath>
#include <limits>
#include <string>

#include "prism/kernel.h"

namespace prism::test {

using namespace dsl;

namespace {

Kernel reads_keep_their_time() {
  return kernel("reads_keep_their_time", 64, [] {
    auto a = inout("a", u32);
    auto y = out("y", u32);
    auto tile = shared(u32, 64, "tile");
    auto own = local(u32, 4, "own");
    auto i = global_id(), lane = local_id();
    Value before = a[i];
    a[i] = before + 1u;
    Value after = a[i];
    Value kept = before * 3u;
    a[i] = 7u;
    Var v(u32, kept, "v");
    Value old = v;
    v = old + 5u;
    Value both = Value(v) * 100u + old;
    v = 0u;
    tile[lane] = both;
    barrier();
    Value neighbour = tile[lane ^ 1u];
    barrier();
    tile[lane] = neighbour + 1u;
    Value mine = tile[lane];
    own[0u] = mine;
    Value first = own[0u];
    own[0u] = 9u;
    Var limit(u32, 5u, "limit");
    Var steps(u32, 0u, "steps");
    for_(0u, limit, 1u, [&](Value k) {  // the bound is read once
      limit = 2u;
      steps += k;
    });
    Value held = limit;
    if_(lane < 32u, [&] { limit = 77u; });
    Value swapped = limit;
    Value ticket = a.atomic(AtomicOp::exchange, i, steps);
    Value now = a[i];
    y[i] = after + both + neighbour + first + held * 1000u + swapped + ticket + now;
  });
}

Kernel taken_names() {
  return kernel("float", 64, [] {
    auto a = in("threadIdx", u32), b = in("device", u32);
    auto y = out("kernel", u32);
    auto n = param("2 lives", u32);
    auto m = param("a__b", u32);
    auto tile = shared(u32, 64, "int");
    Var x(u32, n, "prism_lane");
    Var z(u32, m, "i");
    Var w(u32, n, "t");
    auto i = global_id();
    tile[local_id()] = a[i];
    barrier();
    for_(3u, [&](Value k) { x += k + z; });
    w = w + (i + 1u) * (i + 2u);
    y[i] = x + tile[local_id() ^ 3u] + b[i] + w + w;
  });
}

Kernel wrapping() {
  return kernel("wrapping", 64, [] {
    auto a = in("a", i32), b = in("b", i32);
    auto y = out("y", i32);
    auto i = global_id();
    Value p = a[i], q = b[i];
    Value r = p * q + (p - q) + (p << 5) + (-p) + abs(q);
    r = r + subgroup_sum(p) + subgroup_scan(ReduceOp::add, q, false) +
        subgroup_scan(ReduceOp::max, p, true);
    r = r + constant(i32, std::numeric_limits<int32_t>::min()) + (p >> 3) +
        extract_bits(q, 4u, 28u) + extract_bits(p, 0u, 0u);
    Value v = vec(p, q) * vec(q, p) + splat(r, 2);
    y[i] = v[0] - v[1] * 3;
  });
}

Kernel literals() {
  return kernel("literals", 64, [] {
    auto y = out("y", f32);
    auto z = out("z", u32);
    const float values[] = {0.1f,        -0.0f, 1e-45f,          3.40282347e38f,
                            16777216.0f, -1.5f, 1.17549435e-38f, 0.333333343f};
    auto i = global_id();
    Var sum(f32, 0.0f, "sum");
    for (uint32_t k = 0; k < std::size(values); ++k) {
      z[i * 16u + k] = bitcast(u32, constant(f32, static_cast<double>(values[k])));
      sum += values[k];
    }
    z[i * 16u + 8u] = bitcast(u32, constant_bits(f32, 0x7f800000u));
    z[i * 16u + 9u] = bitcast(u32, constant_bits(f32, 0xff800000u));
    z[i * 16u + 10u] = constant(u32, 4294967295u);
    z[i * 16u + 11u] = bitcast(u32, constant(i32, std::numeric_limits<int32_t>::min()));
    z[i * 16u + 12u] = cast(u32, constant_bits(f32, 0x7fc00000u));
    y[i] = sum;
  });
}

Kernel across_small_types() {
  return kernel("scans", 64, [] {
    auto a = in("a", u32);
    auto y = out("y", u32);
    auto i = global_id();
    Value n = a[i];
    Value r = n;
    for (ReduceOp op : {ReduceOp::add, ReduceOp::min, ReduceOp::max, ReduceOp::bit_and,
                        ReduceOp::bit_or, ReduceOp::bit_xor}) {
      r = r * 31u + subgroup_scan(op, n, false);
      r = r * 31u + subgroup_scan(op, n, true);
      r = r * 31u + subgroup_reduce(op, n);
      r = r * 31u + bitcast(u32, group_reduce(op, bitcast(i32, n)));
    }
    y[i] = r + subgroup_shuffle(n, (subgroup_lane() + 3u) % subgroup_size());
  });
}

// Multiplies `a` and `b`, optionally through shared memory, in either layout; unaligned if the tile
// has odd rows.
Kernel product(const std::string& name, DType type, bool through_shared, Layout a_layout,
               Layout b_layout, uint32_t extra) {
  const DType sum_type = type == i8 ? i32 : f32;
  const uint32_t k = type == i8 ? 32 : 16;
  const FragmentSize size{16, 16, static_cast<uint16_t>(k)};
  return kernel(name, 64, [=] {
    auto a = in("a", type), b = in("b", type);
    auto y = out("y", sum_type);
    auto fa = fragment_a(type, size);
    auto fb = fragment_b(type, size);
    auto sum = accumulator(sum_type, size);
    sum.fill(1);
    const bool a_rows = a_layout == Layout::row_major, b_rows = b_layout == Layout::row_major;
    const uint32_t a_stride = (a_rows ? k : 16) + extra, b_stride = (b_rows ? 16 : k) + extra;
    const uint32_t a_lines = a_rows ? 16 : k, b_lines = b_rows ? k : 16;
    if (through_shared) {
      auto a_tile = shared(type, a_stride * a_lines, "a_tile"),
           b_tile = shared(type, b_stride * b_lines, "b_tile");
      for_(local_id(), a_stride * a_lines, 64u, [&](Value e) { a_tile[e] = a[e]; });
      for_(local_id(), b_stride * b_lines, 64u, [&](Value e) { b_tile[e] = b[e]; });
      barrier();
      fa.load(a_tile, 0u, a_stride, a_layout);
      fb.load(b_tile, 0u, b_stride, b_layout);
    } else {
      fa.load(a, 0u, a_stride, a_layout);
      fb.load(b, 0u, b_stride, b_layout);
    }
    sum.multiply(fa, fb);
    sum.multiply(fa, fb);
    sum.map([&](Value x, Value r, Value c) { return x + cast(sum_type, r * 2u + c); });
    sum.store(y, subgroup_id() * 256u, 16u);
    barrier();
    sum.store(y, subgroup_id() * 512u + 1024u, 17u, Layout::column_major);
  });
}

Kernel reshaped(DType type, const std::string& name) {
  return kernel(name, 64, [=] {
    auto a = in("a", f32);
    auto y = out("y", f32);
    auto z = out("z", type);
    auto fa = fragment_a(type);
    auto fb = fragment_b(type);
    auto first = accumulator(f32), second = accumulator(f32), largest = accumulator(f32);
    first.load(a, 0u, 16u);
    second.load(a, 256u, 16u, Layout::column_major);
    fa.convert(first);
    fb.convert(second);
    largest.fill(0.0f);
    largest.multiply(fa, fb);
    second.row_reduce(ReduceOp::max, largest);
    first.row_reduce(ReduceOp::add, first);
    first.map({first, second}, [&](const std::vector<Value>& x, Value r, Value c) {
      return select(r < c, x[0] - x[1], x[0] + x[1] * 2.0f);
    });
    first.store(y, subgroup_id() * 256u, 16u);
    fa.fill(3.0f);
    largest.store(z, subgroup_id() * 256u, 16u);
    barrier();
    fb.fill(2.0f);
    largest.fill(0.0f);
    largest.multiply(fa, fb);
    largest.store(y, subgroup_id() * 256u + 512u, 16u);
  });
}

// An operand made from pairs of elements, each of them in another way.
Kernel made(DType type, const std::string& name) {
  return kernel(name, 64, [=] {
    auto a = in("a", f32);
    auto b = in("b", type);
    auto y = out("y", f32);
    auto fa = fragment_a(type);
    auto fb = fragment_b(type);
    auto sum = accumulator(f32);
    sum.fill(1);
    fb.load(b, 0u, 16u, Layout::column_major);
    for_(2u, [&](Value step) {
      fa.make([&](Value row, Value k) {
        const Value at = subgroup_id() * 256u + step * 8u + row * 16u + k;
        const Value low = a.load(at), high = select(row < k, a.load(at + 1u), 2.0f);
        if (type == f16) return pack_f16(vec(low, high));
        return (bitcast(u32, low) >> 16u) | (bitcast(u32, high) & 0xFFFF0000u);
      });
      sum.multiply(fa, fb);
    });
    sum.store(y, subgroup_id() * 256u, 16u);
  });
}

}  // namespace

std::vector<Kernel> printer_kernels() {
  return {reads_keep_their_time(), taken_names(), wrapping(), literals(), across_small_types()};
}

std::vector<Kernel> fragment_layout_kernels() {
  std::vector<Kernel> result;
  constexpr Layout rows = Layout::row_major, columns = Layout::column_major;
  for (DType type : {f16, bf16, i8})
    for (bool through_shared : {true, false})
      for (int layout = 0; layout < 4; ++layout) {
        const std::string name = std::string("product_") + dtype_name(type) +
                                 (through_shared ? "_shared_" : "_buffer_") +
                                 std::to_string(layout);
        result.push_back(product(name, type, through_shared, layout & 1 ? columns : rows,
                                 layout & 2 ? columns : rows, type == i8 ? 16 : 8));
        if (layout == 1)
          result.push_back(product(name + "_odd", type, through_shared, rows, columns, 1));
      }
  result.push_back(reshaped(f16, "reshaped_f16"));
  result.push_back(reshaped(bf16, "reshaped_bf16"));
  result.push_back(made(f16, "made_f16"));
  result.push_back(made(bf16, "made_bf16"));
  return result;
}

}  // namespace prism::test
