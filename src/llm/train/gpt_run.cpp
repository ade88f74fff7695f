// Puts a GPT and its tokens together.
#include "llm/train/gpt_run.h"

#include <numeric>

#include "prism/ops/create.h"

namespace prism::llm {

namespace {

// Weights are drawn from the seed of the thread.
const Device& seeded(uint64_t number, const Device& device) {
  seed(number);
  return device;
}

RunData data_of(const TokenSplit& tokens, int64_t context, int64_t batch) {
  RunData data;
  data.training = nn::token_source(tokens.training, context);
  if (!tokens.validation.empty()) data.validation = nn::token_source(tokens.validation, context);
  data.example.resize(static_cast<size_t>(batch));
  std::iota(data.example.begin(), data.example.end(), 0);
  return data;
}

}  // namespace

uint64_t least_run_bytes(const GptShape& shape) {
  constexpr uint64_t kCopies = 5;  // weights, their best values, gradients, two moments
  return static_cast<uint64_t>(parameter_count(shape)) * sizeof(float) * kCopies;
}

RunningGpt::RunningGpt(const GptShape& shape, uint64_t seed, const Device& device)
    : model_(shape, seeded(seed, device)) {}

GptRun::GptRun(const GptShape& shape, const TokenSplit& tokens, const GptRunOptions& options,
               const Device& device)
    : RunningGpt(shape, options.seed, device),
      ModelRun(
          model(),
          [this](std::span<const Tensor> batch) { return model().loss(batch[0], batch[1]); },
          data_of(tokens, shape.context, options.batch), options, device) {
  model().set_recompute(options.recompute);
}

}  // namespace prism::llm
