// A training run of a GPT.
#pragma once

#include <cstdint>

#include "llm/train/gpt.h"
#include "llm/train/model_run.h"
#include "llm/train/training_text.h"

namespace prism::llm {

using GptRunOptions = ModelRunOptions;

// The memory that a run allocates for weights, optimiser and gradients alone, without activations.
uint64_t least_run_bytes(const GptShape& shape);

// Holds the model of a run, which must be made before the run.
class RunningGpt {
 public:
  Gpt& model() { return model_; }

 protected:
  RunningGpt(const GptShape& shape, uint64_t seed, const Device& device);

 private:
  Gpt model_;
};

class GptRun : public RunningGpt, public ModelRun {
 public:
  // The seed of the options is that of the weights, too.
  GptRun(const GptShape& shape, const TokenSplit& tokens, const GptRunOptions& options,
         const Device& device);
};

}  // namespace prism::llm
