// Cases of rotary embeddings and gates.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "prism/ops/gates.h"
#include "prism/ops/rope.h"
#include "prism/rope_scaling.h"

namespace prism {

namespace {

struct RopeShape {
  Shape x;
  int64_t dims;
  int64_t positions;  // the upper bound
};

Values rotated(std::span<const ReferenceInput> in, int64_t dims, RopePairing pairing,
               double magnitude) {
  const Shape& shape = in[0].shape;
  const int64_t head = shape[-1], heads = shape[-2];
  Values y = in[0].values;
  const bool adjacent = pairing == RopePairing::adjacent;
  for (size_t row = 0; row < in[1].values.size(); ++row) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t pair = 0; pair < dims / 2; ++pair) {
        const double angle = in[1].values[row] * in[2].values[static_cast<size_t>(pair)];
        const auto first =
            (row * static_cast<size_t>(heads) + static_cast<size_t>(h)) * static_cast<size_t>(head);
        double& a = y[first + static_cast<size_t>(adjacent ? 2 * pair : pair)];
        double& b = y[first + static_cast<size_t>(adjacent ? 2 * pair + 1 : pair + dims / 2)];
        const double before = a;
        a = magnitude * (before * std::cos(angle) - b * std::sin(angle));
        b = magnitude * (before * std::sin(angle) + b * std::cos(angle));
      }
    }
  }
  return y;
}

void add_rope(std::vector<OpCase>& cases, CaseRandom& random, DType type) {
  for (const RopeShape& each :
       {RopeShape{{1, 1, 2}, 2, 10}, RopeShape{{3, 2, 8}, 8, 100}, RopeShape{{5, 3, 10}, 6, 1000},
        RopeShape{{2, 3, 4, 16}, 16, 131072}, RopeShape{{7, 4, 64}, 64, 131072},
        RopeShape{{0, 2, 8}, 8, 10}, RopeShape{{4, 0, 8}, 4, 10}}) {
    for (const RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
      OpCase test;
      test.op = "rope";
      test.what = fmt::format("{} {} {} dims {}", ElementType(type).name(), each.x.text(),
                              each.dims, pairing == RopePairing::adjacent ? "adjacent" : "halves");
      Shape rows = each.x;
      rows.erase(rows.rank() - 1);
      rows.erase(rows.rank() - 1);
      const RopeFrequencies table = rope_frequencies(static_cast<uint32_t>(each.dims), 10000);
      const double magnitude = random.between(0, 1) ? 1 : 1.25;
      test.inputs = {
          draw(random, each.x, type),
          {rows, DType::i32, random.integers(rows.elements(), 0, each.positions), nullptr, false},
          {Shape{each.dims / 2}, DType::f32,
           Values(table.frequencies.begin(), table.frequencies.end()), nullptr, false}};
      RopeOptions options{each.dims, pairing, magnitude};
      test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {rope(in[0], in[1], in[2], options)};
      };
      test.reference = [=](std::span<const ReferenceInput> in) {
        return std::vector<Values>{rotated(in, each.dims, pairing, magnitude)};
      };
      test.tolerance = Tolerance::elementwise(type);
      // A small difference of two larger products has the error of the products.
      if (type == DType::f32) test.tolerance.absolute = 3e-6;
      if (type == DType::f16) test.tolerance.absolute = 2e-3;
      if (type == DType::bf16) test.tolerance.absolute = 1.6e-2;
      test.gradient = type == DType::f32 && each.x.elements() > 0 && each.x.elements() < 200;
      cases.push_back(std::move(test));
    }
  }
}

double gate_value(double x, int kind) {
  if (kind == 0) return x / (1 + std::exp(-x));
  if (kind == 1) return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

void add_gates(std::vector<OpCase>& cases, CaseRandom& random, DType type) {
  for (const Shape& shape :
       {Shape{1, 2}, Shape{3, 10}, Shape{0, 4}, Shape{5, 2, 34}, Shape{2062}}) {
    for (int kind = 0; kind < 3; ++kind) {  // swiglu, geglu by erf, by tanh
      OpCase test;
      test.op = kind == 0 ? "swiglu" : "geglu";
      test.what =
          fmt::format("{} {}{}", ElementType(type).name(), shape.text(), kind == 1 ? " exact" : "");
      test.inputs = {draw(random, shape, type)};
      test.compute = [kind](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {kind == 0 ? swiglu(in[0]) : geglu(in[0], kind == 1)};
      };
      test.reference = [kind](std::span<const ReferenceInput> in) {
        const auto row = static_cast<size_t>(in[0].shape[-1]), half = row / 2;
        Values y;
        for (size_t first = 0; first < in[0].values.size(); first += row)
          for (size_t c = 0; c < half; ++c)
            y.push_back(gate_value(in[0].values[first + c], kind) * in[0].values[first + half + c]);
        return std::vector<Values>{y};
      };
      test.tolerance = Tolerance::elementwise(type);
      test.gradient = type == DType::f32 && shape.elements() > 0 && shape.elements() < 100;
      cases.push_back(std::move(test));
    }
  }
}

}  // namespace

void add_rope_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const DType type : kFloatTypes) add_rope(cases, random, type);
}

void add_gates_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const DType type : kFloatTypes)
    if (type != DType::f64) add_gates(cases, random, type);
}

}  // namespace prism
