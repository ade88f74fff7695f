// A training run of a GPT.
#include "llm/train/gpt_run.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "prism/nn/losses.h"
#include "prism/nn/schedule.h"
#include "prism/ops/create.h"

namespace prism::llm {

namespace {

constexpr int64_t kValidationBatches = 50;
constexpr double kLastRate = 0.1;  // of the highest learning rate

// Weights are drawn from the seed of the thread.
const Device& seeded(uint64_t number, const Device& device) {
  seed(number);
  return device;
}

using Group = nn::ParameterGroup<nn::AdamWSettings>;

// Norms do not decay.
std::vector<Group> parameter_groups(Gpt& model, const GptRunOptions& options) {
  Group matrices{{}, {.lr = options.rate, .beta2 = 0.99, .weight_decay = options.weight_decay}};
  Group others{{}, {.lr = options.rate, .beta2 = 0.99, .weight_decay = 0}};
  for (const Tensor& each : model.parameters())
    (each.ndim() == 2 ? matrices : others).parameters.push_back(each);
  return {matrices, others};
}

nn::Schedule make_schedule(const GptRunOptions& options) {
  const int64_t warm = options.warmup >= 0 ? options.warmup : options.steps / 20 + 1;
  const nn::Schedule falls =
      nn::cosine_schedule(std::max<int64_t>(1, options.steps - warm), kLastRate);
  return warm > 0 ? nn::warm_up(warm, falls) : falls;
}

}  // namespace

uint64_t least_run_bytes(const GptShape& shape) {
  constexpr uint64_t kCopies = 5;  // weights, their best values, gradients, two moments
  return static_cast<uint64_t>(parameter_count(shape)) * sizeof(float) * kCopies;
}

GptRun::GptRun(const GptShape& shape, const TokenSplit& tokens, const GptRunOptions& options,
               const Device& device)
    : options_(options),
      device_(device),
      model_(shape, seeded(options.seed, device)),
      training_(nn::token_source(tokens.training, shape.context)) {
  if (!tokens.validation.empty()) validation_ = nn::token_source(tokens.validation, shape.context);
  loader_.emplace(training_, nn::DataLoaderOptions{
                                 .batch = options.batch, .seed = options.seed, .device = device});
  optimizer_.emplace(parameter_groups(model_, options));
  optimizer_->set_schedule(make_schedule(options));
  step_.emplace(
      *optimizer_, [this](std::span<const Tensor> batch) { return loss(batch); },
      nn::TrainStepOptions{.clip_norm = options.clip,
                           .accumulate = static_cast<int>(options.accumulate),
                           .seed = options.seed,
                           .detect_anomaly = options.detect_anomaly,
                           .model = &model_});
  loss_only_.emplace([this](std::span<const Tensor> batch) {
    const NoGrad off;
    model_.eval();
    const std::vector<Tensor> result = {loss(batch)};
    model_.train();
    return result;
  });
}

Tensor GptRun::loss(std::span<const Tensor> batch) {
  return nn::cross_entropy(model_(batch[0]), batch[1]);
}

int64_t GptRun::validation_batches() const {
  if (!validation_) return 0;
  return std::clamp<int64_t>(validation_->size() / options_.batch, 1, kValidationBatches);
}

double GptRun::validate() {
  nn::DataLoader loader(validation_, {.batch = std::min(options_.batch, validation_->size()),
                                      .shuffle = false,
                                      .prefetch = false,
                                      .device = device_});
  const int64_t count = validation_batches();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (*loss_only_)(loader.next())[0].item();
  return sum / static_cast<double>(count);
}

std::vector<Tensor> GptRun::example() const {
  std::vector<int64_t> samples(static_cast<size_t>(options_.batch));
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<Tensor> batch = training_->batch(samples);
  for (Tensor& each : batch) each = each.to(device_);
  return batch;
}

RunMemory GptRun::estimate_memory() {
  RunMemory sum;
  for (const PlanMemory& each : step_->estimate_memory(example())) {
    if (!(each.device == device_)) continue;
    sum.present += each.present;
    sum.needed += each.needed();
  }
  uint64_t validation = 0;
  for (const PlanMemory& each : loss_only_->estimate_memory(example()))
    if (each.device == device_) validation += each.needed();
  sum.needed += validation;
  return sum;
}

double GptRun::estimate_seconds(int64_t steps, int64_t validations) {
  constexpr int64_t kPasses = 3;  // a backward pass takes two forward passes' time
  const std::vector<Tensor> batch = example();
  (*loss_only_)(batch)[0].item();  // makes the plan
  const auto start = std::chrono::steady_clock::now();
  (*loss_only_)(batch)[0].item();
  const std::chrono::duration<double> forward = std::chrono::steady_clock::now() - start;
  return forward.count() * static_cast<double>(kPasses * options_.accumulate * steps +
                                               validations * validation_batches());
}

}  // namespace prism::llm
