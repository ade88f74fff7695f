// Cases of view_gradient: every kind of view and type.
#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "ops/shape/view_gradient.h"

namespace prism {

namespace {

struct ViewCase {
  const char* name;
  Shape base;
  std::function<Tensor(const Tensor&)> view;
};

const std::vector<ViewCase>& views() {
  static const std::vector<ViewCase> all = {
      {"all", {3, 5}, [](const Tensor& t) { return t; }},
      {"no elements", {3, 5}, [](const Tensor& t) { return t.slice(0, 1, 1); }},
      {"no base", {0, 5}, [](const Tensor& t) { return t.transpose(); }},
      {"one row", {7, 13}, [](const Tensor& t) { return t.select(0, 4); }},
      {"one column", {7, 13}, [](const Tensor& t) { return t.select(1, 4); }},
      {"one element", {7, 13}, [](const Tensor& t) { return t.select(1, 4).select(0, 6); }},
      {"rows", {11, 16}, [](const Tensor& t) { return t.slice(0, 2, 9); }},
      {"every third", {5, 31}, [](const Tensor& t) { return t.slice(1, 1, 31, 3); }},
      {"backwards", {5, 31}, [](const Tensor& t) { return t.slice(1, 30, -40, -1); }},
      {"backwards by two",
       {5, 31},
       [](const Tensor& t) { return t.slice(1, 30, -40, -2).slice(0, 4, -9, -1); }},
      {"transposed", {37, 41}, [](const Tensor& t) { return t.transpose(); }},
      {"permuted",
       {2, 3, 4, 5},
       [](const Tensor& t) {
         return t.permute({2, 0, 3, 1});
       }},
      {"columns", {13, 64}, [](const Tensor& t) { return t.slice(1, 16, 48); }},
      {"reshaped part",
       {6, 8},
       [](const Tensor& t) {
         return t.slice(0, 2, 5).reshape({3, 2, 4});
       }},
      {"expanded rows",
       {5},
       [](const Tensor& t) {
         return t.expand(Shape{7, 5});
       }},
      {"expanded columns",
       {5, 1},
       [](const Tensor& t) {
         return t.expand(Shape{5, 9}).transpose();
       }},
      {"expanded twice",
       {4, 6},
       [](const Tensor& t) {
         return t.slice(1, 2, 3).expand(Shape{3, 4, 5}).slice(1, 1, 4, 2);
       }},
      {"expanded to nothing",
       {1, 6},
       [](const Tensor& t) {
         return t.expand(Shape{0, 6});
       }},
      {"seven axes",
       {3, 3, 3, 3, 3, 3, 3},
       [](const Tensor& t) {
         Tensor part = t;
         for (int axis = 0; axis < 7; ++axis) part = part.slice(axis, 0, 2);
         return part.permute({6, 5, 4, 3, 2, 1, 0});
       }},
  };
  return all;
}

}  // namespace

void add_view_gradient_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const ViewCase& each : views()) {
    const Layout layout = layout_of(each.base, each.view);
    bool sums = false;
    for (int axis = 0; axis < layout.shape.rank(); ++axis) sums |= layout.stride(axis) == 0;
    for (const DType type : kAllTypes) {
      if (sums && type == DType::b1) continue;
      OpCase test;
      test.op = "view_gradient";
      test.what = fmt::format("{} {} of {}", ElementType(type).name(), each.name, each.base.text());
      // Small values, whose sums fit i8.
      test.inputs = {sums && !is_float(type) ? random.input(layout.shape, type, 0, 3)
                                             : draw(random, layout.shape, type)};
      test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {view_gradient(in[0], each.base, layout)};
      };
      test.reference = [=](std::span<const ReferenceInput> in) {
        Values y(static_cast<size_t>(each.base.elements()), 0.0);
        walk(layout, [&](size_t i, size_t place) { y[place] += in[0].values[i]; });
        return std::vector<Values>{y};
      };
      test.tolerance = sums ? Tolerance::reduction(type) : Tolerance::exact();
      test.gradient = type == DType::f32;
      cases.push_back(std::move(test));
    }
  }
}

}  // namespace prism
