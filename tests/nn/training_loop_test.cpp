// Tests the training loop: early stop, the best parameters, resuming, losses that are not finite.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "nn/train/training_loop.h"
#include "prism/error.h"
#include "prism/nn.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "support/run_program.h"

namespace prism::nn {
namespace {

// One number that every step makes smaller by 1, beside a validation loss by step.
struct Countdown : Module {
  Tensor number = full({1}, 100.0, DType::f32, Device::cpu()).set_requires_grad();
  PRISM_MEMBERS(number)
};

struct CountdownRun {
  explicit CountdownRun(LoopSettings with, std::vector<double> validations = {})
      : losses(std::move(validations)) {
    with.validate_every = losses.empty() ? 0 : 1;
    LoopEvents events;
    if (!losses.empty())
      events.validate = [this] { return losses.at(static_cast<size_t>(optimizer.steps()) - 1); };
    events.interrupted = [this] { return optimizer.steps() == interrupt_at; };
    loop.emplace(TrainingRun{&model, {&optimizer}, &step, nullptr, &loader}, with, events);
  }
  double number() const { return model.number.item(); }

  Countdown model;
  std::vector<double> losses;
  int64_t interrupt_at = -1;
  double scale = 1;
  SGD optimizer{model.parameters(), {.lr = 1}};
  DataLoader loader{tensor_source({ones({8}, DType::f32, Device::cpu())}),
                    {.batch = 1, .device = Device::cpu()}};
  TrainStep step{optimizer, [this](std::span<const Tensor> batch) {
                   return sum(model.number * batch[0]) / scale;
                 }};
  std::optional<TrainingLoop> loop;
};

class Loop : public testing::Test {
 protected:
  void SetUp() override { set_default_device(Device::cpu()); }
  LoopSettings settings(int64_t steps) const {
    LoopSettings result;
    result.steps = steps;
    result.checkpoint = folder_ / "run.checkpoint";
    return result;
  }
  test::TemporaryFolder folder_;
};

TEST_F(Loop, StopsEarlyAndKeepsTheBest) {
  LoopSettings with = settings(20);
  with.patience = 3;
  const std::vector<double> losses = {5, 4, 3, 3.5, 2.5, 2.6, 2.7, 2.5, 1, 1, 1, 1};
  CountdownRun run(with, losses);
  EXPECT_EQ(run.loop->run(), LoopEnd::stopped_early);
  EXPECT_EQ(run.loop->steps(), 8) << "three validations after that of step 5";
  EXPECT_EQ(run.loop->best_step(), 5);
  EXPECT_EQ(run.loop->best_loss(), 2.5);
  EXPECT_EQ(run.number(), 92);
  run.loop->use_best();
  EXPECT_EQ(run.number(), 95);
  CountdownRun again(with, losses);
  again.loop->resume();
  EXPECT_EQ(again.loop->run(), LoopEnd::stopped_early) << "patience is part of the checkpoint";
  again.loop->use_best();
  EXPECT_EQ(again.number(), 95);
}

TEST_F(Loop, InterruptedRunsContinue) {
  const std::vector<double> losses = {5, 4, 3, 2, 3, 3, 3, 3, 3, 3};
  CountdownRun run(settings(10), losses);
  run.interrupt_at = 6;
  EXPECT_EQ(run.loop->run(), LoopEnd::interrupted);
  CountdownRun next(settings(10), losses);
  next.loop->resume();
  EXPECT_EQ(next.loop->steps(), 6);
  EXPECT_EQ(next.loop->run(), LoopEnd::finished);
  EXPECT_EQ(next.number(), 90);
  next.loop->use_best();
  EXPECT_EQ(next.number(), 96) << "the best of both parts";
}

TEST_F(Loop, RefusesOtherRuns) {
  LoopSettings with = settings(4);
  with.identity = {{"--batch", 3}};
  EXPECT_EQ(CountdownRun(with).loop->run(), LoopEnd::finished);
  with.identity = {{"--batch", 4}};
  CountdownRun other(with);
  try {
    other.loop->resume();
    FAIL() << "another run";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("another --batch"), std::string::npos) << error.what();
  }
  with.identity = {{"--batch", 3}, {"--more", 1}};
  EXPECT_THROW(CountdownRun(with).loop->resume(), Error) << "a tensor is missing";
}

TEST_F(Loop, NeverSavesWhatIsNotFinite) {
  LoopSettings with = settings(30);
  with.save_every = 4;
  CountdownRun run(with);
  run.interrupt_at = 4;
  EXPECT_EQ(run.loop->run(), LoopEnd::interrupted);
  const std::string good = test::read_file(with.checkpoint);
  {
    LoopSettings at_once = with;
    at_once.save_every = 1;
    CountdownRun bad(at_once);  // the loss of the step is finite, the parameter after it is not
    bad.loop->resume();
    bad.optimizer.set_lr(INFINITY);
    EXPECT_THROW(bad.loop->run(), Error);
  }
  EXPECT_EQ(test::read_file(with.checkpoint), good);
  CountdownRun bad(with);
  bad.scale = 0;
  EXPECT_THROW(bad.loop->run(), Error) << "the loss is infinite";
  EXPECT_EQ(test::read_file(with.checkpoint), good);
}

}  // namespace
}  // namespace prism::nn
