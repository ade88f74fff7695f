// Strided copies and fills: memcpy on the CPU, and on other devices the widest units that the
// layouts allow.
#include "ops/shape/strided_copy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

namespace prism::ops {

using namespace dsl;
using prism::Layout;

namespace {

constexpr int kMaxMoveRank = 7;  // 1 + 6 lengths + 14 strides + 2 offsets: 23 of 24 parameters

template <class T>
void move_row(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
              int64_t count) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) y[i * to_stride] = x[i * from_stride];
}

struct Pair {
  Layout from, to;
};

Pair collapsed(const Layout& from, const Layout& to) {
  std::array<Layout, 2> both = {from, to};
  collapse(both);
  return {both[0], both[1]};
}

// Converts contiguous, evenly aligned rows to units of several elements. Returns the unit's bytes.
uint32_t widen(Pair& pair, uint32_t element_bytes) {
  Shape& shape = pair.to.shape;
  const int rank = shape.rank();
  if (rank == 0 || pair.from.stride(-1) != 1 || pair.to.stride(-1) != 1) return element_bytes;
  uint64_t steps = static_cast<uint64_t>(shape[-1]);
  for (const Layout* each : {&pair.from, &pair.to}) {
    steps = std::gcd(steps, static_cast<uint64_t>(std::abs(each->offset)));
    for (int axis = 0; axis + 1 < rank; ++axis)
      steps = std::gcd(steps, static_cast<uint64_t>(std::abs(each->stride(axis))));
  }
  const uint32_t unit = unit_for({steps * element_bytes});
  const auto times = static_cast<int64_t>(unit / element_bytes);
  for (Layout* each : {&pair.from, &pair.to}) {
    each->shape[-1] /= times;
    each->offset /= times;
    for (int axis = 0; axis + 1 < rank; ++axis) each->strides[static_cast<size_t>(axis)] /= times;
  }
  return unit;
}

ir::Kernel strided_copy_kernel(int rank, uint32_t unit) {
  return kernel("strided_copy", 256, [&] {
    auto x = in("x", unit_type(unit));
    auto y = out("y", unit_type(unit));
    const Value count = param("count", u32);
    std::vector<Value> lengths, from, to;
    for (int axis = 1; axis < rank; ++axis)
      lengths.push_back(param(fmt::format("length{}", axis), u32));
    for (int axis = 0; axis < rank; ++axis) from.push_back(param(fmt::format("from{}", axis), u32));
    for (int axis = 0; axis < rank; ++axis) to.push_back(param(fmt::format("to{}", axis), u32));
    const Value from_offset = param("from_offset", u32), to_offset = param("to_offset", u32);
    const Value i = global_id();
    if_(i < count, [&] {
      Value rest = i, source = from_offset, target = to_offset;
      for (int axis = rank - 1; axis >= 0; --axis) {
        Value coordinate = rest;
        if (axis > 0) {
          const Value length = lengths[static_cast<size_t>(axis - 1)], quotient = rest / length;
          coordinate = rest - quotient * length;
          rest = quotient;
        }
        source = source + coordinate * from[static_cast<size_t>(axis)];
        target = target + coordinate * to[static_cast<size_t>(axis)];
      }
      store_unit(y, target, load_unit(x, source, unit), unit);
    });
  });
}

ir::Kernel fill_kernel(uint32_t unit) {
  return kernel("fill", 256, [&] {
    auto y = out("y", unit_type(unit));
    const Value count = param("count", u32), low = param("low", u32), high = param("high", u32);
    const Value i = global_id();
    if_(i < count, [&] {
      store_unit(y, i,
                 unit == 16  ? vec(low, high, low, high)
                 : unit == 8 ? vec(low, high)
                             : low,
                 unit);
    });
  });
}

}  // namespace

uint32_t unit_for(std::initializer_list<uint64_t> byte_steps) {
  uint64_t common = 16;
  for (const uint64_t each : byte_steps) common = std::gcd(common, each);
  return static_cast<uint32_t>(common);
}

DType unit_type(uint32_t unit) { return unit == 1 ? u8 : unit == 2 ? u16 : u32; }

Value load_unit(const Array& from, Value index, uint32_t unit) {
  const uint32_t words = std::max(1u, unit / 4);
  return from.load(words == 1 ? index : index * words, words);
}

Value load_unit_if(Value predicate, const Array& from, Value index, uint32_t unit) {
  const uint32_t words = std::max(1u, unit / 4);
  return from.load_if(predicate, words == 1 ? index : index * words, words);
}

void store_unit(const Array& to, Value index, Value value, uint32_t unit) {
  const uint32_t words = std::max(1u, unit / 4);
  to.store(words == 1 ? index : index * words, value);
}

uint64_t stored_bits(double value, DType type) {
  switch (type) {
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::f64:
      return std::bit_cast<uint64_t>(value);
    case DType::f16:
      return f16_from_f32(static_cast<float>(value));
    case DType::bf16:
      return bf16_from_f32(static_cast<float>(value));
    case DType::b1:
      return value != 0;
    default: {
      if (std::isnan(value)) return 0;
      const uint32_t bits = 8 * ElementType(type).block_bytes();
      const bool is_signed = is_signed_int(type);
      const double high = std::ldexp(1.0, static_cast<int>(is_signed ? bits - 1 : bits));
      const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      if (value >= high) return is_signed ? mask >> 1 : mask;
      const auto whole = static_cast<int64_t>(std::max(value, is_signed ? -high : 0.0));
      return static_cast<uint64_t>(whole) & mask;
    }
  }
}

void strided_copy_cpu(const std::byte* from, const Layout& from_layout, std::byte* to,
                      const Layout& to_layout, size_t element_bytes, ThreadPool& pool) {
  if (from_layout.shape.elements() == 0) return;
  const Pair pair = collapsed(from_layout, to_layout);
  const Shape& shape = pair.to.shape;
  const int rank = shape.rank();
  const auto bytes = static_cast<int64_t>(element_bytes);
  // Long rows are cut into pieces, which threads share.
  constexpr int64_t kPiece = 1 << 14;
  const int64_t inner = rank ? shape[-1] : 1, pieces = (inner + kPiece - 1) / kPiece;
  const int64_t from_step = rank ? pair.from.stride(-1) : 1,
                to_step = rank ? pair.to.stride(-1) : 1;
  const int64_t rows = shape.elements() / inner;
  const uint64_t chunk = static_cast<uint64_t>(std::max<int64_t>(1, kPiece / inner));
  pool.parallel_for(static_cast<uint64_t>(rows * pieces), chunk,
                    [&](uint64_t first, uint64_t last) {
                      for (uint64_t p = first; p < last; ++p) {
                        int64_t row = static_cast<int64_t>(p) / pieces;
                        const int64_t begin = static_cast<int64_t>(p) % pieces * kPiece;
                        const int64_t count = std::min(kPiece, inner - begin);
                        int64_t source = pair.from.offset + begin * from_step;
                        int64_t target = pair.to.offset + begin * to_step;
                        for (int axis = rank - 2; axis >= 0; --axis) {
                          const int64_t coordinate = row % shape[axis];
                          row /= shape[axis];
                          source += coordinate * pair.from.stride(axis);
                          target += coordinate * pair.to.stride(axis);
                        }
                        const std::byte* x = from + source * bytes;
                        std::byte* y = to + target * bytes;
                        if (from_step == 1 && to_step == 1)
                          std::memcpy(y, x, static_cast<size_t>(count * bytes));
                        else if (bytes == 1)
                          move_row<uint8_t>(x, from_step, y, to_step, count);
                        else if (bytes == 2)
                          move_row<uint16_t>(x, from_step, y, to_step, count);
                        else if (bytes == 4)
                          move_row<uint32_t>(x, from_step, y, to_step, count);
                        else
                          move_row<uint64_t>(x, from_step, y, to_step, count);
                      }
                    });
}

void fill_cpu(std::byte* to, int64_t elements, size_t element_bytes, uint64_t bits,
              ThreadPool& pool) {
  const auto fill = [&]<class T>(T value) {
    pool.parallel_for(static_cast<uint64_t>(elements), 1 << 15, [&](uint64_t first, uint64_t last) {
      T* const y = reinterpret_cast<T*>(to);
      std::fill(y + first, y + last, value);
    });
  };
  switch (element_bytes) {
    case 1:
      return fill(static_cast<uint8_t>(bits));
    case 2:
      return fill(static_cast<uint16_t>(bits));
    case 4:
      return fill(static_cast<uint32_t>(bits));
    default:
      return fill(bits);
  }
}

bool movable_on_device(const Layout& from, const Layout& to) {
  return collapsed(from, to).to.shape.rank() <= kMaxMoveRank;
}

void strided_copy_on_device(DeviceCall& call, const DeviceView& from, const DeviceView& to) {
  if (to.elements() == 0) return;
  Pair pair = collapsed(from.layout, to.layout);
  const uint32_t unit = widen(pair, from.type.block_bytes());
  const Shape& shape = pair.to.shape;
  const int rank = std::max(1, shape.rank());
  // Negative strides wrap in 32 bits, as the kernel's sums do.
  const auto word = [](int64_t value) { return ParamValue(static_cast<uint32_t>(value)); };
  std::vector<ParamValue> params = {word(shape.elements())};
  for (int axis = 1; axis < rank; ++axis) params.push_back(word(shape[axis]));
  for (const Layout* each : {&pair.from, &pair.to})
    for (int axis = 0; axis < rank; ++axis)
      params.push_back(word(shape.rank() ? each->stride(axis) : 0));
  params.push_back(word(pair.from.offset));
  params.push_back(word(pair.to.offset));
  DeviceView source = from, target = to;
  source.layout.offset = target.layout.offset = 0;  // offsets are parameters here
  call.launch(
      fmt::format("strided_copy {} {}", rank, unit),
      [&] { return strided_copy_kernel(rank, unit); }, {groups_for(shape.elements(), 256), 1, 1},
      {source, target}, std::move(params));
}

void fill_on_device(DeviceCall& call, const DeviceView& to, uint64_t bits) {
  const uint64_t element_bytes = to.type.block_bytes();
  const uint64_t bytes = static_cast<uint64_t>(to.elements()) * element_bytes;
  if (bytes == 0) return;
  for (uint64_t width = 8 * element_bytes; width < 64; width *= 2) bits |= bits << width;
  const uint32_t unit = unit_for({bytes});
  call.launch(fmt::format("fill {}", unit), [&] { return fill_kernel(unit); },
              {groups_for(static_cast<int64_t>(bytes / unit), 256), 1, 1}, {to},
              {static_cast<uint32_t>(bytes / unit), static_cast<uint32_t>(bits),
               static_cast<uint32_t>(bits >> 32)});
}

}  // namespace prism::ops
