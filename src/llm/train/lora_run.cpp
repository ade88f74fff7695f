// Puts a model with an adapter and its samples together.
#include "llm/train/lora_run.h"

#include <algorithm>
#include <numeric>

#include "prism/nn/losses.h"

namespace prism::llm {
namespace {

// The samples of the largest batch.
std::vector<int64_t> longest(const std::vector<LoraSample>& samples, int64_t count) {
  std::vector<int64_t> order(samples.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](int64_t i) {
    return samples[static_cast<size_t>(i)].tokens.size();
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

}  // namespace

Tensor lora_loss(LoraModel& model, std::span<const Tensor> batch) {
  return nn::cross_entropy(model.logits(batch[0], batch[1]), batch[2],
                           {.ignore_index = kIgnoredToken});
}

ModelRun lora_run(LoraModel& model, const LoraSplit& samples, ModelRunOptions options,
                  const Device& device) {
  options.batch = std::min(options.batch, static_cast<int64_t>(samples.training.size()));
  RunData data;
  data.training = lora_source(samples.training);
  if (!samples.validation.empty()) data.validation = lora_source(samples.validation);
  data.example = longest(samples.training, options.batch);
  return ModelRun(
      model, [&model](std::span<const Tensor> batch) { return lora_loss(model, batch); },
      std::move(data), options, device);
}

}  // namespace prism::llm
