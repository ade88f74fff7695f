// A training run of a module: its optimiser, compiled step, data and validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/train/training_loop.h"
#include "prism/compile.h"
#include "prism/nn/checkpoint.h"

namespace prism::llm {

struct ModelRunOptions {
  int64_t batch = 16, accumulate = 1, steps = 2000;
  int64_t warmup = -1;  // steps until the highest learning rate; -1: a twentieth of them
  double rate = 1e-3;   // which falls along a cosine to a tenth
  double weight_decay = 0.1, clip = 1;
  uint64_t seed = 1;  // of dropout and the order of the data
  bool detect_anomaly = false;
  bool recompute = false;      // layers are computed again for the gradient, to save memory
  DType compute = DType::f32;  // of products: see nn::TrainStepOptions

  // Of the loop: see nn::LoopSettings. 0: after every tenth of the steps.
  double validation = 0.05;  // share of the data
  int64_t validate_every = 0, save_every = 0, patience = 0;
  std::string checkpoint = {};
};

nn::LoopSettings loop_settings(const ModelRunOptions& options, int64_t units_per_step);
// A number for LoopSettings::identity.
int64_t identity_of(std::span<const std::byte> bytes);

// Throws kOutOfMemory if the device has less free memory.
void check_memory(uint64_t needed, const Device& device);

// The sources of samples; validation may be null. example: the samples of the largest batch.
struct RunData {
  std::shared_ptr<nn::BatchSource> training, validation;
  std::vector<int64_t> example;
};

// The memory of a run, in bytes.
struct RunMemory {
  uint64_t present = 0;  // weights and the optimiser's state, which are allocated
  uint64_t needed = 0;   // by the step and validation
};

class ModelRun {
 public:
  using Loss = std::function<Tensor(std::span<const Tensor> batch)>;
  // The model must outlive the run. Matrices decay, other parameters do not.
  ModelRun(nn::Module& model, Loss loss, RunData data, const ModelRunOptions& options,
           const Device& device);
  ModelRun(const ModelRun&) = delete;
  ModelRun& operator=(const ModelRun&) = delete;

  nn::TrainingRun parts() { return {&model_, {&*optimizer_}, &*step_, nullptr, &*loader_}; }
  nn::DataLoader& loader() { return *loader_; }
  bool has_validation() const { return data_.validation != nullptr; }
  // The mean loss over the validation set, of which at most 50 batches are read.
  double validate();

  RunMemory estimate_memory();
  // The expected seconds of as many updates and validations, from a forward pass that is measured.
  // Changes no state of the run.
  double estimate_seconds(int64_t steps, int64_t validations);

 private:
  std::vector<Tensor> example() const;
  int64_t validation_batches() const;

  nn::Module& model_;
  RunData data_;
  ModelRunOptions options_;
  Device device_;
  std::optional<nn::DataLoader> loader_;
  std::optional<nn::AdamW> optimizer_;
  std::optional<nn::TrainStep> step_;
  std::optional<CompiledFunction> loss_only_;
};

}  // namespace prism::llm
