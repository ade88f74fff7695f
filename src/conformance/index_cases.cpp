// Cases of index ops: rows read, written and added, and elements taken along axes.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "prism/ops/index.h"

namespace prism {

namespace {

struct RowsShape {
  Shape table, indices;
};
const std::vector<RowsShape>& row_shapes() {
  static const std::vector<RowsShape> all = {
      {{1}, {1}},      {{7}, {13}},      {{5, 1}, {3, 2}},   {{11, 3}, {17}},
      {{37, 64}, {5}}, {{6, 2, 7}, {4}}, {{13, 67}, {2, 3}}, {{9, 16}, {0}},
      {{4, 0}, {3}},   {{3, 260}, {}},   {{64, 8}, {70}},
  };
  return all;
}

CaseInput index_input(CaseRandom& random, const Shape& shape, DType type, int64_t below) {
  CaseInput result = random.input(shape, type, 0, static_cast<double>(below - 1));
  result.differentiable = false;
  return result;
}

// Distinct indices; `below` must be at least their number.
CaseInput distinct_input(CaseRandom& random, const Shape& shape, DType type, int64_t below) {
  Values all(static_cast<size_t>(below));
  std::iota(all.begin(), all.end(), 0.0);
  for (size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[static_cast<size_t>(random.between(0, static_cast<int64_t>(i) - 1))]);
  all.resize(static_cast<size_t>(shape.elements()));
  return {shape, type, all, nullptr, false};
}

Shape joined_shape(const Shape& indices, const Shape& table) {
  Shape shape = indices;
  for (int axis = 1; axis < table.rank(); ++axis) shape.append(table[axis]);
  return shape;
}

void add_gather(std::vector<OpCase>& cases, CaseRandom& random, DType type, DType index_type) {
  for (const RowsShape& each : row_shapes()) {
    OpCase test;
    test.op = "gather_rows";
    test.what = fmt::format("{} {} by {} {}", ElementType(type).name(), each.table.text(),
                            ElementType(index_type).name(), each.indices.text());
    test.inputs = {draw(random, each.table, type),
                   index_input(random, each.indices, index_type, each.table[0])};
    test.compute = [](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {gather_rows(in[0], in[1])};
    };
    test.reference = [](std::span<const ReferenceInput> in) {
      const auto row = static_cast<size_t>(span_of(in[0].shape, 1, in[0].shape.rank()));
      Values y;
      for (const double index : in[1].values) {
        const auto first =
            in[0].values.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(index) * row);
        y.insert(y.end(), first, first + static_cast<std::ptrdiff_t>(row));
      }
      return std::vector<Values>{y};
    };
    test.tolerance = Tolerance::exact();
    test.gradient = type == DType::f32 && each.table.elements() < 100;
    cases.push_back(std::move(test));
  }
}

void add_scatter(std::vector<OpCase>& cases, CaseRandom& random,
                 const std::vector<RowsShape>& shapes, DType type, DType index_type, bool adds) {
  for (const RowsShape& each : shapes) {
    if (adds && type == DType::b1) continue;
    if (!adds && each.indices.elements() > each.table[0]) continue;
    OpCase test;
    test.op = adds ? "scatter_add_rows" : "scatter_rows";
    test.what = fmt::format("{} {} by {} {}", ElementType(type).name(), each.table.text(),
                            ElementType(index_type).name(), each.indices.text());
    const Shape rows = joined_shape(each.indices, each.table);
    // Small values, whose sums fit i8.
    const bool small = adds && !is_float(type);
    test.inputs = {small ? random.input(each.table, type, 0, 3) : draw(random, each.table, type),
                   adds ? index_input(random, each.indices, index_type, each.table[0])
                        : distinct_input(random, each.indices, index_type, each.table[0]),
                   small ? random.input(rows, type, 0, 3) : draw(random, rows, type)};
    test.compute = [adds](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {adds ? scatter_add_rows(in[0], in[1], in[2]) : scatter_rows(in[0], in[1], in[2])};
    };
    test.reference = [adds](std::span<const ReferenceInput> in) {
      const auto row = static_cast<size_t>(span_of(in[0].shape, 1, in[0].shape.rank()));
      Values y = in[0].values;
      for (size_t i = 0; i < in[1].values.size(); ++i) {
        for (size_t c = 0; c < row; ++c) {
          double& to = y[static_cast<size_t>(in[1].values[i]) * row + c];
          to = (adds ? to : 0) + in[2].values[i * row + c];
        }
      }
      return std::vector<Values>{y};
    };
    test.tolerance = adds ? Tolerance::reduction(type, 4) : Tolerance::exact();
    test.gradient = type == DType::f32 && each.table.elements() < 100;
    cases.push_back(std::move(test));
  }
}

struct TakeShape {
  Shape x;
  int axis;
  int64_t taken;
};
const std::vector<TakeShape>& take_shapes() {
  static const std::vector<TakeShape> all = {{{7}, 0, 3},         {{5, 11}, 1, 1},  {{5, 11}, 0, 7},
                                             {{3, 4, 5}, 1, 9},   {{2, 37}, 1, 40}, {{3, 1}, 1, 0},
                                             {{2, 3, 2, 5}, 2, 3}};
  return all;
}

void add_take(std::vector<OpCase>& cases, CaseRandom& random, DType type, DType index_type) {
  for (const TakeShape& each : take_shapes()) {
    OpCase test;
    test.op = "take_along";
    test.what = fmt::format("{} {} axis {}, {} by {}", ElementType(type).name(), each.x.text(),
                            each.axis, each.taken, ElementType(index_type).name());
    Shape shape = each.x;
    shape[each.axis] = each.taken;
    test.inputs = {draw(random, each.x, type),
                   index_input(random, shape, index_type, each.x[each.axis])};
    test.compute = [axis = each.axis](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {take_along(in[0], in[1], axis)};
    };
    test.reference = [axis = each.axis](std::span<const ReferenceInput> in) {
      const Shape &x = in[0].shape, &y_shape = in[1].shape;
      const int64_t inner = span_of(x, axis + 1, x.rank());
      Values y;
      for (int64_t i = 0; i < y_shape.elements(); ++i) {
        const int64_t outer = i / inner / y_shape[axis];
        const auto index = static_cast<int64_t>(in[1].values[static_cast<size_t>(i)]);
        y.push_back(
            in[0].values[static_cast<size_t>((outer * x[axis] + index) * inner + i % inner)]);
      }
      return std::vector<Values>{y};
    };
    test.tolerance = Tolerance::exact();
    test.gradient = type == DType::f32;
    cases.push_back(std::move(test));
  }
}

void add_one_hot(std::vector<OpCase>& cases, CaseRandom& random, DType type, DType index_type) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5}, Shape{0}}) {
    const int64_t classes = 11;
    OpCase test;
    test.op = "one_hot";
    test.what = fmt::format("{} {} of {}", ElementType(type).name(), shape.text(),
                            ElementType(index_type).name());
    test.inputs = {random.input(shape, index_type, -2, static_cast<double>(classes + 1))};
    test.inputs[0].differentiable = false;
    test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {one_hot(in[0], classes, type)};
    };
    test.reference = [=](std::span<const ReferenceInput> in) {
      Values y;
      for (const double index : in[0].values)
        for (int64_t c = 0; c < classes; ++c) y.push_back(index == static_cast<double>(c));
      return std::vector<Values>{y};
    };
    test.tolerance = Tolerance::exact();
    cases.push_back(std::move(test));
  }
}

// More rows than the pairwise comparison handles, so the indices are sorted.
void add_many(std::vector<OpCase>& cases, CaseRandom& random) {
  struct Many {
    RowsShape shape;
    DType type, index;
  };
  for (const Many& each : {Many{{{16, 3}, {5000}}, DType::f32, DType::i32},
                           Many{{{16, 3}, {2049}}, DType::f32, DType::i64},
                           Many{{{1, 5}, {131}}, DType::f32, DType::i32},
                           Many{{{400, 257}, {301}}, DType::f32, DType::i64},
                           Many{{{90, 2}, {37, 7}}, DType::f16, DType::i32},
                           Many{{{50, 3}, {140}}, DType::f64, DType::i64},
                           Many{{{5, 7}, {500}}, DType::i32, DType::i32}}) {
    std::vector<OpCase> many;
    add_scatter(many, random, {each.shape}, each.type, each.index, true);
    const double together = static_cast<double>(each.shape.indices.elements()) /
                            static_cast<double>(each.shape.table[0]);
    if (is_float(each.type)) many[0].tolerance = Tolerance::reduction(each.type, 4 + together);
    many[0].gradient = false;
    cases.push_back(std::move(many[0]));
  }
}

}  // namespace

void add_index_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  add_many(cases, random);
  for (const DType type : kAllTypes) {
    const DType index = random.between(0, 1) ? DType::i32 : DType::i64;
    add_gather(cases, random, type, index);
    add_scatter(cases, random, row_shapes(), type, index, false);
    add_scatter(cases, random, row_shapes(), type, index, true);
    add_take(cases, random, type, index);
    add_one_hot(cases, random, type, index);
  }
}

}  // namespace prism
