// Cases of norms: types, lengths, with and without weight and bias, after a residual.
#include <cmath>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/norm.h"

namespace prism {

namespace {

constexpr double kEpsilon = 1e-5;

Values reference_of(const ReferenceInput& x, bool centred, const Values* weight,
                    const Values* bias) {
  const auto n = static_cast<size_t>(x.shape[-1]);
  Values result;
  for (size_t first = 0; n > 0 && first < x.values.size(); first += n) {
    double mean = 0, squares = 0;
    for (size_t i = 0; centred && i < n; ++i) mean += x.values[first + i] / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i)
      squares += (x.values[first + i] - mean) * (x.values[first + i] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + kEpsilon);
    for (size_t i = 0; i < n; ++i) {
      double value = (x.values[first + i] - mean) * scale;
      if (weight) value *= (*weight)[i];
      if (bias) value += (*bias)[i];
      result.push_back(value);
    }
  }
  return result;
}

struct Form {
  bool centred, weight, bias, residual;
};

OpCase norm_case(const Form& form, DType type, DType vector_type, const Shape& shape, double around,
                 CaseRandom& random) {
  OpCase test;
  test.op = form.centred ? "layer_norm" : "rms_norm";
  test.what = fmt::format("{} {}{}{}{}{}", ElementType(type).name(), shape.text(),
                          form.weight ? " weight" : "", form.bias ? " bias" : "",
                          form.residual ? " of x + r" : "",
                          around != 0 ? fmt::format(" around {}", around) : "");
  test.inputs = {random.input(shape, type, around - 2, around + 2)};
  if (form.residual) test.inputs.push_back(random.input(shape, type));
  for (const bool wanted : {form.weight, form.bias})
    if (wanted) test.inputs.push_back(random.input({shape[-1]}, vector_type));
  test.compute = [form](std::span<const Tensor> in) -> std::vector<Tensor> {
    const Tensor x = form.residual ? in[0] + in[1] : in[0];
    size_t next = form.residual ? 2 : 1;
    const Tensor weight = form.weight ? in[next++] : Tensor();
    const Tensor bias = form.bias ? in[next] : Tensor();
    return {form.centred ? layer_norm(x, weight, bias, kEpsilon) : rms_norm(x, weight, kEpsilon)};
  };
  test.reference = [form](std::span<const ReferenceInput> in) {
    ReferenceInput x = in[0];
    if (form.residual)
      for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += in[1].values[i];
    size_t next = form.residual ? 2 : 1;
    const Values* weight = form.weight ? &in[next++].values : nullptr;
    const Values* bias = form.bias ? &in[next].values : nullptr;
    return std::vector<Values>{reference_of(x, form.centred, weight, bias)};
  };
  test.tolerance = Tolerance::reduction(type, 4);
  if (type == DType::f16 && form.residual) test.tolerance = {1e-5, 5e-3, 5e-3};
  if (around != 0) test.tolerance = {1e-6, 1e-3, 1e-3};
  test.gradient =
      type == DType::f32 && shape.elements() <= 60 && shape.elements() > 0 && shape[-1] > 2;
  return test;
}

}  // namespace

void add_norm_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const std::vector<Shape> shapes = {{7},      {3, 5},    {1, 1},       {2, 3, 8}, {13, 67},
                                     {5, 128}, {3, 1031}, {2, 2, 1024}, {0, 8},    {3, 576}};
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    for (const Shape& shape : shapes) {
      for (const Form& form : {Form{true, true, true, false}, Form{true, false, false, false},
                               Form{false, true, false, false}, Form{false, false, false, false}})
        cases.push_back(norm_case(form, type, type, shape, 0, random));
    }
  }
  for (const Shape& shape : {Shape{3, 4096}, Shape{2, 8192}, Shape{2, 12000}, Shape{2, 9001}}) {
    cases.push_back(norm_case({true, true, true, false}, DType::f32, DType::f32, shape, 0, random));
    cases.push_back(
        norm_case({false, true, false, false}, DType::f32, DType::f32, shape, 0, random));
  }
  for (const Shape& shape : {Shape{4, 6}, Shape{5, 68}, Shape{5, 67}})
    for (const bool centred : {false, true})
      for (const DType type : {DType::f32, DType::f16})
        cases.push_back(norm_case({centred, true, centred, true}, type, type, shape, 0, random));
  for (const Shape& shape : {Shape{4, 68}, Shape{4, 67}}) {
    cases.push_back(
        norm_case({true, true, false, false}, DType::f16, DType::f32, shape, 0, random));
    cases.push_back(
        norm_case({false, true, false, false}, DType::bf16, DType::f32, shape, 0, random));
    // A mean much larger than the spread.
    cases.push_back(
        norm_case({true, false, false, false}, DType::f32, DType::f32, shape, 300, random));
  }
}

}  // namespace prism
