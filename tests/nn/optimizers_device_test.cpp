// Tests optimisers, schedules, clipping, accumulation and averages against PyTorch's results
// (tests/data/nn), eagerly and as compiled steps, on every device found.
#include <cmath>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prism/error.h"
#include "prism/nn/optimizer.h"
#include "prism/nn/train_step.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "support/devices/devices.h"
#include "support/paths.h"
#include "tensor/op.h"

namespace prism {
namespace {

constexpr int kSteps = 20;
using Parameters = std::vector<Tensor>;
using Make = std::function<std::unique_ptr<nn::Optimizer>(const Parameters&)>;

const nlohmann::json& vectors() {
  static const nlohmann::json all = [] {
    std::ifstream file(test::source_dir() / "tests/data/nn/optimizer_vectors.json");
    return nlohmann::json::parse(file);
  }();
  return all;
}

Tensor tensor(const nlohmann::json& values, const Shape& shape, const Device& device) {
  return from_vector(values.get<std::vector<float>>(), shape, device);
}

struct Problem {
  explicit Problem(const Device& device)
      : x(tensor(vectors()["x"], {6, 4}, device)), y(tensor(vectors()["y"], {6, 3}, device)) {
    const nlohmann::json& start = vectors()["start"];
    parameters = {tensor(start["w1"], {5, 4}, device), tensor(start["b1"], {5}, device),
                  tensor(start["w2"], {3, 5}, device)};
    for (Tensor& each : parameters) each.set_requires_grad();
  }
  Tensor loss(const Tensor& in, const Tensor& wanted) const {
    const Tensor hidden = tanh(linear(in, parameters[0], parameters[1]));
    return mean(square(linear(hidden, parameters[2]) - wanted));
  }
  Tensor x, y;
  Parameters parameters;
};

struct Case {
  std::string name;
  Make make;
  nn::TrainStepOptions options = {};
  nn::Schedule schedule = {};
  double average = 0;
};

template <class Rule, class Settings>
Make with(Settings settings, std::vector<size_t> which = {0, 1, 2}) {
  return [=](const Parameters& all) -> std::unique_ptr<nn::Optimizer> {
    Parameters chosen;
    for (const size_t i : which) chosen.push_back(all[i]);
    return std::make_unique<Rule>(chosen, settings);
  };
}

std::vector<Case> cases() {
  using namespace nn;
  const Make momentum = with<SGD>(SGDSettings{.lr = 0.1, .momentum = 0.9});
  const Make groups = [](const Parameters& all) -> std::unique_ptr<Optimizer> {
    return std::make_unique<SGD>(std::vector<ParameterGroup<SGDSettings>>{
        {{all[0]}, {.lr = 0.1, .momentum = 0.9}},
        {{all[1], all[2]}, {.lr = 0.02, .momentum = 0.9, .weight_decay = 0.5}}});
  };
  return {
      {"sgd", with<SGD>(SGDSettings{.lr = 0.1})},
      {"sgd_momentum", momentum},
      {"sgd_dampened",
       with<SGD>(SGDSettings{.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01})},
      {"sgd_nesterov",
       with<SGD>(SGDSettings{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.02, .nesterov = true})},
      {"adam", with<Adam>(AdamSettings{.lr = 0.05})},
      {"adam_decay",
       with<Adam>(AdamSettings{
           .lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1})},
      {"adamw", with<AdamW>(AdamWSettings{.lr = 0.05, .beta2 = 0.95, .weight_decay = 0.1})},
      {"rmsprop", with<RMSprop>(RMSpropSettings{.lr = 0.02})},
      {"rmsprop_momentum", with<RMSprop>(RMSpropSettings{
                               .lr = 0.01, .alpha = 0.9, .weight_decay = 0.05, .momentum = 0.8})},
      {"lion", with<Lion>(LionSettings{.lr = 0.01, .weight_decay = 0.1})},
      {"muon", with<Muon>(MuonSettings{.lr = 0.05}, {0, 2})},
      {"muon_plain",
       with<Muon>(MuonSettings{.lr = 0.05, .momentum = 0.9, .weight_decay = 0, .nesterov = false},
                  {0, 2})},
      {"groups", groups},
      {"clip_norm", momentum, {.clip_norm = 0.3}},
      {"clip_value", momentum, {.clip_value = 0.05}},
      {"cosine", momentum, {}, cosine_schedule(20)},
      {"accumulate", momentum, {.accumulate = 2}},
      {"average", momentum, {}, {}, 0.9},
  };
}

void expect_result(const std::string& name, std::span<const Tensor> got, const std::string& where) {
  for (size_t i = 0; i < got.size(); ++i) {
    const auto wanted = vectors()["results"][name][i].get<std::vector<double>>();
    const std::vector<double> values = got[i].to_doubles();
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t e = 0; e < wanted.size(); ++e)
      EXPECT_NEAR(values[e], wanted[e], 1e-5) << name << " " << where << " " << i << " " << e;
  }
}

TEST(Optimizers, AgreeWithPyTorch) {
  for (const Case& each : cases()) {
    Problem problem(Device::cpu());
    const auto optimizer = each.make(problem.parameters);
    if (each.schedule) optimizer->set_schedule(each.schedule);
    nn::MovingAverage average(problem.parameters, each.average);
    for (int step = 0; step < kSteps; ++step) {
      optimizer->zero_grad();
      const int parts = each.options.accumulate;
      for (int part = 0; part < parts; ++part) {
        const int64_t rows = 6 / parts, first = part * rows;
        (problem.loss(problem.x.slice(0, first, first + rows),
                      problem.y.slice(0, first, first + rows)) /
         static_cast<double>(parts))
            .backward();
      }
      if (each.options.clip_norm > 0)
        nn::clip_grad_norm(problem.parameters, each.options.clip_norm);
      if (each.options.clip_value > 0)
        nn::clip_grad_value(problem.parameters, each.options.clip_value);
      optimizer->step();
      average.update();
    }
    EXPECT_EQ(optimizer->steps(), kSteps);
    expect_result(each.name, each.average > 0 ? average.averages() : problem.parameters, "eager");
  }
}

TEST(TrainStepDevice, AgreesWithPyTorch) {
  for (const Device& device : test::every_device()) {
    for (const bool checked : {false, true}) {
      if (checked && device != Device::cpu()) continue;  // to compile half as many kernels
      for (const Case& each : cases()) {
        Problem problem(device);
        std::vector<const Storage*> memory;
        for (const Tensor& p : problem.parameters) memory.push_back(p.node()->storage[0].get());
        const auto optimizer = each.make(problem.parameters);
        if (each.schedule) optimizer->set_schedule(each.schedule);
        nn::MovingAverage average(problem.parameters, each.average);
        nn::TrainStepOptions options = each.options;
        options.detect_anomaly = checked;
        if (each.average > 0) options.average = &average;
        nn::TrainStep step(
            *optimizer,
            [&](std::span<const Tensor> batch) { return problem.loss(batch[0], batch[1]); },
            options);
        const int64_t parts = options.accumulate, rows = 6 / parts;
        for (int64_t i = 0; i < kSteps * parts; ++i) {
          const int64_t first = i % parts * rows;
          step({problem.x.slice(0, first, first + rows), problem.y.slice(0, first, first + rows)});
        }
        expect_result(each.name, each.average > 0 ? average.averages() : problem.parameters,
                      device.id() + (checked ? " checked" : ""));
        EXPECT_EQ(step.plans(), parts == 1 ? 1u : 2u) << each.name;
        for (size_t p = 0; p < memory.size(); ++p)
          EXPECT_EQ(problem.parameters[p].node()->storage[0].get(), memory[p]) << "not in place";
      }
    }
  }
}

// The update of the last layer's weight must follow the product that needs the old one for the
// gradient of the first layer, wherever the parameters stand.
TEST(TrainStep, ReadsParametersBeforeItChangesThem) {
  const auto train = [](std::vector<size_t> order) {
    Problem problem(Device::cpu());
    Parameters parameters;
    for (const size_t i : order) parameters.push_back(problem.parameters[i]);
    nn::SGD optimizer(parameters, {.lr = 0.5});
    nn::TrainStep step(
        optimizer, [&](std::span<const Tensor> batch) { return problem.loss(batch[0], batch[1]); });
    for (int i = 0; i < 5; ++i) step({problem.x, problem.y});
    return std::pair(problem.parameters[0].to_doubles(), problem.parameters[2].to_doubles());
  };
  EXPECT_EQ(train({2, 1, 0}), train({0, 1, 2}));
}

// What depends on parameters alone is computed in every step, not once for the plan.
TEST(TrainStep, RecomputesWhatDependsOnParameters) {
  const auto train = [](bool compiled) {
    Problem problem(Device::cpu());
    Tensor& w = problem.parameters[0];
    nn::SGD optimizer({w}, {.lr = 0.5});
    const auto loss = [&](std::span<const Tensor> batch) {
      return mean(square(linear(batch[0], w / sqrt(sum(square(w)))))) + mean(w);
    };
    nn::TrainStep step(optimizer, loss);
    for (int i = 0; i < 5; ++i) {
      if (compiled) {
        step({problem.x});
        continue;
      }
      optimizer.zero_grad();
      loss(std::span(&problem.x, 1)).backward();
      optimizer.step();
    }
    return w.to_doubles();
  };
  const std::vector<double> compiled = train(true), eager = train(false);
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(compiled[i], eager[i], 1e-6);
}

TEST(Schedules, AgreeWithPyTorch) {
  using namespace nn;
  const std::map<std::string, Schedule> all = {
      {"linear", linear_schedule(20, 1, 0.1)},
      {"cosine", cosine_schedule(30, 0.05)},
      {"step", step_schedule(7, 0.5)},
      {"one_cycle", one_cycle_schedule(31)},
      {"warm_up", warm_up(10, cosine_schedule(20))},
  };
  for (const auto& [name, schedule] : all) {
    const auto wanted = vectors()["schedules"][name].get<std::vector<double>>();
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(schedule(static_cast<int64_t>(i)), wanted[i], 1e-12) << name << " " << i;
  }
  EXPECT_EQ(constant_schedule(0.5)(7), 0.5);
  EXPECT_EQ(cosine_schedule(5, 0.1)(100), 0.1) << "it stays at the end";
  EXPECT_THROW(cosine_schedule(0), Error);
}

TEST(Optimizers, StateContinuesARun) {
  const auto train = [](Problem& problem, nn::Optimizer& optimizer, int steps) {
    for (int i = 0; i < steps; ++i) {
      optimizer.zero_grad();
      problem.loss(problem.x, problem.y).backward();
      optimizer.step();
    }
  };
  for (const Case& each : cases()) {
    Problem whole(Device::cpu()), half(Device::cpu()), rest(Device::cpu());
    const auto one = each.make(whole.parameters), two = each.make(half.parameters);
    train(whole, *one, 7);
    train(half, *two, 4);
    for (size_t i = 0; i < 3; ++i) {
      const Tensor& from = half.parameters[i];
      rest.parameters[i] = from_vector(from.to_vector<float>(), from.shape(), Device::cpu());
      rest.parameters[i].set_requires_grad();
    }
    const auto four = each.make(rest.parameters);
    four->load_state_dict(two->state_dict());
    EXPECT_EQ(four->steps(), 4);
    train(rest, *four, 3);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(rest.parameters[i].to_doubles(), whole.parameters[i].to_doubles()) << each.name;
    auto wrong = two->state_dict();
    wrong.erase("steps");
    EXPECT_THROW(four->load_state_dict(wrong), Error);
  }
}

TEST(Optimizers, RefuseBadInput) {
  const Problem problem(Device::cpu());
  const Tensor plain = zeros({2}, DType::f32, Device::cpu());
  EXPECT_THROW(nn::SGD({plain}), Error);
  EXPECT_THROW(nn::SGD({problem.parameters[0], problem.parameters[0]}), Error);
  EXPECT_THROW(nn::SGD(problem.parameters, {.lr = -1}), Error);
  EXPECT_THROW(nn::SGD(problem.parameters, {.nesterov = true}), Error);
  EXPECT_THROW(nn::Adam(problem.parameters, {.beta1 = 2}), Error);
  EXPECT_THROW(nn::AdamW(problem.parameters, {.beta2 = 1}), Error);
  EXPECT_THROW(nn::RMSprop(problem.parameters, {.alpha = -0.1}), Error);
  EXPECT_THROW(nn::Lion(problem.parameters, {.beta1 = std::nan("")}), Error);
  EXPECT_THROW(nn::Muon(problem.parameters), Error) << "a bias is no matrix";
  nn::SGD optimizer(problem.parameters);
  nn::TrainStep step(optimizer, [&](std::span<const Tensor> in) { return in[0]; });
  EXPECT_THROW(step({problem.x}), Error) << "more than one number";
}

}  // namespace
}  // namespace prism
