// Cases of softmax, cross entropy and Sinkhorn's balancing: every float type, lengths from 1 to
// more than a group holds, every axis, infinities, ignored rows.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "ops/rows/sinkhorn.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/softmax.h"

namespace prism {

namespace {

Values reference_of(const ReferenceInput& x, int axis, bool logarithm) {
  const int64_t length = x.shape.rank() ? x.shape[axis] : 1;
  int64_t inner = 1;
  for (int a = axis + 1; a < x.shape.rank(); ++a) inner *= x.shape[a];
  Values result(x.values.size());
  for (size_t at = 0; at < x.values.size(); ++at) {
    const auto i = static_cast<int64_t>(at);
    if (i / inner % length != 0) continue;
    const auto place = [&](int64_t k) { return static_cast<size_t>(i + k * inner); };
    double top = -HUGE_VAL, sum = 0;
    for (int64_t k = 0; k < length; ++k) top = std::fmax(top, x.values[place(k)]);
    for (int64_t k = 0; k < length; ++k) sum += std::exp(x.values[place(k)] - top);
    for (int64_t k = 0; k < length; ++k) {
      const double shifted = x.values[place(k)] - top;
      result[place(k)] = logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
    }
  }
  return result;
}

Tolerance tolerance_of(DType type) {
  Tolerance result = Tolerance::elementwise(type);
  if (type == DType::f32) result = {1e-10, 1e-5, 2e-6};
  if (type == DType::f64) result = {1e-20, 1e-9, 1e-11};
  return result;
}

OpCase softmax_case(bool logarithm, DType type, const Shape& shape, int axis, CaseRandom& random) {
  OpCase test;
  test.op = logarithm ? "log_softmax" : "softmax";
  test.what = fmt::format("{} {} axis {}", ElementType(type).name(), shape.text(), axis);
  test.inputs = {random.input(shape, type, -6, 6)};
  test.compute = [logarithm, axis](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {logarithm ? log_softmax(in[0], axis) : softmax(in[0], axis)};
  };
  test.reference = [logarithm, axis](std::span<const ReferenceInput> in) {
    return std::vector<Values>{reference_of(in[0], axis, logarithm)};
  };
  test.tolerance = tolerance_of(type);
  test.gradient = type == DType::f32 && shape.elements() <= 60 && shape.elements() > 0;
  return test;
}

OpCase entropy_case(DType type, int64_t rows, int64_t classes, bool mean, bool ignore,
                    CaseRandom& random) {
  OpCase test;
  test.op = "cross_entropy";
  test.what = fmt::format("{} [{}, {}]{}{}", ElementType(type).name(), rows, classes,
                          mean ? " mean" : " by row", ignore ? ", class 0 ignored" : "");
  CaseInput target;
  target.shape = {rows};
  target.type = DType::i32;
  target.values = random.integers(rows, 0, classes - 1);
  if (rows > 1 && ignore) target.values[0] = 0, target.values[1] = static_cast<double>(classes - 1);
  target.differentiable = false;
  test.inputs = {random.input({rows, classes}, type, -6, 6), target};
  const int32_t ignored = ignore ? 0 : kNoIgnoredIndex;
  test.compute = [mean, ignored](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {mean ? cross_entropy(in[0], in[1], ignored)
                 : cross_entropy_rows(in[0], in[1], ignored)};
  };
  test.reference = [mean, ignored](std::span<const ReferenceInput> in) {
    const Values logs = reference_of(in[0], 1, true);
    Values losses;
    double total = 0, counted = 0;
    for (size_t row = 0; row < in[1].values.size(); ++row) {
      const auto wanted = static_cast<int64_t>(in[1].values[row]);
      const bool skipped = wanted == ignored;
      losses.push_back(
          skipped ? 0
                  : -logs[row * static_cast<size_t>(in[0].shape[1]) + static_cast<size_t>(wanted)]);
      total += losses.back();
      counted += skipped ? 0 : 1;
    }
    return std::vector<Values>{mean ? Values{total / counted} : losses};
  };
  test.tolerance = {1e-9, 1e-5, 1e-5};
  if (type == DType::f64) test.tolerance = {1e-18, 1e-9, 1e-10};
  test.gradient = type == DType::f32 && rows * classes <= 60;
  return test;
}

// Matrices of n rows and columns, balanced in float64.
Values balanced(Values x, size_t n, int64_t steps, double epsilon) {
  for (size_t first = 0; first < x.size(); first += n * n) {
    const auto at = [&](size_t row, size_t column) -> double& {
      return x[first + row * n + column];
    };
    for (size_t row = 0; row < n; ++row) {
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += std::exp(at(row, i));
      for (size_t i = 0; i < n; ++i) at(row, i) = std::exp(at(row, i)) / sum + epsilon;
    }
    for (int64_t step = 0; step < steps; ++step)
      for (const bool by_rows : {true, false}) {
        if (by_rows && step == 0) continue;
        for (size_t i = 0; i < n; ++i) {
          double sum = epsilon;
          for (size_t k = 0; k < n; ++k) sum += by_rows ? at(i, k) : at(k, i);
          for (size_t k = 0; k < n; ++k) (by_rows ? at(i, k) : at(k, i)) /= sum;
        }
      }
  }
  return x;
}

OpCase sinkhorn_case(int64_t count, int64_t n, int64_t steps, CaseRandom& random) {
  constexpr double kEpsilon = 1e-3;  // large enough to change the result
  OpCase test;
  test.op = "sinkhorn";
  test.what = fmt::format("{} matrices of {}, {} steps", count, n, steps);
  test.inputs = {random.input({count, n, n}, DType::f32, -6, 6)};
  test.compute = [steps](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {sinkhorn(in[0], steps, kEpsilon)};
  };
  test.reference = [n, steps](std::span<const ReferenceInput> in) {
    return std::vector<Values>{balanced(in[0].values, static_cast<size_t>(n), steps, kEpsilon)};
  };
  test.tolerance = {1e-10, 1e-5, 1e-5};
  return test;
}

}  // namespace

void add_softmax_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  struct Form {
    Shape shape;
    int axis;
  };
  const std::vector<Form> forms = {
      {{}, -1},       {{1}, 0},       {{7}, 0},      {{0}, 0},     {{3, 5}, 1},   {{3, 5}, 0},
      {{2, 3, 4}, 1}, {{13, 67}, 1},  {{67, 13}, 0}, {{9, 64}, 1}, {{3, 128}, 1}, {{2, 2, 300}, 2},
      {{3, 1031}, 1}, {{5, 1024}, 1}, {{0, 4}, 1},   {{4, 0}, 1},  {{2, 512}, 1},
  };
  for (const bool logarithm : {false, true}) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      for (const Form& form : forms) {
        const int rank = form.shape.rank();
        const int axis = form.axis < 0 ? form.axis + rank : form.axis;
        cases.push_back(softmax_case(logarithm, type, form.shape, rank ? axis : -1, random));
      }
    }
    for (const Shape& shape : {Shape{3, 4096}, Shape{2, 8192}, Shape{2, 12000}, Shape{2, 9001}})
      cases.push_back(softmax_case(logarithm, DType::f32, shape, 1, random));
    for (const int64_t length : {40, 41}) {
      OpCase test = softmax_case(logarithm, DType::f32, {5, length}, 1, random);
      test.what += " with infinities and NaN";
      test.inputs[0].view = nullptr;
      test.inputs[0].shape = {5, length};
      test.inputs[0].values = random.uniform(5 * length, -6, 6);
      Values& x = test.inputs[0].values;
      x[2] = -HUGE_VAL;
      x[static_cast<size_t>(length) + 3] = HUGE_VAL;
      x[static_cast<size_t>(2 * length) + 1] = std::nan("");
      for (int64_t i = 0; i < length; ++i) x[static_cast<size_t>(3 * length + i)] = -HUGE_VAL;
      test.reference = [logarithm, length](std::span<const ReferenceInput> in) {
        Values result = reference_of(in[0], 1, logarithm);
        for (int64_t i = length; i < 4 * length; ++i) result[static_cast<size_t>(i)] = std::nan("");
        return std::vector<Values>{result};
      };
      cases.push_back(std::move(test));
    }
    // A chain before the op, which the planner may fuse into the loads.
    for (const Shape& shape : {Shape{5, 67}, Shape{6, 64}}) {
      OpCase test = softmax_case(logarithm, DType::f32, shape, 1, random);
      test.what += " of 0.5x + b";
      test.inputs.push_back(random.input({shape[1]}, DType::f32));
      test.compute = [logarithm](std::span<const Tensor> in) -> std::vector<Tensor> {
        const Tensor x = in[0] * 0.5 + in[1];
        return {logarithm ? log_softmax(x) : softmax(x)};
      };
      test.reference = [logarithm](std::span<const ReferenceInput> in) {
        ReferenceInput x = in[0];
        for (size_t i = 0; i < x.values.size(); ++i)
          x.values[i] = x.values[i] * 0.5 + in[1].values[i % in[1].values.size()];
        return std::vector<Values>{reference_of(x, 1, logarithm)};
      };
      cases.push_back(std::move(test));
    }
  }
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64})
    for (const auto& [rows, classes] :
         {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {3, 16}, {4, 1000}})
      for (const bool mean : {false, true})
        for (const bool ignore : {false, true})
          if (!(ignore && classes == 1))
            cases.push_back(entropy_case(type, rows, classes, mean, ignore, random));
  for (const auto& [count, n, steps] :
       {std::array<int64_t, 3>{1, 1, 1}, {67, 4, 20}, {5, 3, 2}, {130, 8, 1}, {0, 4, 3}})
    cases.push_back(sinkhorn_case(count, n, steps, random));
}

}  // namespace prism
