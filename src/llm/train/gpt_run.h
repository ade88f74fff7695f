// A training run of a GPT.
#pragma once

#include <cstdint>

#include "llm/train/gpt.h"
#include "llm/train/model_run.h"
#include "llm/train/training_text.h"

namespace prism::llm {

// The memory that a run allocates for weights, optimiser and gradients alone, without activations.
uint64_t least_run_bytes(const GptShape& shape);

// The model must outlive the run.
ModelRun gpt_run(Gpt& model, const TokenSplit& tokens, const ModelRunOptions& options,
                 const Device& device);

}  // namespace prism::llm
