// Tests steps that compute in bf16 and f16: their losses follow those of f32, and the loss scale of
// f16 adapts.
#include <cmath>

#include <gtest/gtest.h>

#include "llm/train/gpt.h"
#include "prism/error.h"
#include "prism/nn.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "support/devices/devices.h"

namespace prism {
namespace {

// The losses of a small GPT that learns sums.
std::vector<double> losses_in(DType type, const Device& device, llm::GptShape shape,
                              int64_t steps) {
  std::vector<int32_t> tokens;
  for (int a = 0; a < 30; ++a)
    for (int b = 0; b < 30; ++b)
      for (const char c :
           std::to_string(a) + "+" + std::to_string(b) + "=" + std::to_string(a + b) + "\n")
        tokens.push_back(c % 64);
  seed(5);
  shape.vocabulary = 64;
  llm::Gpt model(shape, device);
  nn::AdamW optimizer(model.parameters(), {.lr = 3e-3});
  optimizer.set_schedule(nn::warm_up(10, nn::cosine_schedule(steps)));
  nn::DataLoader loader(nn::token_source(tokens, shape.context),
                        {.batch = 8, .seed = 1, .device = device});
  nn::TrainStep step(
      optimizer,
      [&](std::span<const Tensor> batch) { return nn::cross_entropy(model(batch[0]), batch[1]); },
      {.clip_norm = 1, .compute = type});
  std::vector<double> losses;
  for (int64_t i = 0; i < steps; ++i) losses.push_back(step(loader.next()).item());
  return losses;
}

TEST(MixedPrecision, LossesFollowThoseOfF32) {
  for (const Device& device : test::every_device()) {
    if (device.backend() == "opencl" && device.info().software) {
      test::left_out(device.id(), "its compiler takes a minute for these kernels");
      continue;
    }
    set_default_device(device);
    // Software devices compile slowly, so theirs is a short run of a small model.
    const bool is_cpu = device.backend() == "cpu";
    const llm::GptShape shape =
        is_cpu ? llm::GptShape{.context = 32, .layers = 2, .width = 64, .heads = 4}
               : llm::GptShape{.context = 8, .layers = 1, .width = 16, .heads = 1};
    const int64_t steps = is_cpu ? 60 : 3;
    const std::vector<double> plain = losses_in(DType::f32, device, shape, steps);
    if (is_cpu) {
      EXPECT_LT(plain.back(), plain.front() - 1.5) << "it learns";
    }
    for (const DType type : {DType::bf16, DType::f16}) {
      const std::vector<double> got = losses_in(type, device, shape, steps);
      double largest = 0;
      for (size_t i = 0; i < got.size(); ++i)
        largest = std::max(largest, std::abs(got[i] - plain[i]));
      EXPECT_LT(largest, 0.01) << device.id() << " " << dtype_name(type);
      EXPECT_GT(largest, 0) << device.id() << " " << dtype_name(type) << " computed in f32";
    }
  }
}

TEST(MixedPrecision, TheScaleAdapts) {
  set_default_device(Device::cpu());
  seed(1);
  nn::Linear model(4, 1, false);
  nn::SGD optimizer(model.parameters(), {.lr = 1e-6});
  const Tensor x = full({2, 4}, 100.0);
  nn::TrainStep step(optimizer,
                     [&](std::span<const Tensor> batch) { return sum(square(model(batch[0]))); },
                     {.compute = DType::f16});
  const auto scale = [&] { return step.state_dict().at("scaling").to_vector<float>()[0]; };
  EXPECT_EQ(scale(), 65536);
  const std::vector<double> before = model.weight.to_doubles();
  step({x});
  EXPECT_EQ(scale(), 32768) << "gradients of 2 * 100 * 65536 are infinite in f16";
  EXPECT_EQ(model.weight.to_doubles(), before);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(std::isfinite(step({x}).item()));
  EXPECT_LT(scale(), 1000);
  EXPECT_NE(model.weight.to_doubles(), before) << "it trains once the scale fits";
  nn::TrainStep other(optimizer,
                      [&](std::span<const Tensor> batch) { return sum(square(model(batch[0]))); },
                      {.compute = DType::f16});
  other.load_state_dict(step.state_dict());
  EXPECT_EQ(other.state_dict().at("scaling").to_doubles(),
            step.state_dict().at("scaling").to_doubles());
  EXPECT_THROW(nn::TrainStep(optimizer, [](std::span<const Tensor> b) { return b[0]; },
                             {.compute = DType::i32}),
               Error);
}

}  // namespace
}  // namespace prism
