// Gradients that are one op on the CPU, against those of f64, which are composed of other ops; and
// what they save: memory and copies.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "prism/compile.h"
#include "prism/grad.h"
#include "prism/ops.h"
#include "support/seed.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

Tensor random_f64(const Shape& shape) {
  std::mt19937 random(test_seed());
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& each : values) each = normal(random);
  return from_vector(values, shape, Device::cpu());
}

double error_of(const Tensor& found, const Tensor& wanted) {
  const std::vector<double> a = found.to_doubles(), b = wanted.to_doubles();
  EXPECT_EQ(found.shape(), wanted.shape());
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / (size + 1e-30));
}

// The gradients of a weighted sum of f's result in f32 and in f64, and those of the gradients.
void compare(const TensorFunction& f, std::vector<Tensor> inputs, const std::string& what) {
  const auto narrow = [](const std::vector<Tensor>& all) {
    std::vector<Tensor> result;
    for (const Tensor& each : all) result.push_back(cast(each, DType::f32).eval());
    return result;
  };
  const Tensor weights = random_f64(f(inputs).shape());
  const TensorFunction weighted = [&](std::span<const Tensor> in) {
    return sum(f(in) * cast(weights, in[0].type()));
  };
  const auto wanted = grad(weighted)(inputs), found = grad(weighted)(narrow(inputs));
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_LT(error_of(found[i], wanted[i]), 5e-6) << what << ", input " << i;
  const TensorFunction slopes = [&](std::span<const Tensor> in) {
    Tensor total;
    for (const Tensor& each : grad(weighted)(in)) {
      const Tensor part = sum(sin(each));
      total = total ? total + part : part;
    }
    return total;
  };
  const auto wanted2 = grad(slopes)(inputs), found2 = grad(slopes)(narrow(inputs));
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_LT(error_of(found2[i], wanted2[i]), 5e-5) << what << ", twice, input " << i;
}

struct Heads {
  int64_t batch, heads, kv_heads, dim, value_dim, queries, keys;
};

TEST(FusedGradients, AttentionAgreesWithF64) {
  const std::vector<std::pair<Heads, AttentionSettings>> cases = {
      {{1, 1, 1, 1, 1, 1, 1}, {}},
      {{2, 3, 3, 32, 32, 64, 64}, {}},
      {{3, 6, 2, 17, 13, 65, 131}, {}},
      {{1, 2, 1, 40, 40, 130, 130}, {.causal = false}},
      {{1, 2, 2, 8, 8, 150, 200}, {.window = 70}},
      {{1, 2, 1, 8, 5, 150, 200}, {.causal = false, .window = 31}},
      {{1, 1, 1, 16, 16, 140, 140}, {.window = 48, .chunked = true}},
      {{1, 1, 1, 100, 100, 3, 67}, {.scale = 0.3}},
      {{1, 2, 1, 6, 6, 600, 650}, {}},
      {{1, 1, 1, 6, 6, 530, 530}, {.causal = false}},
      {{1, 1, 1, 6, 6, 530, 540}, {.window = 100}},
  };
  for (const auto& [s, settings] : cases) {
    const std::string what = s.kv_heads == 2 ? "grouped or windowed" : "one group";
    compare([&, &with = settings](
                std::span<const Tensor> in) { return attention(in[0], in[1], in[2], with); },
            {random_f64({s.batch, s.heads, s.queries, s.dim}),
             random_f64({s.batch, s.kv_heads, s.keys, s.dim}),
             random_f64({s.batch, s.kv_heads, s.keys, s.value_dim})},
            what + " of " + std::to_string(s.queries) + " queries, " + std::to_string(s.keys) +
                " keys");
  }
  // One tensor as queries, keys and values gets the sum of three gradients.
  compare([](std::span<const Tensor> in) { return attention(in[0], in[0], in[0]); },
          {random_f64({2, 2, 9, 8})}, "one tensor");
}

TEST(FusedGradients, AttentionTakesMemoryLinearInItsLength) {
  // One op for f32, parts of the queries for f64.
  const auto bytes_of = [](int64_t length, DType type) {
    Tensor x = zeros({1, 2, length, 8}, type, Device::cpu()).eval();
    x.set_requires_grad();
    CompiledFunction slopes(TensorsFunction([&](std::span<const Tensor> in) {
      return gradients(sum(attention(x * in[0], x, x)), {x});
    }));
    uint64_t bytes = 0;
    const std::vector<Tensor> inputs = {full({}, 2.0, type, Device::cpu()).eval()};
    for (const PlanMemory& each : slopes.estimate_memory(inputs)) bytes += each.temporaries;
    return bytes;
  };
  for (const DType type : {DType::f32, DType::f64})
    EXPECT_LE(bytes_of(4096, type), 2 * bytes_of(2048, type) + 65536) << dtype_name(type);
}

TEST(FusedGradients, NormsAgreeWithF64) {
  for (const Shape& shape : {Shape{5, 21}, Shape{37}, Shape{300, 130}, Shape{2, 3, 1025}}) {
    const Tensor x = random_f64(shape), weight = random_f64({shape[-1]}),
                 bias = random_f64({shape[-1]});
    compare([](std::span<const Tensor> in) { return layer_norm(in[0], in[1], in[2]); },
            {x + 3.0, weight, bias}, "layer_norm " + shape.text());
    compare([](std::span<const Tensor> in) { return layer_norm(in[0]); }, {x}, "plain layer_norm");
    compare([](std::span<const Tensor> in) { return rms_norm(in[0], in[1]); }, {x, weight},
            "rms_norm " + shape.text());
  }
}

TEST(FusedGradients, GeluAgreesWithF64) {
  for (const Shape& shape : {Shape{37}, Shape{7, 31}, Shape{3, 20011}})
    compare([](std::span<const Tensor> in) { return gelu(in[0]); }, {random_f64(shape) * 3.0},
            "gelu " + shape.text());
}

TEST(FusedGradients, WeightsOfLinearNeedNoCopy) {
  const auto parameter = [](const Shape& shape) {
    return zeros(shape, DType::f32, Device::cpu()).set_requires_grad();
  };
  const Tensor weight = parameter({4, 5}).eval(), bias = parameter({4}).eval();
  CompiledFunction slopes(TensorsFunction([&](std::span<const Tensor> in) {
    return gradients(sum(sin(linear(in[0], weight, bias))), {weight, bias});
  }));
  const std::vector<Tensor> inputs = {zeros({6, 5}, DType::f32, Device::cpu()).eval()};
  const std::string steps = slopes.explain(inputs);
  EXPECT_EQ(steps.find("view_gradient"), std::string::npos) << steps;
  EXPECT_EQ(steps.find("copy"), std::string::npos) << steps;
}

TEST(FusedGradients, ExplainSaysWhyAttentionNeedsItsScores) {
  const auto explained = [](int64_t queries, const AttentionSettings& settings, DType type) {
    Tensor x = zeros({1, 2, queries, 8}, type, Device::cpu()).eval();
    x.set_requires_grad();
    const Tensor loss = sum(attention(x, x, x, settings));
    const std::vector<Tensor> outputs = {loss, gradients(loss, {x})[0]};
    return Plan(outputs).explain();
  };
  const std::string start = "the gradient of attention over ";
  EXPECT_EQ(explained(6, {}, DType::f32).find(start), std::string::npos);
  EXPECT_NE(explained(6, {.soft_cap = 20}, DType::f32)
                .find(start + "6 queries and 6 keys is computed from all scores, which are kept: "
                              "it has a soft cap\n"),
            std::string::npos);
  const std::string parts = explained(512, {}, DType::f64);
  EXPECT_NE(parts.find("from scores of 256 queries at a time, made again: f64 has no kernel"),
            std::string::npos)
      << parts;
}

}  // namespace
}  // namespace prism
