// Cases of expert_matmul: plain and quantised weights, rows shared by experts and rows per expert,
// few and many rows.
#include <cmath>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "prism/ops/matmul.h"

namespace prism {

namespace {

struct Sizes {
  int64_t rows, used, experts, n, k;
};

// Inputs: x, weights, experts, and optionally a bias.
Values routed_reference(std::span<const ReferenceInput> in, const Sizes& s, bool shared) {
  Values y;
  for (int64_t slot = 0; slot < s.rows * s.used; ++slot) {
    const auto expert = static_cast<int64_t>(in[2].values[static_cast<size_t>(slot)]);
    const int64_t row = shared ? slot / s.used : slot;
    for (int64_t r = 0; r < s.n; ++r) {
      double sum = in.size() > 3 ? in[3].values[static_cast<size_t>(expert * s.n + r)] : 0;
      for (int64_t e = 0; e < s.k; ++e)
        sum += in[0].values[static_cast<size_t>(row * s.k + e)] *
               in[1].values[static_cast<size_t>((expert * s.n + r) * s.k + e)];
      y.push_back(sum);
    }
  }
  return y;
}

void add_case(std::vector<OpCase>& cases, CaseRandom& random, DType x, ElementType weight,
              const Sizes& s, bool shared, bool bias) {
  OpCase test;
  test.op = "expert_matmul";
  test.what = fmt::format("{} x {} {} rows{} by {} of {} experts {}x{}{}", dtype_name(x),
                          weight.name(), s.rows, shared ? "" : " each its own", s.used, s.experts,
                          s.n, s.k, bias ? ", bias" : "");
  const Shape rows = shared ? Shape{s.rows, s.k} : Shape{s.rows, s.used, s.k};
  const Shape matrices = {s.experts, s.n, s.k};
  test.inputs = {random.input(rows, x),
                 weight.is_block() ? CaseInput{matrices, weight, random.normal(matrices.elements())}
                                   : random.input(matrices, weight)};
  CaseInput ids{{s.rows, s.used}, DType::i32, random.integers(s.rows * s.used, 0, s.experts - 1)};
  ids.differentiable = false;
  test.inputs.push_back(std::move(ids));
  if (bias) test.inputs.push_back(random.input({s.experts, s.n}, DType::f32));
  test.compute = [](std::span<const Tensor> in) {
    return std::vector<Tensor>{
        expert_matmul(in[0], in[1], in[2], in.size() > 3 ? in[3] : Tensor())};
  };
  test.reference = [s, shared](std::span<const ReferenceInput> in) {
    return std::vector<Values>{routed_reference(in, s, shared)};
  };
  const double root = std::sqrt(static_cast<double>(std::max<int64_t>(s.k, 1)));
  if (weight.is_block()) {
    test.tolerance = {5e-4, 2e-3, 6 * 0.005 * root};  // as linear with 8-bit activations
  } else if (x == DType::f64 || weight == ElementType(DType::f64)) {
    test.tolerance = {1e-20, 1e-10, 1e-12 * root};
  } else if (x == DType::f32 && weight == ElementType(DType::f32)) {
    test.tolerance = {1e-7, 1e-5, 4e-6 * root};
  } else if (x == DType::bf16) {
    test.tolerance = {1e-4, 1.6e-2, 1.6e-2 * root};
  } else {
    test.tolerance = {1e-6, 2e-3, 2e-3 * root};
  }
  const int64_t work = s.rows * s.used * s.n * s.k;
  test.gradient = x == DType::f32 && !weight.is_block() && weight == ElementType(DType::f32) &&
                  work > 0 && work <= 800;
  cases.push_back(std::move(test));
}

}  // namespace

void add_expert_matmul_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const Sizes sizes[] = {{1, 1, 1, 1, 1},    {1, 2, 4, 5, 7},    {3, 2, 3, 4, 8},
                         {0, 2, 3, 4, 8},    {2, 0, 3, 4, 8},    {2, 2, 3, 0, 8},
                         {2, 3, 2, 5, 0},    {13, 4, 8, 17, 40}, {37, 3, 5, 33, 64},
                         {1, 8, 32, 24, 96}, {5, 6, 64, 9, 24}};
  for (const Sizes& each : sizes) {
    for (const bool shared : {false, true}) {
      for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64})
        add_case(cases, random, type, type, each, shared, type == DType::f32 && each.rows == 3);
      add_case(cases, random, DType::f32, DType::f16, each, shared, false);
      add_case(cases, random, each.rows == 13 ? DType::f64 : DType::f32,
               each.rows == 13 ? DType::f16 : DType::f64, each, shared, each.rows == 5);
    }
  }
  // The cases of linear cover every type with the same kernels; four random types suffice here.
  for (int draw = 0; draw < 4; ++draw) {
    const auto type = static_cast<BlockType>(random.between(0, kBlockTypeCount - 1));
    const int64_t block = block_info(type).elements;
    for (const bool shared : {false, true}) {
      for (const int64_t rows : {1, 3, 19}) {
        const Sizes s = {rows, 2, 5, random.between(1, 40), block * random.between(1, 3)};
        add_case(cases, random, draw == 0 ? DType::f16 : DType::f32, type, s, shared, rows == 19);
      }
    }
  }
}

}  // namespace prism
