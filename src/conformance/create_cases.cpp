// Cases of ranges and random numbers: every device must match the float64 formulas, and uniform
// bit by bit.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "dsl/philox.h"
#include "prism/ops/create.h"

namespace prism {

namespace {

// Ops without inputs do not know the device, so the case has an unused input on that device.
OpCase made(const char* op, const std::string& what,
            const std::function<Tensor(const Device&)>& compute, const Values& wanted,
            const Tolerance& tolerance) {
  OpCase test;
  test.op = op;
  test.what = what;
  test.inputs = {{Shape{1}, DType::f32, {0.0}, nullptr, false}};
  test.compute = [compute](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {compute(in[0].device())};
  };
  test.reference = [wanted](std::span<const ReferenceInput>) {
    return std::vector<Values>{wanted};
  };
  test.tolerance = tolerance;
  return test;
}

void add_ranges(std::vector<OpCase>& cases, DType type) {
  struct Range {
    double start, stop, step;
  };
  const std::string name = ElementType(type).name();
  for (const Range& each : {Range{0, 1, 1}, Range{0, 0, 1}, Range{0, 100, 1}, Range{3, 90, 7},
                            Range{50, 0, -3}, Range{5, 0, 1}}) {
    Values wanted;
    for (double value = each.start; each.step > 0 ? value < each.stop : value > each.stop;
         value += each.step)
      wanted.push_back(value);
    cases.push_back(made(
        "arange", fmt::format("{} {} to {} by {}", name, each.start, each.stop, each.step),
        [=](const Device& d) { return arange(each.start, each.stop, each.step, type, d); }, wanted,
        Tolerance::exact()));
  }
  for (const int64_t rows : {0, 1, 7}) {
    for (const int64_t columns : {1, 7, 13}) {
      Values wanted;
      for (int64_t i = 0; i < rows * columns; ++i)
        wanted.push_back(i / columns == i % columns ? 1 : 0);
      cases.push_back(made(
          "eye", fmt::format("{} {} x {}", name, rows, columns),
          [=](const Device& d) { return eye(rows, columns, type, d); }, wanted,
          Tolerance::exact()));
    }
  }
  if (!is_float(type)) return;
  for (const int64_t count : {0, 1, 2, 7, 1031}) {
    Values wanted;
    for (int64_t i = 0; i < count; ++i)
      wanted.push_back(
          -1.5 + (count > 1 ? 4.25 * static_cast<double>(i) / static_cast<double>(count - 1) : 0));
    cases.push_back(made(
        "linspace", fmt::format("{} {}", name, count),
        [=](const Device& d) { return linspace(-1.5, 2.75, count, type, d); }, wanted,
        Tolerance::elementwise(type)));
  }
}

double uniform_at(size_t i, uint64_t key) {
  const auto words = dsl::philox_block(static_cast<uint32_t>(i / 4), static_cast<uint32_t>(key),
                                       static_cast<uint32_t>(key >> 32));
  return static_cast<double>(words[i % 4] >> 8) * 0x1p-24;
}

double normal_at(size_t i, uint64_t key) {
  const double u = uniform_at(i / 2 * 2, key) + 0x1p-24, turn = uniform_at(i / 2 * 2 + 1, key);
  const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * turn;
  return radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

void add_random(std::vector<OpCase>& cases, CaseRandom& random, DType type) {
  const std::string name = ElementType(type).name();
  for (const Shape& shape : {Shape{0}, Shape{1}, Shape{7}, Shape{13, 67}, Shape{5, 1031}}) {
    const auto key = static_cast<uint64_t>(random.between(0, INT64_MAX));
    const auto count = static_cast<size_t>(shape.elements());
    const std::string what = fmt::format("{} {} key {}", name, shape.text(), key);
    Values plain, stretched, bell;
    for (size_t i = 0; i < count; ++i) {
      plain.push_back(uniform_at(i, key));
      stretched.push_back(plain.back() * 4.5 - 1.25);
      bell.push_back(normal_at(i, key) * 2 + 0.5);
    }
    const bool exact = type == DType::f32 || type == DType::f64;
    cases.push_back(made(
        "uniform", what, [=](const Device& d) { return uniform(shape, key, 0, 1, type, d); }, plain,
        exact ? Tolerance::exact() : Tolerance::elementwise(type)));
    cases.push_back(made(
        "uniform", what + " stretched",
        [=](const Device& d) { return uniform(shape, key, -1.25, 3.25, type, d); }, stretched,
        Tolerance::elementwise(type)));
    Tolerance near = Tolerance::elementwise(type);
    if (exact) near = {1e-12, 1e-6, 1e-6};
    cases.push_back(made(
        "normal", what, [=](const Device& d) { return normal(shape, key, 0.5, 2, type, d); }, bell,
        near));

    OpCase test;
    test.op = "dropout";
    test.what = what;
    test.inputs = {draw(random, shape, type)};
    test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
      return {dropout(in[0], 0.25, key)};
    };
    test.reference = [=](std::span<const ReferenceInput> in) {
      Values y = in[0].values;
      for (size_t i = 0; i < y.size(); ++i) y[i] = uniform_at(i, key) < 0.25 ? 0 : y[i] / 0.75;
      return std::vector<Values>{y};
    };
    test.tolerance = Tolerance::elementwise(type);
    test.gradient = type == DType::f32 && count < 20;
    cases.push_back(std::move(test));
  }
}

}  // namespace

void add_create_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const DType type : kAllTypes) {
    if (type == DType::b1) continue;
    if (type != DType::i8) add_ranges(cases, type);
    if (is_float(type)) add_random(cases, random, type);
  }
}

}  // namespace prism
