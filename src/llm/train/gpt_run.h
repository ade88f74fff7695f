// A training run of a GPT: the model with its optimiser, compiled step and data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "llm/train/gpt.h"
#include "llm/train/training_text.h"
#include "prism/compile.h"
#include "prism/nn/checkpoint.h"

namespace prism::llm {

struct GptRunOptions {
  int64_t batch = 16, accumulate = 1, steps = 2000;
  int64_t warmup = -1;  // steps until the highest learning rate; -1: a twentieth of them
  double rate = 1e-3;   // which falls along a cosine to a tenth
  double weight_decay = 0.1, clip = 1;
  uint64_t seed = 1;  // of weights, dropout and the order of the data
  bool detect_anomaly = false;
};

// The memory of a run, in bytes.
struct RunMemory {
  uint64_t present = 0;  // weights and the optimiser's state, which are allocated
  uint64_t needed = 0;   // by the step and validation
};

// The memory that a run allocates for weights, optimiser and gradients alone, without activations.
uint64_t least_run_bytes(const GptShape& shape);

class GptRun {
 public:
  GptRun(const GptShape& shape, const TokenSplit& tokens, const GptRunOptions& options,
         const Device& device);
  GptRun(const GptRun&) = delete;
  GptRun& operator=(const GptRun&) = delete;

  Gpt& model() { return model_; }
  nn::TrainingRun parts() { return {&model_, {&*optimizer_}, &*step_, nullptr, &*loader_}; }
  nn::DataLoader& loader() { return *loader_; }
  bool has_validation() const { return validation_ != nullptr; }
  // The mean loss over the validation set, of which at most 50 batches are read.
  double validate();

  RunMemory estimate_memory();
  // The expected seconds of as many updates and validations, from a forward pass that is measured.
  // Changes no state of the run.
  double estimate_seconds(int64_t steps, int64_t validations);

 private:
  Tensor loss(std::span<const Tensor> batch);
  std::vector<Tensor> example() const;  // a batch
  int64_t validation_batches() const;

  GptRunOptions options_;
  Device device_;
  Gpt model_;
  std::shared_ptr<nn::BatchSource> training_, validation_;
  std::optional<nn::DataLoader> loader_;
  std::optional<nn::AdamW> optimizer_;
  std::optional<nn::TrainStep> step_;
  std::optional<CompiledFunction> loss_only_;
};

}  // namespace prism::llm
