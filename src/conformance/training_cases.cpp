// Cases of ops that only training uses: gradients with kernels of their own, sums of squares, and
// the update of Adam. Devices without such an op compute the same from others.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "ops/elementwise/adam.h"
#include "ops/rows/cross_entropy_gradient.h"
#include "ops/rows/square_sum.h"
#include "prism/grad.h"
#include "prism/ops/attention.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/norm.h"
#include "prism/ops/reduce.h"

namespace prism {

namespace {

size_t size(int64_t value) { return static_cast<size_t>(value); }

CaseInput dense_input(CaseRandom& random, const Shape& shape, DType type) {
  CaseInput input;
  input.shape = shape;
  input.type = type;
  input.values = random.normal(shape.elements());
  return input;
}

// The gradients of f with respect to all inputs but the last, which is the gradient of its result.
std::vector<Tensor> slopes_of(std::span<const Tensor> in,
                              const std::function<Tensor(std::span<const Tensor>)>& f) {
  std::vector<Tensor> variables;
  for (const Tensor& each : in.first(in.size() - 1)) {
    variables.push_back(each.detach());
    variables.back().set_requires_grad();
  }
  return gradients(f(variables), variables, in.back());
}

// --- attention
struct Heads {
  int64_t batch, heads, kv_heads, dim, value_dim, queries, keys;
};

std::vector<Values> attention_slopes(std::span<const ReferenceInput> in, const Heads& s,
                                     const AttentionSettings& settings) {
  const Values &q = in[0].values, &k = in[1].values, &v = in[2].values, &g = in[3].values;
  Values q_slopes(q.size()), k_slopes(k.size()), v_slopes(v.size());
  const double scale = 1 / std::sqrt(static_cast<double>(s.dim));
  Values weights(size(s.keys)), slopes(size(s.keys));
  for (int64_t z = 0; z < s.batch * s.heads; ++z) {
    const int64_t shared = z / s.heads * s.kv_heads + z % s.heads / (s.heads / s.kv_heads);
    for (int64_t i = 0; i < s.queries; ++i) {
      const size_t of_q = size((z * s.queries + i) * s.dim),
                   of_g = size((z * s.queries + i) * s.value_dim);
      const auto of_k = [&](int64_t j) { return size((shared * s.keys + j) * s.dim); };
      const auto of_v = [&](int64_t j) { return size((shared * s.keys + j) * s.value_dim); };
      const int64_t position = i + s.keys - s.queries;
      const int64_t end = settings.causal ? position + 1 : s.keys;
      const int64_t begin =
          settings.window > 0 ? std::max<int64_t>(0, position + 1 - settings.window) : 0;
      double most = -1e300, total = 0, mean = 0;
      for (int64_t j = begin; j < end; ++j) {
        double score = 0;
        for (size_t e = 0; e < size(s.dim); ++e) score += q[of_q + e] * k[of_k(j) + e];
        weights[size(j)] = score * scale;
        most = std::max(most, score * scale);
      }
      for (int64_t j = begin; j < end; ++j)
        total += weights[size(j)] = std::exp(weights[size(j)] - most);
      for (int64_t j = begin; j < end; ++j) {
        weights[size(j)] /= total;
        slopes[size(j)] = 0;
        for (size_t e = 0; e < size(s.value_dim); ++e)
          slopes[size(j)] += g[of_g + e] * v[of_v(j) + e];
        mean += weights[size(j)] * slopes[size(j)];
      }
      for (int64_t j = begin; j < end; ++j) {
        const double slope = weights[size(j)] * (slopes[size(j)] - mean) * scale;
        for (size_t e = 0; e < size(s.dim); ++e) {
          q_slopes[of_q + e] += slope * k[of_k(j) + e];
          k_slopes[of_k(j) + e] += slope * q[of_q + e];
        }
        for (size_t e = 0; e < size(s.value_dim); ++e)
          v_slopes[of_v(j) + e] += weights[size(j)] * g[of_g + e];
      }
    }
  }
  return {q_slopes, k_slopes, v_slopes};
}

void add_attention(std::vector<OpCase>& cases, CaseRandom& random, DType type, const Heads& s,
                   const AttentionSettings& settings) {
  OpCase test;
  test.op = "attention_gradient";
  test.what = fmt::format("{} {} x {} of {} heads of {} and {}, {} queries, {} keys{}{}",
                          dtype_name(type), s.batch, s.heads, s.kv_heads, s.dim, s.value_dim,
                          s.queries, s.keys, settings.causal ? ", causal" : "",
                          settings.window > 0 ? fmt::format(", window {}", settings.window) : "");
  for (const Shape& shape :
       {Shape{s.batch, s.heads, s.queries, s.dim}, Shape{s.batch, s.kv_heads, s.keys, s.dim},
        Shape{s.batch, s.kv_heads, s.keys, s.value_dim},
        Shape{s.batch, s.heads, s.queries, s.value_dim}})
    test.inputs.push_back(dense_input(random, shape, type));
  test.compute = [settings](std::span<const Tensor> in) {
    return slopes_of(
        in, [&](std::span<const Tensor> x) { return attention(x[0], x[1], x[2], settings); });
  };
  test.reference = [s, settings](std::span<const ReferenceInput> in) {
    return attention_slopes(in, s, settings);
  };
  test.tolerance = type == DType::f32   ? Tolerance{1e-9, 1e-4, 1e-4}
                   : type == DType::f16 ? Tolerance{4e-6, 2e-2, 4e-2}
                                        : Tolerance{4e-4, 1e-1, 3e-1};
  cases.push_back(std::move(test));
}

// --- norms
std::vector<Values> norm_slopes(std::span<const ReferenceInput> in, bool centred) {
  constexpr double kEpsilon = 1e-5;
  const Values &x = in[0].values, &weight = in[1].values, &g = in.back().values;
  const size_t n = weight.size();
  Values x_slopes(x.size()), weight_slopes(n), bias_slopes(n);
  const auto count = static_cast<double>(n);
  for (size_t first = 0; first < x.size(); first += n) {
    double mean = 0, squares = 0, of_g = 0, of_both = 0;
    for (size_t i = 0; centred && i < n; ++i) mean += x[first + i] / count;
    for (size_t i = 0; i < n; ++i) squares += (x[first + i] - mean) * (x[first + i] - mean) / count;
    const double scale = 1 / std::sqrt(squares + kEpsilon);
    const auto normed = [&](size_t i) { return (x[first + i] - mean) * scale; };
    for (size_t i = 0; i < n; ++i) {
      const double slope = g[first + i] * weight[i];
      if (centred) of_g += slope / count;
      of_both += slope * normed(i) / count;
      weight_slopes[i] += g[first + i] * normed(i);
      bias_slopes[i] += g[first + i];
    }
    for (size_t i = 0; i < n; ++i)
      x_slopes[first + i] = scale * (g[first + i] * weight[i] - of_g - normed(i) * of_both);
  }
  std::vector<Values> all = {x_slopes, weight_slopes};
  if (centred) all.push_back(bias_slopes);
  return all;
}

void add_norm(std::vector<OpCase>& cases, CaseRandom& random, DType type, const Shape& shape,
              bool centred) {
  OpCase test;
  test.op = centred ? "layer_norm_gradient" : "rms_norm_gradient";
  test.what = fmt::format("{} {}", dtype_name(type), shape.text());
  test.inputs = {dense_input(random, shape, type), dense_input(random, {shape[-1]}, DType::f32)};
  if (centred) test.inputs.push_back(dense_input(random, {shape[-1]}, DType::f32));
  test.inputs.push_back(dense_input(random, shape, DType::f32));
  test.compute = [centred](std::span<const Tensor> in) {
    return slopes_of(in, [&](std::span<const Tensor> x) {
      const Tensor wide = cast(x[0], DType::f32);
      return centred ? layer_norm(wide, x[1], x[2], 1e-5) : rms_norm(wide, x[1], 1e-5);
    });
  };
  test.reference = [centred](std::span<const ReferenceInput> in) {
    return norm_slopes(in, centred);
  };
  const double rows = std::sqrt(static_cast<double>(shape.elements() / shape[-1]));
  test.tolerance =
      type == DType::f32 ? Tolerance{1e-9, 1e-4, 2e-5 * rows} : Tolerance{1e-4, 2e-2, 2e-2 * rows};
  cases.push_back(std::move(test));
}

// --- cross entropy
void add_cross_entropy(std::vector<OpCase>& cases, CaseRandom& random, DType type, DType stored,
                       const Shape& shape) {
  constexpr int32_t kIgnored = -100;
  OpCase test;
  test.op = "cross_entropy_gradient";
  test.what =
      fmt::format("{}{} {}", dtype_name(type),
                  type == stored ? "" : fmt::format(" to {}", dtype_name(stored)), shape.text());
  CaseInput target;
  target.shape = {shape[0]};
  target.type = DType::i32;
  target.values = random.integers(shape[0], 0, shape[1] - 1);
  target.values[0] = kIgnored;
  target.differentiable = false;
  test.inputs = {dense_input(random, shape, type), target,
                 dense_input(random, {shape[0]}, DType::f32)};
  test.compute = [stored](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {cast(cross_entropy_gradient(in[0], in[1], in[2], kIgnored), stored)};
  };
  test.reference = [](std::span<const ReferenceInput> in) {
    const auto n = size(in[0].shape[1]);
    Values slopes(in[0].values.size());
    for (size_t row = 0; row < in[1].values.size(); ++row) {
      if (in[1].values[row] == kIgnored) continue;
      const double* const x = in[0].values.data() + row * n;
      const double most = *std::max_element(x, x + n);
      double total = 0;
      for (size_t i = 0; i < n; ++i) total += std::exp(x[i] - most);
      for (size_t i = 0; i < n; ++i)
        slopes[row * n + i] =
            (std::exp(x[i] - most) / total - (i == size(static_cast<int64_t>(in[1].values[row])))) *
            in[2].values[row];
    }
    return std::vector<Values>{slopes};
  };
  test.tolerance = stored == DType::f32 ? Tolerance{1e-9, 1e-4, 1e-6} : Tolerance{1e-4, 1e-2, 1e-4};
  cases.push_back(std::move(test));
}

// --- sums of squares
void add_square_sum(std::vector<OpCase>& cases, CaseRandom& random, std::span<const Shape> shapes) {
  OpCase test;
  test.op = "square_sum";
  test.what = fmt::format("of {} tensors", shapes.size());
  for (const Shape& each : shapes) test.inputs.push_back(dense_input(random, each, DType::f32));
  test.compute = [](std::span<const Tensor> in) -> std::vector<Tensor> {
    if (has_square_sum(in)) return {square_sum(in)};
    Tensor total;
    for (const Tensor& each : in) total = total ? total + sum(square(each)) : sum(square(each));
    return {total};
  };
  test.reference = [](std::span<const ReferenceInput> in) {
    double total = 0;
    for (const ReferenceInput& each : in)
      for (const double x : each.values) total += x * x;
    return std::vector<Values>{{total}};
  };
  test.tolerance = {1e-9, 1e-5, 1e-5};
  cases.push_back(std::move(test));
}

// --- Adam
void add_adam(std::vector<OpCase>& cases, CaseRandom& random, const AdamRule& rule, bool has_factor,
              const Shape& shape) {
  OpCase test;
  test.op = "adam";
  test.what = fmt::format("{}{}{}{}", shape.text(), rule.penalty > 0 ? ", penalty" : "",
                          rule.shrinks ? ", shrinks" : "", has_factor ? ", factor" : "");
  for (int i = 0; i < 4; ++i) test.inputs.push_back(dense_input(random, shape, DType::f32));
  for (double& each : test.inputs[2].values) each *= each;  // the average of squares
  CaseInput numbers;
  numbers.shape = {2, 3};
  numbers.values = {7, 7, 7, 0.013, 1.7, 0.98};
  test.inputs.push_back(numbers);
  if (has_factor) test.inputs.push_back({{}, DType::f32, {0.6}});
  test.compute = [rule, has_factor](std::span<const Tensor> in) -> std::vector<Tensor> {
    // The op changes its first three inputs, which must stay as they are for others.
    AdamState state;
    Tensor* const places[] = {&state.parameter, &state.first, &state.second};
    for (size_t i = 0; i < 3; ++i) {
      *places[i] = in[i] * 1.0;
      places[i]->eval();
    }
    const AdamState next = adam_step(rule, state, in[3], in[4], 3, has_factor ? in[5] : Tensor());
    // Copies: the results themselves are the memory of the inputs.
    return {next.parameter * 1.0, next.first * 1.0, next.second * 1.0};
  };
  test.reference = [rule, has_factor](std::span<const ReferenceInput> in) {
    Values p = in[0].values, m = in[1].values, v = in[2].values;
    const double rate = in[4].values[3], root = in[4].values[4], keeps = in[4].values[5];
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = in[3].values[i] * (has_factor ? in[5].values[0] : 1) + rule.penalty * p[i];
      m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g;
      v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g * g;
      p[i] = (rule.shrinks ? keeps : 1) * p[i] - rate * m[i] / (std::sqrt(v[i]) * root + 1e-8);
    }
    return std::vector<Values>{p, m, v};
  };
  test.tolerance = {1e-10, 1e-5, 1e-6};
  cases.push_back(std::move(test));
}

}  // namespace

void add_training_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    add_attention(cases, random, type, {2, 4, 2, 16, 16, 21, 21}, {});
    add_attention(cases, random, type, {1, 3, 1, 40, 24, 9, 37}, {});
    add_attention(cases, random, type, {1, 1, 1, 17, 13, 5, 9}, {.causal = false});
    add_attention(cases, random, type, {1, 2, 2, 64, 64, 30, 45}, {.window = 11});
  }
  for (const DType type : {DType::f32, DType::bf16})
    for (const Shape& shape : {Shape{5, 67}, Shape{70, 128}, Shape{3, 1031}})
      for (const bool centred : {false, true}) add_norm(cases, random, type, shape, centred);
  for (const Shape& shape : {Shape{5, 65}, Shape{3, 1040}, Shape{2, 33}})
    for (const auto& [type, stored] :
         {std::pair{DType::f32, DType::f32}, std::pair{DType::f32, DType::bf16},
          std::pair{DType::bf16, DType::bf16}})
      add_cross_entropy(cases, random, type, stored, shape);
  const Shape few[] = {{3, 5}, {7}}, many[] = {{300, 11}, {1}, {64, 64}, {129}, {2, 3, 4}, {5000}};
  add_square_sum(cases, random, few);
  add_square_sum(cases, random, many);
  for (const Shape& shape : {Shape{17}, Shape{12, 40}}) {
    add_adam(cases, random, {}, false, shape);
    add_adam(cases, random, {.beta1 = 0.8, .beta2 = 0.95, .penalty = 0.1}, true, shape);
    add_adam(cases, random, {.shrinks = true}, true, shape);
  }
}

}  // namespace prism
