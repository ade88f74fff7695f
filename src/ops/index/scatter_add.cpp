// Kernels of scatter_add_rows. For few rows they compare all pairs of indices. For many they sort
// the indices first, which makes equal indices neighbours.
#include "ops/index/scatter_add.h"

#include <fmt/format.h>

#include "ops/index/index_reading.h"
#include "ops/rows/sort_kernels.h"
#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

// Up to this many rows the quadratic comparison is cheaper than a sort.
constexpr int64_t kMostCompared = 128;

// One lane per element of rows. For each index, the lane of its first row adds all its rows.
ir::Kernel add_compared_kernel(DType type, bool wide) {
  return kernel("scatter_add_rows", 256, [&] {
    auto indices = in("indices", u32);
    auto rows = in("rows", kernel_type(type));
    auto y = inout("y", kernel_type(type));
    const Value columns = param("columns", u32), count = param("count", u32),
                y_rows = param("y_rows", u32);
    const Value column = global_id(), own = group_id(1);
    const Value index = load_index(indices, own, wide);
    Var first(b1, index < y_rows, "first");
    for_(own, [&](Value other) {
      if_(load_index(indices, other, wide) == index, [&] { first = constant(b1, int64_t{0}); });
    });
    const Value adds = first && column < columns;
    if_(adds, [&] {
      const Value target = index * columns + column;
      const Value before = y[target];
      Var sum(from_loaded(before, type), "sum");
      for_(own, count, 1u, [&](Value other) {
        if_(load_index(indices, other, wide) == index,
            [&] { sum += load_element(rows, other * columns + column, type); });
      });
      y[target] = to_stored(sum, type);
    });
  });
}

// Converts 64-bit indices to words; those beyond 32 bits become -1.
ir::Kernel index_words_kernel() {
  return kernel("index_words", 256, [] {
    auto indices = in("indices", u32);
    auto words = out("words", u32);
    const Value count = param("count", u32), i = global_id();
    if_(i < count, [&] { words[i] = load_index(indices, i, true); });
  });
}

// Group x: a position in the sorted indices. Group y: columns. The group of the first of equal
// indices adds their rows, with four loads in flight.
ir::Kernel add_sorted_kernel(DType type) {
  return kernel("scatter_add_sorted", 256, [&] {
    auto sorted = in("sorted", u32);
    auto places = in("places", u32);
    auto rows = in("rows", kernel_type(type));
    auto y = inout("y", kernel_type(type));
    const Value columns = param("columns", u32), count = param("count", u32),
                y_rows = param("y_rows", u32);
    const Value own = group_id(0), column = group_id(1) * 256u + local_id();
    const Value index = sorted[own];
    const Value first = own == 0u || sorted.load_if(own > 0u, own - 1u) != index;
    if_(first && index < y_rows && column < columns, [&] {
      const Value target = index * columns + column;
      const Value before = y[target];
      Var sum(from_loaded(before, type), "sum"), at(u32, own, "at");
      const auto is_same = [&](Value i) {
        const Value inside = i < count;
        return inside && sorted.load_if(inside, i) == index;
      };
      while_([&] { return is_same(at); },
             [&] {
               for (uint32_t n = 0; n < 4; ++n) {
                 const Value i = Value(at) + n, same = is_same(i);
                 const Value place = places.load_if(same, i);
                 sum += from_loaded(rows.load_if(same, place * columns + column), type);
               }
               at += 4u;
             });
      y[target] = to_stored(sum, type);
    });
  });
}

}  // namespace

void launch_scatter_add(DeviceCall& call, const DeviceView& indices, const DeviceView& rows,
                        const DeviceView& y) {
  const int64_t count = indices.elements();
  if (count == 0 || y.elements() == 0) return;
  const auto word = [](int64_t value) { return ParamValue(static_cast<uint32_t>(value)); };
  const bool wide = is_wide(indices.type);
  const int64_t y_rows = y.layout.shape[0], columns = y.elements() / y_rows;
  const DType type = y.type.plain();
  if (count <= kMostCompared) {
    call.launch(fmt::format("scatter_add_rows {} {}", dtype_name(type), wide ? 64 : 32),
                [&] { return add_compared_kernel(type, wide); },
                {groups_for(columns, 256), static_cast<uint32_t>(count), 1}, {indices, rows, y},
                {word(columns), word(count), word(y_rows)});
    return;
  }
  DeviceView words = indices;
  if (wide) {
    words = call.scratch({count}, DType::i32);
    call.launch("index_words", index_words_kernel, {groups_for(count, 256), 1, 1}, {indices, words},
                {word(count)});
  }
  const DeviceView sorted = call.scratch({count}, DType::i32),
                   places = call.scratch({count}, DType::i32);
  launch_sort(call, words, 1, count, count, false, sorted, places);
  call.launch(fmt::format("scatter_add_sorted {}", dtype_name(type)),
              [&] { return add_sorted_kernel(type); },
              {static_cast<uint32_t>(count), groups_for(columns, 256), 1},
              {sorted, places, rows, y}, {word(columns), word(count), word(y_rows)});
}

}  // namespace prism::ops
