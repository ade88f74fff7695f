// Puts a GPT and its tokens together.
#include "llm/train/gpt_run.h"

#include <numeric>

#include "prism/nn/losses.h"

namespace prism::llm {

uint64_t least_run_bytes(const GptShape& shape) {
  constexpr uint64_t kCopies = 5;  // weights, their best values, gradients, two moments
  return static_cast<uint64_t>(parameter_count(shape)) * sizeof(float) * kCopies;
}

ModelRun gpt_run(Gpt& model, const TokenSplit& tokens, const ModelRunOptions& options,
                 const Device& device) {
  const int64_t context = model.shape().context;
  RunData data;
  data.training = nn::token_source(tokens.training, context);
  if (!tokens.validation.empty()) data.validation = nn::token_source(tokens.validation, context);
  data.example.resize(static_cast<size_t>(options.batch));
  std::iota(data.example.begin(), data.example.end(), 0);
  return ModelRun(
      model,
      [&model](std::span<const Tensor> batch) {
        return nn::cross_entropy(model(batch[0]), batch[1]);
      },
      std::move(data), options, device);
}

}  // namespace prism::llm
