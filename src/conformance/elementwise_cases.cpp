// Cases of elementwise ops: every function and type, awkward shapes and views.
#include <cmath>

#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "prism/ops/elementwise.h"
#include "tensor/chain/chain.h"

namespace prism {

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,
                            DType::u8,  DType::i16, DType::i32,  DType::i64};

struct Range {
  double low, high;
};

Range range_of(ScalarOp op, DType type) {
  if (!is_float(type)) return {type == DType::u8 ? 0.0 : -60.0, 60.0};
  switch (op) {
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  case ScalarOp::name:                                                                         \
    return {low, high};
#include "base/types/float_functions.inc"
    case ScalarOp::pow:
      return {0.05, 4};
    case ScalarOp::div:
      return {0.25, 4};
    default:
      return {-4, 4};
  }
}

// The reference: the function in float64 over operands broadcast to one shape. Integer results wrap
// to their type.
Values reference_of(ScalarOp op, DType type, std::span<const ReferenceInput> inputs,
                    const Shape& shape) {
  std::vector<Layout> layouts;
  for (const ReferenceInput& each : inputs)
    layouts.push_back(Layout::dense(each.shape).broadcast_to(shape));
  Values result;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    double operand[3] = {};
    for (size_t n = 0; n < inputs.size(); ++n) {
      int64_t rest = i, place = 0;
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        place += rest % shape[axis] * layouts[n].stride(axis);
        rest /= shape[axis];
      }
      operand[n] = inputs[n].values[static_cast<size_t>(place)];
    }
    const DType compute = is_float(type) ? DType::f64 : register_type(type);
    double value = evaluate(op, compute, operand[0], operand[1], operand[2]);
    if (!is_comparison(op) && !is_logical(op)) {  // narrow integers wrap
      const auto whole = is_float(type) ? 0 : static_cast<int64_t>(value);
      if (type == DType::i8) value = static_cast<int8_t>(whole);
      if (type == DType::u8) value = static_cast<uint8_t>(whole);
      if (type == DType::i16) value = static_cast<int16_t>(whole);
    }
    result.push_back(value);
  }
  return result;
}

Tolerance tolerance_of(ScalarOp op, DType type) {
  if (is_comparison(op) || is_logical(op)) return Tolerance::exact();
  Tolerance result = Tolerance::elementwise(type);
  if (op == ScalarOp::pow && type == DType::f32) result.relative = 3e-5;
  return result;
}

// floor_divide keeps the type of its operands, while operator/ gives floats.
void add_floor_divide_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const DType type : {DType::f32, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64}) {
    const double low = type == DType::u8 ? 0 : -60;
    for (const Shape& shape : {Shape{0}, Shape{1}, Shape{67}, Shape{13, 5}}) {
      OpCase test;
      test.op = "floor_divide";
      test.what = fmt::format("{} {}", ElementType(type).name(), shape.text());
      for (int i = 0; i < 2; ++i) {
        test.inputs.push_back({shape, type, random.uniform(shape.elements(), low, 60)});
        for (double& x : test.inputs.back().values) x = std::trunc(x / 8);  // often 0, often even
      }
      if (is_float(type))
        for (double& x : test.inputs[1].values) x = x == 0 ? 1 : x;
      test.compute = [](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {floor_divide(in[0], in[1])};
      };
      test.reference = [](std::span<const ReferenceInput> in) {
        Values result;
        for (size_t i = 0; i < in[0].values.size(); ++i) {
          const double a = in[0].values[i], b = in[1].values[i];
          result.push_back(b == 0 ? 0 : std::floor(a / b));
        }
        return std::vector<Values>{result};
      };
      test.tolerance = Tolerance::exact();
      cases.push_back(std::move(test));
    }
  }
}

// f64 arguments that need range reduction, and results near the limits of the type.
void add_wide_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const std::pair<ScalarOp, Range> wide[] = {
      {ScalarOp::exp, {-745, 690}},     {ScalarOp::log, {1e-300, 1e300}},
      {ScalarOp::sin, {-1e5, 1e5}},     {ScalarOp::cos, {-1e5, 1e5}},
      {ScalarOp::tanh, {-30, 30}},      {ScalarOp::erf, {-8, 8}},
      {ScalarOp::gelu, {-40, 40}},      {ScalarOp::gelu_tanh, {-40, 40}},
      {ScalarOp::sigmoid, {-720, 720}}, {ScalarOp::silu, {-720, 720}},
      {ScalarOp::rsqrt, {1e-9, 1e9}},   {ScalarOp::pow, {1e-3, 60}},
  };
  for (const auto& [op, range] : wide) {
    const ScalarOp code = op;
    OpCase test;
    test.op = scalar_op_name(op);
    const Shape shape{501};
    for (int i = 0; i < scalar_op_operands(op); ++i)
      test.inputs.push_back({shape, DType::f64, random.uniform(501, range.low, range.high)});
    if (op == ScalarOp::log)  // uniform in the exponent
      for (double& x : test.inputs[0].values) x = std::pow(10.0, random.uniform(1, -307, 307)[0]);
    const double edges[] = {std::nan(""), HUGE_VAL, -HUGE_VAL, 0.0, -0.0, 1, -1, 2, -2};
    for (CaseInput& input : test.inputs)
      for (int i = 0; i < 20; ++i)
        input.values[static_cast<size_t>(random.between(0, 500))] = edges[random.between(0, 8)];
    test.what =
        fmt::format("f64 {} from {} to {}, with edges", shape.text(), range.low, range.high);
    test.compute = [code](std::span<const Tensor> in) -> std::vector<Tensor> {
      if (in.size() == 1) return {elementwise(code, in[0])};
      return {elementwise(code, in[0], in[1])};
    };
    test.reference = [code, shape](std::span<const ReferenceInput> in) {
      return std::vector<Values>{reference_of(code, DType::f64, in, shape)};
    };
    test.tolerance = Tolerance::elementwise(DType::f64);
    cases.push_back(std::move(test));
  }
}

// Enough elements for kernels that take four neighbours at once: views of the first operand, and a
// second that is broadcast to it.
void add_large_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  struct Form {
    Shape stored;
    std::function<Tensor(const Tensor&)> view;
    Shape other;
  };
  const auto columns = [](int64_t first) {
    return [=](const Tensor& t) { return t.slice(1, first, first + 128); };
  };
  const std::vector<Form> forms = {
      {{130, 136}, columns(4), {128}},
      {{130, 136}, columns(4), {130, 1}},
      {{130, 131}, columns(3), {128}},  // its rows begin anywhere
      {{40, 6, 128}, [](const Tensor& t) { return t.slice(1, 1, 5); }, {4, 1}},
      {{4, 40, 128}, [](const Tensor& t) { return t.transpose(0, 1); }, {1, 4, 128}}};
  for (const DType type : {DType::f32, DType::f16})
    for (const Form& form : forms) {
      const Layout seen = layout_of(form.stored, form.view);
      OpCase test;
      test.op = "add";
      test.what = fmt::format("{} {} as {} and {}", ElementType(type).name(), form.stored.text(),
                              seen.shape.text(), form.other.text());
      test.inputs = {{form.stored, type, random.uniform(form.stored.elements(), -2, 2), form.view},
                     {form.other, type, random.uniform(form.other.elements(), -2, 2)}};
      test.compute = [](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {in[0] + in[1]};
      };
      test.reference = [type, shape = seen.shape](std::span<const ReferenceInput> in) {
        return std::vector<Values>{reference_of(ScalarOp::add, type, in, shape)};
      };
      test.tolerance = Tolerance::elementwise(type);
      test.gradient = false;
      cases.push_back(std::move(test));
    }
}

}  // namespace

void add_elementwise_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const std::vector<Shape> shapes = {{}, {1}, {0}, {7}, {1031}, {3, 5}, {13, 67}, {2, 3, 4, 5}};
  for (int code = 0; code < kScalarOpCount; ++code) {
    const auto op = static_cast<ScalarOp>(code);
    const int operands = scalar_op_operands(op);
    for (const DType type : kTypes) {
      if (needs_float(op) && !is_float(type)) continue;
      if (is_logical(op) && type != DType::i32) continue;
      for (const Shape& shape : shapes) {
        const Range range = range_of(op, type);
        const bool divides_integers = op == ScalarOp::div && !is_float(type);
        OpCase test;
        test.op = scalar_op_name(op);
        for (int i = 0; i < operands; ++i) {
          Shape own = shape;
          // One operand in four broadcasts.
          if (i > 0 && shape.rank() > 0 && random.between(0, 3) == 0)
            own[static_cast<int>(random.between(0, shape.rank() - 1))] = 1;
          const bool condition = op == ScalarOp::select && i == 0;
          test.inputs.push_back(condition ? random.input(own, DType::b1, 0, 1)
                                          : random.input(own, type,
                                                         divides_integers && i == 1 ? 1 : range.low,
                                                         range.high));
        }
        Shape result = shape;
        for (const CaseInput& each : test.inputs) {
          const Shape seen = each.view
                                 ? each.view(empty(each.shape, each.type, Device::cpu())).shape()
                                 : each.shape;
          result = broadcast("case", result, seen);
        }
        test.what = fmt::format("{} {}", ElementType(type).name(), result.text());
        test.compute = [op, divides_integers](std::span<const Tensor> in) -> std::vector<Tensor> {
          if (in.size() == 1) return {elementwise(op, in[0])};
          if (divides_integers) return {in[0] / in[1]};  // gives floats
          if (in.size() == 2) return {elementwise(op, in[0], in[1])};
          return {where(in[0], in[1], in[2])};
        };
        const DType given = divides_integers ? DType::f32 : type;
        test.reference = [op, given, result](std::span<const ReferenceInput> in) {
          return std::vector<Values>{reference_of(op, given, in, result)};
        };
        test.tolerance = tolerance_of(op, given);
        test.gradient = type == DType::f32 && shape == Shape{3, 5} && !is_comparison(op);
        cases.push_back(std::move(test));
      }
    }
  }
  add_floor_divide_cases(cases, random);
  add_wide_cases(cases, random);
  add_large_cases(cases, random);
}

}  // namespace prism
