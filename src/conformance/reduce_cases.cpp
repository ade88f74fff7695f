// Cases of reductions: every kind and type, single, several and all axes, views.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "ops/rows/finite_argmax.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"

namespace prism {

namespace {

struct Kind {
  const char* name;
  Tensor (*compute)(const Tensor&, const Axes&, bool);
  double (*reference)(const Values&);
};

double best_of(const Values& values, bool largest, bool index) {
  size_t best = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[best])) break;
    if (std::isnan(values[i]) || (largest ? values[i] > values[best] : values[i] < values[best]))
      best = i;
  }
  return index ? static_cast<double>(best) : values[best];
}

double sum_of(const Values& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

double moment_of(const Values& values, double correction) {
  const double mean = sum_of(values) / static_cast<double>(values.size());
  double total = 0;
  for (const double value : values) total += (value - mean) * (value - mean);
  return total / (static_cast<double>(values.size()) - correction);
}

const Kind kKinds[] = {
    {"sum", sum, sum_of},
    {"mean", mean,
     [](const Values& values) { return sum_of(values) / static_cast<double>(values.size()); }},
    {"max", max, [](const Values& values) { return best_of(values, true, false); }},
    {"min", min, [](const Values& values) { return best_of(values, false, false); }},
    {"argmax",
     [](const Tensor& x, const Axes& axes, bool keep) { return argmax(x, axes[0], keep); },
     [](const Values& values) { return best_of(values, true, true); }},
    {"argmin",
     [](const Tensor& x, const Axes& axes, bool keep) { return argmin(x, axes[0], keep); },
     [](const Values& values) { return best_of(values, false, true); }},
    {"variance",
     [](const Tensor& x, const Axes& axes, bool keep) { return variance(x, axes, 0, keep); },
     [](const Values& values) { return moment_of(values, 0); }},
    {"all", all,
     [](const Values& values) { return std::ranges::count(values, 0.0) == 0 ? 1.0 : 0.0; }},
    {"any", any,
     [](const Values& values) {
       return std::ranges::any_of(values, [](double v) { return v != 0; }) ? 1.0 : 0.0;
     }},
};

// Applies f to the elements of each result, in order.
Values reduced(const ReferenceInput& x, const Axes& axes, double (*f)(const Values&)) {
  std::vector<bool> gone(static_cast<size_t>(x.shape.rank()), axes.empty());
  for (const int axis : axes) gone[static_cast<size_t>(axis)] = true;
  int64_t results = 1;
  for (int axis = 0; axis < x.shape.rank(); ++axis)
    if (!gone[static_cast<size_t>(axis)]) results *= x.shape[axis];
  std::vector<Values> terms(static_cast<size_t>(results));
  for (size_t i = 0; i < x.values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), place = 0, scale = 1;
    for (int axis = x.shape.rank() - 1; axis >= 0; --axis) {
      if (!gone[static_cast<size_t>(axis)]) {
        place += rest % x.shape[axis] * scale;
        scale *= x.shape[axis];
      }
      rest /= x.shape[axis];
    }
    terms[static_cast<size_t>(place)].push_back(x.values[i]);
  }
  Values result;
  for (const Values& each : terms) result.push_back(f(each));
  return result;
}

struct Form {
  Shape shape;
  Axes axes;
};

// A case, optionally with an elementwise chain before the op, which the planner may fuse.
OpCase make_case(const Kind& kind, DType type, const Form& form, bool keep, bool chained,
                 CaseRandom& random) {
  const std::string name = kind.name;
  const bool logic = name == "all" || name == "any";
  OpCase test;
  test.op = name;
  test.what = fmt::format("{} {} axes [{}]{}", ElementType(type).name(), form.shape.text(),
                          fmt::join(form.axes, ", "), chained ? " of 2x + 1" : "");
  const double low = type == DType::u8 ? 0 : logic ? -1 : -60;
  const double high = logic ? 2 : 60;
  test.inputs = {is_float(type) ? random.input(form.shape, type)
                                : random.input(form.shape, type, low, high)};
  test.compute = [&kind, form, keep, chained](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {kind.compute(chained ? in[0] * 2.0 + 1.0 : in[0], form.axes, keep)};
  };
  test.reference = [&kind, form, chained](std::span<const ReferenceInput> in) {
    ReferenceInput x = in[0];
    if (chained)
      for (double& value : x.values) value = value * 2 + 1;
    return std::vector<Values>{reduced(x, form.axes, kind.reference)};
  };
  const bool exact = !is_float(type) || logic || name.starts_with("arg");
  test.tolerance = exact ? Tolerance::exact() : Tolerance::reduction(type, 4);
  test.gradient =
      type == DType::f32 && form.shape.elements() <= 40 && form.shape.elements() > 0 && !exact;
  return test;
}

// Rows with one special value each, so that every reason for -1 occurs.
void add_finite_argmax_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  static const Kind kKind = {
      // cases refer to it
      "finite_argmax", [](const Tensor& x, const Axes&, bool) { return finite_argmax(x); },
      [](const Values& values) {
        return std::isfinite(best_of(values, true, false)) ? best_of(values, true, true) : -1.0;
      }};
  for (const DType type : {DType::f32, DType::f16, DType::f64}) {
    for (const int64_t length : {1, 7, 300, 9001}) {
      OpCase test = make_case(kKind, type, {{6, length}, {1}}, false, false, random);
      test.what += " with NaN and infinities";
      test.tolerance = Tolerance::exact();
      test.gradient = false;
      Values& values = test.inputs[0].values;
      const auto any_of_row = [&](int64_t row) -> double& {
        return values[static_cast<size_t>(row * length + random.between(0, length - 1))];
      };
      any_of_row(1) = std::nan("");
      any_of_row(2) = HUGE_VAL;
      any_of_row(3) = -HUGE_VAL;
      for (int64_t i = 0; i < length; ++i) values[static_cast<size_t>(4 * length + i)] = -HUGE_VAL;
      any_of_row(5) = HUGE_VAL;
      any_of_row(5) = std::nan("");
      cases.push_back(std::move(test));
    }
  }
}

// The sum of each row in the place of its elements, alone and between other functions of them.
void add_row_sum_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64})
    for (const Shape& shape :
         {Shape{7}, Shape{3, 5}, Shape{2, 3, 64}, Shape{5, 67}, Shape{2, 9001}, Shape{0, 4}}) {
      const bool alone = shape[-1] % 2 == 1;
      OpCase test;
      test.op = "row_sum";
      test.what = fmt::format("{} {}{}", ElementType(type).name(), shape.text(),
                              alone ? "" : ", of x * w, times x");
      test.inputs = {random.input(shape, type, -1, 1)};
      if (!alone) test.inputs.push_back(random.input({shape[-1]}, type, -1, 1));
      test.compute = [](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {in.size() == 1 ? row_sum(in[0]) : row_sum(in[0] * in[1]) * in[0]};
      };
      test.reference = [](std::span<const ReferenceInput> in) {
        const Values& x = in[0].values;
        const auto n = static_cast<size_t>(in[0].shape[-1]);
        Values result;
        for (size_t first = 0; first < x.size(); first += n) {
          double total = 0;
          for (size_t i = 0; i < n; ++i)
            total += x[first + i] * (in.size() == 1 ? 1 : in[1].values[i]);
          for (size_t i = 0; i < n; ++i)
            result.push_back(in.size() == 1 ? total : total * x[first + i]);
        }
        return std::vector<Values>{result};
      };
      test.tolerance = Tolerance::reduction(type, 4);
      test.gradient = type == DType::f32 && shape.elements() > 0 && shape.elements() <= 60;
      cases.push_back(std::move(test));
    }
}

}  // namespace

void add_reduce_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const std::vector<Form> forms = {
      {{7}, {0}},       {{1}, {0}},          {{3, 5}, {1}},       {{5, 3}, {0}},    {{13, 67}, {1}},
      {{67, 13}, {0}},  {{4, 2, 5}, {1}},    {{4, 3, 5}, {0, 2}}, {{2, 3, 4}, {}},  {{6, 128}, {1}},
      {{3, 1031}, {1}}, {{2, 300, 33}, {1}}, {{0, 4}, {1}},       {{5, 0, 3}, {0}},
  };
  for (const Kind& kind : kKinds) {
    const std::string name = kind.name;
    const bool arg = name.starts_with("arg"), floats = name == "mean" || name == "variance";
    for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32,
                             DType::i64, DType::u8, DType::i8, DType::b1}) {
      if (floats && !is_float(type)) continue;
      for (const Form& form : forms) {
        if (arg && form.axes.size() != 1) continue;
        if (!is_float(type) && random.between(0, 2) == 0) continue;
        if (type == DType::b1 && arg) continue;
        cases.push_back(make_case(kind, type, form, random.between(0, 1) == 1, false, random));
      }
    }
    for (const DType type : {DType::f32, DType::f16}) {
      if (name == "all" || name == "any" || type == DType::f16) continue;
      for (const Form& form : {Form{{5, 67}, {1}}, Form{{6, 64}, {1}}, Form{{31, 9}, {0}}})
        cases.push_back(make_case(kind, type, form, false, true, random));
      // Few long rows: kernels reduce them in two steps.
      for (const Form& form :
           {Form{{2, 9001}, {1}}, Form{{1200, 5}, {0}}, Form{{20000}, {0}}, Form{{2, 70001}, {1}}})
        cases.push_back(make_case(kind, type, form, false, false, random));
    }
  }
  // Empty reductions, and values with NaN and infinities.
  for (const Kind& kind : kKinds) {
    const std::string name = kind.name;
    if (name == "sum" || name == "all" || name == "any")
      cases.push_back(make_case(kind, DType::f32, {{3, 0}, {1}}, false, false, random));
    if (name == "variance") continue;
    for (const Shape& shape : {Shape{3, 70}, Shape{70, 3}}) {
      OpCase test =
          make_case(kind, DType::f32, {shape, {shape[0] == 3 ? 1 : 0}}, false, false, random);
      test.what += " with NaN and infinity";
      Values& values = test.inputs[0].values;
      for (const double special : {std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0})
        values[static_cast<size_t>(random.between(0, static_cast<int64_t>(values.size()) - 1))] =
            special;
      cases.push_back(std::move(test));
    }
  }
  for (const bool down : {false, true}) {
    OpCase test;
    test.op = "sum_to";
    const Shape from = down ? Shape{4, 3, 5} : Shape{6, 7}, to = down ? Shape{3, 1} : Shape{7};
    test.what = from.text() + " to " + to.text();
    test.inputs = {random.input(from, DType::f32)};
    test.compute = [to](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {sum_to(in[0], to)};
    };
    test.reference = [down](std::span<const ReferenceInput> in) {
      return std::vector<Values>{reduced(in[0], down ? Axes{0, 2} : Axes{0}, sum_of)};
    };
    test.tolerance = Tolerance::reduction(DType::f32, 4);
    test.gradient = !down;
    cases.push_back(std::move(test));
  }
  add_finite_argmax_cases(cases, random);
  add_row_sum_cases(cases, random);
}

}  // namespace prism
