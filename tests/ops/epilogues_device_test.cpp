// Tests fusion in the planner: chains after products and row ops in the same step, and shared
// rounding, give the results of separate steps.
#include <algorithm>
#include <functional>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/quantise.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"
#include "support/devices/devices.h"
#include "support/seed.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

struct Drawn {  // inputs of one test on one device
  Device device;
  std::mt19937_64& engine;
  Tensor operator()(const Shape& shape, DType type = DType::f32) const {
    return cast(uniform(shape, engine(), -1, 1, DType::f32, Device::cpu()), type)
        .eval()
        .to(device)
        .eval();
  }
};

// A chain over y, whose rows have n elements.
struct NamedChain {
  const char* name;
  std::function<std::function<Tensor(const Tensor&)>(const Drawn&, const Shape&)> make;
};

const std::vector<NamedChain>& chains() {
  using Made = std::function<Tensor(const Tensor&)>;
  static const std::vector<NamedChain> all = {
      {"bias",
       [](const Drawn& draw, const Shape& s) -> Made {
         return [b = draw({s[-1]})](const Tensor& y) { return y + b; };
       }},
      {"residual",
       [](const Drawn& draw, const Shape& s) -> Made {
         return [r = draw(s)](const Tensor& y) { return r + y; };
       }},
      {"gate",
       [](const Drawn& draw, const Shape& s) -> Made {
         return [g = draw(s)](const Tensor& y) { return silu(g) * y; };
       }},
      {"scaled to f16",
       [](const Drawn&, const Shape&) -> Made {
         return [](const Tensor& y) { return cast(y * 0.25, DType::f16); };
       }},
      {"a number a row",
       [](const Drawn& draw, const Shape& s) -> Made {
         Shape column = s;
         column[-1] = 1;
         return [w = draw(column)](const Tensor& y) { return clamp(y * w, -1.5, 2); };
       }},
      {"a reshape between",
       [](const Drawn& draw, const Shape& s) -> Made {
         const Shape flat = {1, s.elements()};
         return [r = draw(flat), flat](const Tensor& y) { return y.reshape(flat) - r; };
       }},
      {"a vector over several rows",
       [](const Drawn& draw, const Shape& s) -> Made {
         const int64_t rows = s[0] % 2 == 0 ? s[0] / 2 : 1;
         const Shape wide = {rows, s.elements() / rows};
         return [b = draw({wide[1]}), wide](const Tensor& y) { return y.reshape(wide) * b; };
       }},
      {"all of them",
       [](const Drawn& draw, const Shape& s) -> Made {
         return [b = draw({s[-1]}, DType::f16), r = draw(s), one = draw({1})](const Tensor& y) {
           return (gelu(y + b) * 0.5 + r) * 2.0 + one;
         };
       }},
      {"a chain of others after one of its own",
       [](const Drawn& draw, const Shape& s) -> Made {
         return [b = draw({s[-1]}), g = draw(s), r = draw({s[-1]})](const Tensor& y) {
           return (y + b) * (g * 3.0 - r);
         };
       }},
      {"a function of two of the first one's uses",
       [](const Drawn& draw, const Shape& s) -> Made {
         return [b = draw({s[-1]})](const Tensor& y) {
           const Tensor t = y + b;
           return maximum(t, 0.0) + log1p(exp(-abs(t)));
         };
       }},
      {"a view that kernels do not take",
       [](const Drawn& draw, const Shape& s) -> Made {
         Shape turned = s;
         std::swap(turned[-1], turned[-2]);
         return [r = draw(turned)](const Tensor& y) { return y + r.transpose(); };
       }},
  };
  return all;
}

struct NamedOp {
  std::string name;
  std::function<std::function<Tensor()>(const Drawn&)> make;
};

std::vector<NamedOp> operations() {
  using Made = std::function<Tensor()>;
  std::vector<NamedOp> all;
  for (const int64_t rows : {1, 13}) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      all.push_back(
          {std::string("linear of ") + dtype_name(type) + " " + std::to_string(rows),
           [=](const Drawn& draw) -> Made {
             return [x = draw({rows, 40}, type), w = draw({24, 40}, type)] { return linear(x, w); };
           }});
    }
    all.push_back({"linear of q8_0 " + std::to_string(rows), [=](const Drawn& draw) -> Made {
                     const Tensor w = quantise(draw({19, 64}), BlockType::q8_0).eval();
                     return [x = draw({rows, 64}), w] { return linear(x, w); };
                   }});
    all.push_back({"experts " + std::to_string(rows), [=](const Drawn& draw) -> Made {
                     std::vector<int32_t> ids;
                     for (int64_t i = 0; i < rows * 3; ++i)
                       ids.push_back(static_cast<int32_t>(draw.engine() % 4));
                     return [x = draw({rows, 32}, DType::f16), w = draw({4, 8, 32}, DType::f16),
                             experts = from_vector<int32_t>(ids, {rows, 3}, draw.device)] {
                       return expert_matmul(x, w, experts);
                     };
                   }});
  }
  all.push_back({"a batch of products", [](const Drawn& draw) -> Made {
                   return [a = draw({3, 5, 12}), b = draw({3, 12, 7})] { return matmul(a, b); };
                 }});
  all.push_back({"sums of nothing", [](const Drawn& draw) -> Made {
                   return [x = draw({3, 0}), w = draw({5, 0})] { return linear(x, w); };
                 }});
  for (const int64_t n : {12, 37, 600}) {
    const int64_t rows = n < 100 ? 5 : 61;  // many rows are shared by threads
    all.push_back({"rms_norm of " + std::to_string(n), [=](const Drawn& draw) -> Made {
                     return [x = draw({rows, n}), w = draw({n})] { return rms_norm(x, w); };
                   }});
    all.push_back({"softmax of " + std::to_string(n), [=](const Drawn& draw) -> Made {
                     return [x = draw({5, n})] { return softmax(x * 3.0); };
                   }});
  }
  all.push_back({"row_sum", [](const Drawn& draw) -> Made {
                   return [x = draw({6, 20}), w = draw({20})] { return row_sum(x * w); };
                 }});
  all.push_back({"layer_norm", [](const Drawn& draw) -> Made {
                   return [x = draw({4, 20}, DType::f16), w = draw({20}), b = draw({20})] {
                     return layer_norm(x, w, b);
                   };
                 }});
  return all;
}

bool is_half(const Tensor& x) {
  return x.type() == ElementType(DType::f16) || x.type() == ElementType(DType::bf16);
}

void compare(const Device& device, const NamedOp& op, const NamedChain& chain, uint64_t seed) {
  SCOPED_TRACE(op.name + ", " + chain.name + " on " + device.id() + ", seed " +
               std::to_string(seed));
  std::mt19937_64 engine(seed);
  const Drawn draw{device, engine};
  const auto make = op.make(draw);
  const Tensor first = make();
  const bool half = is_half(first);
  const auto then = chain.make(draw, first.shape());
  const Tensor apart = then(first.eval()), together = then(make());
  const Tensor outputs[] = {together};
  const Plan plan(outputs);
  const auto is_rounding = [](const PlanStep& step) { return step.name == "round_rows"; };
  EXPECT_EQ(std::ranges::count_if(plan.steps(), std::not_fn(is_rounding)), 1) << plan.explain();
  EXPECT_NE(plan.explain().find("then "), std::string::npos) << plan.explain();
  ASSERT_EQ(together.type().name(), apart.type().name());
  const std::vector<double> got = together.to_doubles(), wanted = apart.to_doubles();
  ASSERT_EQ(got.size(), wanted.size());
  // Separate steps round to half precision in between, which one step avoids.
  const double bound = half ? (first.type() == ElementType(DType::bf16) ? 2e-2 : 3e-3)
                       : is_half(together)    ? 1e-3
                       : device.info().is_cpu ? 0
                                              : 2e-6;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], bound * (4 + std::abs(wanted[i]))) << "element " << i;
}

// Software devices compile slowly: they get a random half of the ops with one chain each.
TEST(Epilogues, OneStepGivesWhatTwoGive) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 engine(seed);
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      const bool slow = !device.info().is_cpu && device.info().software;
      for (const NamedOp& op : operations()) {
        const size_t drawn = engine() % (2 * chains().size());
        for (size_t i = 0; i < chains().size(); ++i)
          if (!slow || i == drawn) compare(device, op, chains()[i], engine());
      }
    }
  }
}

TEST(Epilogues, ChainsThatFollowEachOther) {
  std::mt19937_64 engine(3);
  const Drawn draw{Device::cpu(), engine};
  const Tensor x = draw({2, 32}), w = draw({16, 32}), b = draw({16}), r = draw({2, 16});
  // The sum is used twice, so it is stored; its inputs are not.
  const Tensor h = r + (linear(x, w) + b), y = rms_norm(h, b) * 2.0 + h;
  const Tensor outputs[] = {y};
  const Plan plan(outputs);
  EXPECT_EQ(plan.steps().size(), 2u) << plan.explain();
}

// The bias belongs to rows of 24, not to those of 8 that the next chain sees.
TEST(Epilogues, AReshapeAfterABias) {
  std::mt19937_64 engine(test_seed());
  for (const Device& device : test::every_device()) {
    const Drawn draw{device, engine};
    for (const int64_t rows : {1, 5, 40}) {
      const Tensor x = draw({rows, 24}), w = draw({24, 24}), b = draw({24}), c = draw({3, 1});
      const Shape shape = {rows, 3, 8};
      const std::vector<float> found =
          (silu(linear(x, w, b).reshape(shape)) * c).to_vector<float>();
      const Tensor made = (linear(x, w).eval() + b).eval();
      const std::vector<float> wanted = (silu(made.reshape(shape)).eval() * c).to_vector<float>();
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(found[i], wanted[i], 1e-4) << device.id() << ", " << rows << " rows, " << i;
    }
  }
}

TEST(Epilogues, ResultsThatOthersUseAreMade) {
  std::mt19937_64 engine(3);
  const Drawn draw{Device::cpu(), engine};
  const Tensor x = draw({2, 32}), w = draw({16, 32}), y = linear(x, w), z = y + 1.0;
  const Tensor outputs[] = {y, z};
  EXPECT_EQ(Plan(outputs).steps().size(), 2u);
}

// Products of one input with quantised weights: the rows are rounded once, and the results equal
// those of separate products.
TEST(SharedRows, AreRoundedOnce) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 engine(seed);
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      const Drawn draw{device, engine};
      for (const int64_t rows : {1, 3, 11}) {
        SCOPED_TRACE(device.id() + ", " + std::to_string(rows) + " rows");
        const Tensor x = draw({rows, 256}, rows == 3 ? DType::f16 : DType::f32);
        const auto weights = [&](int64_t n, BlockType type) {
          return quantise(draw({n, 256}), type).eval();
        };
        const Tensor q = weights(24, BlockType::q8_0), k = weights(8, BlockType::q8_0),
                     v = weights(8, BlockType::q4_0), bias = draw({24});
        const Tensor experts = quantise(draw({4, 8, 256}), BlockType::q8_0).eval();
        std::vector<int32_t> ids;
        for (int64_t i = 0; i < rows * 2; ++i) ids.push_back(static_cast<int32_t>(engine() % 4));
        const Tensor chosen = from_vector<int32_t>(ids, {rows, 2}, device);
        const auto all = [&] {
          return std::vector<Tensor>{linear(x, q, bias), linear(x, k), linear(x, v),
                                     expert_matmul(x, experts, chosen)};
        };
        const std::vector<Tensor> together = all();
        const Plan plan(together);
        const bool rounds = device.info().is_cpu || rows <= 3;
        size_t rounding = 0;
        for (const PlanStep& step : plan.steps()) rounding += step.name == "round_rows";
        EXPECT_EQ(rounding, rounds ? 1u : 0u) << plan.explain();
        eval(together);
        const std::vector<Tensor> apart = all();
        for (size_t i = 0; i < apart.size(); ++i)
          EXPECT_EQ(together[i].to_doubles(), apart[i].to_doubles()) << "product " << i;
      }
    }
  }
}

TEST(SharedRows, OnlyWhatIsTheSame) {
  std::mt19937_64 engine(5);
  const Drawn draw{Device::cpu(), engine};
  const Tensor x = draw({2, 256}), w = quantise(draw({8, 256}), BlockType::q8_0).eval(),
               wide = quantise(draw({8, 256}), BlockType::q6_k).eval();
  const auto steps = [](std::initializer_list<Tensor> outputs) {
    return Plan(std::span(outputs.begin(), outputs.size())).steps().size();
  };
  EXPECT_EQ(steps({linear(x, w)}), 1u);
  EXPECT_EQ(steps({linear(x, w), linear(x.slice(0, 0, 1), w)}), 2u);  // different rows
  EXPECT_EQ(steps({linear(x, w), linear(x, wide)}), 2u);              // different blocks
  EXPECT_EQ(steps({linear(x, w), linear(x, w), linear(x, wide)}), 4u);
}

}  // namespace
}  // namespace prism
