// Reduction kernels. A group reduces one long row, several short rows or a tile of neighbouring
// columns. Long rows and columns are reduced in two steps.
//
// min and max compare keys: integers in the order of the values, with NaN above all numbers.
#include "ops/rows/reduce_kernels.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "tensor/chain/chain_kernel.h"

namespace prism {

using namespace dsl;

namespace {

constexpr uint32_t kGroup = 256;

bool is_sum(Reduction kind) { return kind == Reduction::sum || kind == Reduction::mean; }

DType key_type(DType type) { return dtype_bytes(type) == 8 ? i64 : i32; }

// The key to maximise, for min as for max.
Value key_of(Value x, Reduction kind) {
  const DType type = x.element(), key = key_type(type);
  Value result = x;
  Value nan = constant(b1, 0);
  if (is_float(type)) {
    const Value zero = constant(type, 0.0);
    const Value bits = bitcast(key, select(x == zero, zero, x));  // -0 equals +0
    const Value lowest =
        key == i32 ? constant_bits(i32, 0x7fffffffu) : constant_bits(i64, 0x7fffffffffffffffull);
    result = select(bits < constant(key, 0), bits ^ lowest, bits);
    nan = type == f32 ? is_nan(x) : x != x;
    if (!takes_largest(kind)) result = ~result;
    return select(nan, lowest, result);
  }
  return takes_largest(kind) ? result : ~result;
}

Value value_of(Value key, DType type, Reduction kind) {
  const DType key_dtype = key.element();
  const Value highest = key_dtype == i32 ? constant_bits(i32, 0x7fffffffu)
                                         : constant_bits(i64, 0x7fffffffffffffffull);
  if (!is_float(type)) return takes_largest(kind) ? key : ~key;
  const Value ordered = takes_largest(kind) ? key : ~key;
  const Value bits = select(ordered < constant(key_dtype, 0), ordered ^ highest, ordered);
  return bitcast(type, select(key == highest, highest, bits));  // 0x7fff... is a NaN
}

// Whether the key of a maximum belongs to a finite value.
Value is_finite_key(Value key) {
  const bool wide = key.element() == i64;
  const auto bits = [&](uint32_t narrow, uint64_t as_wide) {
    return wide ? constant_bits(i64, as_wide) : constant_bits(i32, narrow);
  };
  const Value infinity = bits(0x7f800000u, 0x7ff0000000000000u),
              minus_infinity = bits(0x807fffffu, 0x800fffffffffffffu);
  return key > minus_infinity && key < infinity;
}

struct Variant {
  Reduction kind;
  RowBinding source;
  DType output;        // stored
  uint32_t lanes = 0;  // per row; 0: reduces columns
  bool picks = false;  // reads the elements at the indices in a buffer
  uint32_t tile = 32;  // neighbouring columns per group
};

// A lane's accumulator: a sum, or the best key and its index.
class Best {
 public:
  Best(Reduction kind, DType type)
      : kind_(kind),
        value_(is_sum(kind) ? type : key_type(type), first(kind, type), "value"),
        place_(i32, constant_bits(i32, 0x7fffffffu), "place") {}

  void take(Value x, Value place) {
    if (is_sum(kind_)) {
      value_ += x;
      return;
    }
    const Value key = key_of(x, kind_);
    if (!is_arg(kind_)) {
      value_ = max(value_, key);
      return;
    }
    const Value at = cast(i32, place);
    take_key(key, at);
  }
  void take_key(Value key, Value at) {
    const Value now = value_, where = place_;
    const Value better = key > now || (key == now && at < where);
    value_ = select(better, key, now);
    place_ = select(better, at, where);
  }
  Value value() const { return value_; }
  Value place() const { return place_; }

 private:
  static Operand first(Reduction kind, DType type) {
    if (is_sum(kind)) return is_float(type) ? constant(type, 0.0) : constant(type, 0);
    return key_type(type) == i32 ? constant_bits(i32, 0x80000000u)
                                 : constant_bits(i64, 0x8000000000000000ull);
  }
  Reduction kind_;
  Var value_, place_;
};

// Tree reduction in shared memory over every `width` lanes, down to the first `stop` of them, which
// hold the results.
struct Joined {
  Value value, place;
};
Joined join_lanes(const Best& best, Reduction kind, uint32_t width, uint32_t stop) {
  const Array values = shared(best.value().element(), kGroup, "values");
  std::optional<Array> places;
  if (is_arg(kind)) places = shared(i32, kGroup, "places");
  const Value lane = local_id();
  values[lane] = best.value();
  if (places) (*places)[lane] = best.place();
  barrier();
  for (uint32_t half = width / 2; half >= stop; half /= 2) {
    if_(lane % width < half, [&] {
      const Value a = values.load(lane), b = values.load(lane + half);
      if (is_sum(kind)) {
        values[lane] = a + b;
      } else if (!places) {
        values[lane] = max(a, b);
      } else {
        const Value a_at = places->load(lane), b_at = places->load(lane + half);
        const Value better = b > a || (b == a && b_at < a_at);
        values[lane] = select(better, b, a);
        (*places)[lane] = select(better, b_at, a_at);
      }
    });
    barrier();
  }
  return {values.load(lane), places ? places->load(lane) : constant(i32, 0)};
}

void write(const Variant& variant, const Array& y, Value index, const Joined& best, Value terms) {
  DType type = register_type(variant.source.chain.output);
  if (is_arg(variant.kind)) {
    y[index] = variant.kind == Reduction::finite_argmax
                   ? select(is_finite_key(best.value), best.place, constant(i32, -1))
                   : best.place;
    return;
  }
  Value value = is_sum(variant.kind) ? best.value : value_of(best.value, type, variant.kind);
  if (variant.kind == Reduction::mean) value = value / cast(type, terms);
  y[index] = to_stored(emit_cast(value, register_type(variant.output)), variant.output);
}

// Group x: a row, or several rows. Group y: the part of the row.
ir::Kernel row_kernel(const Variant& variant) {
  return kernel(fmt::format("{}_rows", reduction_name(variant.kind)), kGroup, [&] {
    RowCode x(variant.source);
    std::optional<In> picks;
    if (variant.picks) picks = in("picks", i32);
    auto y = out("y", kernel_type(variant.output));
    const Value rows = param("rows", u32), length = param("length", u32), part = param("part", u32),
                count = param("count", u32), terms = param("terms", u32);
    x.declare_params(length, constant(u32, 1));
    const uint32_t lanes = variant.lanes;
    const Value lane = local_id() % lanes;
    const Value row = group_id(0) * (kGroup / lanes) + local_id() / lanes;
    const Value begin = group_id(1) * part, end = min(begin + part, count);
    Best best(variant.kind, register_type(variant.source.chain.output));
    if_(row < rows, [&] {
      if (variant.source.by_four && !variant.picks) {
        for_(begin + lane * 4u, end, lanes * 4, [&](Value i) {
          const auto four = x.four_at(row, i);
          for (uint32_t n = 0; n < 4; ++n) best.take(four[n], i + n);
        });
      } else {
        for_(begin + lane, end, lanes, [&](Value i) {
          const Value at = picks ? bitcast(u32, (*picks)[row * count + i]) : i;
          best.take(x.at(row, at), at);
        });
      }
    });
    const bool whole = lanes == kGroup && !is_arg(variant.kind);
    const Joined joined =
        whole ? Joined{group_reduce(is_sum(variant.kind) ? ReduceOp::add : ReduceOp::max,
                                    best.value()),
                       constant(i32, 0)}
              : join_lanes(best, variant.kind, lanes, 1);
    if_(lane == 0u && row < rows,
        [&] { write(variant, y, row * group_count(1) + group_id(1), joined, terms); });
  });
}

// Group x: a tile of neighbouring columns of one outer index. Group y: the part of the columns.
ir::Kernel column_kernel(const Variant& variant) {
  return kernel(fmt::format("{}_columns", reduction_name(variant.kind)), kGroup, [&] {
    RowCode x(variant.source);
    std::optional<In> picks;
    if (variant.picks) picks = in("picks", i32);
    auto y = out("y", kernel_type(variant.output));
    const Value length = param("length", u32), inner = param("inner", u32),
                part = param("part", u32), count = param("count", u32), tiles = param("tiles", u32),
                terms = param("terms", u32);
    x.declare_params(length, inner);
    const uint32_t tile = variant.tile;
    const Value outer = group_id(0) / tiles;
    const Value column = (group_id(0) - outer * tiles) * tile + local_id() % tile;
    const Value begin = group_id(1) * part, end = min(begin + part, count);
    Best best(variant.kind, register_type(variant.source.chain.output));
    if_(column < inner, [&] {
      for_(begin + local_id() / tile, end, kGroup / tile, [&](Value i) {
        const Value at = picks ? bitcast(u32, (*picks)[(outer * count + i) * inner + column]) : i;
        best.take(x.at(outer, at, column), at);
      });
    });
    const Joined joined = join_lanes(best, variant.kind, kGroup, tile);
    if_(local_id() < tile && column < inner, [&] {
      write(variant, y, (outer * group_count(1) + group_id(1)) * inner + column, joined, terms);
    });
  });
}

std::string key_of(const Variant& variant) {
  return fmt::format("reduce {} {} {} {} {} {}", reduction_name(variant.kind), variant.lanes,
                     variant.tile, variant.picks, dtype_name(variant.output), variant.source.key());
}

// Elements of a part: a multiple of four, so that loads of four do not cross its end.
int64_t part_of(int64_t count, int64_t parts) { return ((count + parts - 1) / parts + 3) / 4 * 4; }

// count: reduced elements per row (indices if picked); parts: results per row.
void launch_step(DeviceCall& call, const Variant& variant, const Rows& rows, int64_t count,
                 int64_t parts, const DeviceView* picks, const DeviceView& output, int64_t terms) {
  std::vector<DeviceView> buffers = variant.source.buffers;
  if (picks) buffers.push_back(*picks);
  buffers.push_back(output);
  const auto word = [](int64_t value) { return ParamValue(static_cast<uint32_t>(value)); };
  const int64_t part = part_of(count, parts);
  std::vector<ParamValue> params;
  std::array<uint32_t, 3> groups;
  if (variant.lanes) {
    params = {word(rows.outer), word(rows.length), word(part), word(count), word(terms)};
    groups = {groups_for(rows.outer, kGroup / variant.lanes), static_cast<uint32_t>(parts), 1};
  } else {
    const int64_t tile = variant.tile;
    const int64_t tiles = (rows.inner + tile - 1) / tile;
    params = {word(rows.length), word(rows.inner), word(part),
              word(count),       word(tiles),      word(terms)};
    groups = {static_cast<uint32_t>(rows.outer * tiles), static_cast<uint32_t>(parts), 1};
  }
  params.insert(params.end(), variant.source.params.begin(), variant.source.params.end());
  call.launch(
      key_of(variant), [&] { return variant.lanes ? row_kernel(variant) : column_kernel(variant); },
      groups, buffers, std::move(params));
}

// Enough parts to fill a large device, each with at least 2,048 elements of a row (64 of a column),
// and few enough that one group can reduce their results.
int64_t parts_for(const Rows& rows) {
  const int64_t groups = rows.inner == 1 ? rows.outer : rows.outer * ((rows.inner + 31) / 32);
  const int64_t least = rows.inner == 1 ? 2048 : 64;
  const int64_t wanted = std::clamp<int64_t>(1024 / std::max<int64_t>(1, groups), 1,
                                             std::max<int64_t>(1, rows.length / least));
  const int64_t part = std::max<int64_t>(1, part_of(rows.length, wanted));
  return std::max<int64_t>(1, (rows.length + part - 1) / part);  // no part is empty
}

// Tiles as wide as a cache line, unless most lanes would be idle.
uint32_t tile_for(const Rows& rows) { return rows.inner > 8 ? 32 : 8; }

uint32_t lanes_for(const Rows& rows, int64_t count) {
  if (rows.inner != 1) return 0;
  return count <= 256 ? 32 : kGroup;
}

}  // namespace

const char* reduction_name(Reduction kind) {
  switch (kind) {
    case Reduction::sum:
      return "sum";
    case Reduction::mean:
      return "mean";
    case Reduction::max:
      return "max";
    case Reduction::min:
      return "min";
    case Reduction::argmax:
      return "argmax";
    case Reduction::argmin:
      return "argmin";
    case Reduction::finite_argmax:
      return "finite_argmax";
  }
  return "reduce";
}

void launch_reduction(DeviceCall& call, Reduction kind, const RowBinding& source, const Rows& rows,
                      const DeviceView& output) {
  const DType stored = output.type.plain(), type = register_type(source.chain.output);
  const int64_t parts = parts_for(rows);
  Variant variant{kind,  source,        stored, lanes_for(rows, rows.length / parts),
                  false, tile_for(rows)};
  if (parts == 1)
    return launch_step(call, variant, rows, rows.length, 1, nullptr, output, rows.length);
  const Shape partial{rows.outer, parts, rows.inner};
  if (is_arg(kind)) {
    const DeviceView picks = call.scratch(partial, DType::i32);
    if (kind == Reduction::finite_argmax) variant.kind = Reduction::argmax;
    launch_step(call, variant, rows, rows.length, parts, nullptr, picks, rows.length);
    variant.kind = kind;
    variant.picks = true;
    variant.source.by_four = false;
    variant.lanes = lanes_for(rows, parts);
    return launch_step(call, variant, rows, parts, 1, &picks, output, rows.length);
  }
  const DeviceView sums = call.scratch(partial, type);
  variant.output = type;
  if (kind == Reduction::mean) variant.kind = Reduction::sum;
  launch_step(call, variant, rows, rows.length, parts, nullptr, sums, rows.length);
  const Rows left{rows.outer, parts, rows.inner};
  const Variant last{kind,  bind_plain(sums, left), stored, lanes_for(rows, parts),
                     false, tile_for(rows)};
  launch_step(call, last, left, parts, 1, nullptr, output, rows.length);
}

}  // namespace prism
