// A training run of a module.
#include "llm/train/model_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/fast_hash.h"
#include "base/units.h"
#include "prism/error.h"
#include "prism/nn/schedule.h"

namespace prism::llm {

namespace {

constexpr int64_t kValidationBatches = 50;
constexpr double kLastRate = 0.1;  // of the highest learning rate

using Group = nn::ParameterGroup<nn::AdamWSettings>;

// Norms and biases do not decay.
std::vector<Group> parameter_groups(nn::Module& model, const ModelRunOptions& options) {
  Group matrices{{}, {.lr = options.rate, .beta2 = 0.99, .weight_decay = options.weight_decay}};
  Group others{{}, {.lr = options.rate, .beta2 = 0.99, .weight_decay = 0}};
  for (const Tensor& each : model.parameters())
    (each.ndim() >= 2 ? matrices : others).parameters.push_back(each);
  std::vector<Group> groups = {matrices, others};
  std::erase_if(groups, [](const Group& each) { return each.parameters.empty(); });
  return groups;
}

nn::Schedule make_schedule(const ModelRunOptions& options) {
  const int64_t warm = options.warmup >= 0 ? options.warmup : options.steps / 20 + 1;
  const nn::Schedule falls =
      nn::cosine_schedule(std::max<int64_t>(1, options.steps - warm), kLastRate);
  return warm > 0 ? nn::warm_up(warm, falls) : falls;
}

}  // namespace

nn::LoopSettings loop_settings(const ModelRunOptions& options, int64_t units_per_step) {
  // Ten validations and checkpoints are enough for a curve, and cost little beside training.
  const int64_t often = std::max<int64_t>(1, options.steps / 10);
  return {.steps = options.steps,
          .accumulate = options.accumulate,
          .units_per_step = units_per_step,
          .validate_every = options.validate_every ? options.validate_every : often,
          .patience = options.patience,
          .save_every = options.save_every ? options.save_every : often,
          .checkpoint = options.checkpoint,
          .identity = {{"--batch", options.batch},
                       {"--accumulate", options.accumulate},
                       {"--seed", static_cast<int64_t>(options.seed)},
                       {"--validation", std::llround(options.validation * 1e6)}}};
}

int64_t identity_of(std::span<const std::byte> bytes) {
  return static_cast<int64_t>(std::stoull(fast_hash(bytes).substr(0, 16), nullptr, 16));
}

void check_memory(uint64_t needed, const Device& device) {
  const uint64_t free = device.free_bytes();
  if (needed <= free) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("train: the run needs about {} of memory, {} has {} free; use a smaller "
                          "--batch (with --accumulate), a shorter --context or a smaller model",
                          size_text(needed), device.id(), size_text(free)));
}

ModelRun::ModelRun(nn::Module& model, Loss loss, RunData data, const ModelRunOptions& options,
                   const Device& device)
    : model_(model), data_(std::move(data)), options_(options), device_(device) {
  loader_.emplace(
      data_.training,
      nn::DataLoaderOptions{.batch = options.batch, .seed = options.seed, .device = device});
  optimizer_.emplace(parameter_groups(model, options));
  optimizer_->set_schedule(make_schedule(options));
  step_.emplace(*optimizer_, loss,
                nn::TrainStepOptions{.clip_norm = options.clip,
                                     .accumulate = static_cast<int>(options.accumulate),
                                     .seed = options.seed,
                                     .compute = options.compute,
                                     .detect_anomaly = options.detect_anomaly,
                                     .model = &model});
  loss_only_.emplace([this, loss](std::span<const Tensor> batch) {
    const NoGrad off;
    model_.eval();
    const std::vector<Tensor> result = {loss(batch)};
    model_.train();
    return result;
  });
}

int64_t ModelRun::validation_batches() const {
  if (!data_.validation) return 0;
  return std::clamp<int64_t>(data_.validation->size() / options_.batch, 1, kValidationBatches);
}

double ModelRun::validate() {
  nn::DataLoader loader(data_.validation,
                        {.batch = std::min(options_.batch, data_.validation->size()),
                         .shuffle = false,
                         .prefetch = false,
                         .device = device_});
  const int64_t count = validation_batches();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (*loss_only_)(loader.next())[0].item();
  return sum / static_cast<double>(count);
}

std::vector<Tensor> ModelRun::example() const {
  std::vector<Tensor> batch = data_.training->batch(data_.example);
  for (Tensor& each : batch) each = each.to(device_);
  return batch;
}

RunMemory ModelRun::estimate_memory() {
  RunMemory sum;
  const std::vector<Tensor> batch = example();
  for (const PlanMemory& each : step_->estimate_memory(batch)) {
    if (!(each.device == device_)) continue;
    sum.present += each.present;
    sum.needed += each.needed();
  }
  for (const PlanMemory& each : loss_only_->estimate_memory(batch))
    if (each.device == device_) sum.needed += each.needed();
  return sum;
}

double ModelRun::estimate_seconds(int64_t steps, int64_t validations) {
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
