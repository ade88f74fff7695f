// A training run of an adapter.
#pragma once

#include <cstdint>
#include <span>

#include "llm/train/lora_data.h"
#include "llm/train/lora_model.h"
#include "llm/train/model_run.h"

namespace prism::llm {

// The loss of a batch of lora_source().
Tensor lora_loss(LoraModel& model, std::span<const Tensor> batch);

// The model must outlive the run. Batches have at most as many samples as there are.
ModelRun lora_run(LoraModel& model, const LoraSplit& samples, ModelRunOptions options,
                  const Device& device);

}  // namespace prism::llm
