// The training of an adapter from a file of samples, as `prism train --lora` and Python do it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "llm/train/lora_run.h"

namespace prism::llm {

// The matrices and the rate were chosen by bench/train/lora_facts.py with SmolLM2-135M: adapters of
// attention forget more of what the model knew than those of the feed-forward layers, and learn
// less.
struct LoraTrainingOptions {
  LoraOptions lora = {.rank = 16, .alpha = 0, .matrices = {}};  // alpha 0: twice the rank
  int64_t context = 512;                                        // tokens of a sample
  // steps 0: three times the data.
  ModelRunOptions run = {.batch = 4, .steps = 0, .rate = 3e-4, .weight_decay = 0};
};

class LoraTraining {
 public:
  // Reads the samples and loads the model. prism::seed() decides the first values of the adapter.
  // Throws as read_lora_samples, split_samples, check_memory and LoraModel do.
  LoraTraining(const GgufFile& file, const std::string& data, const LoraTrainingOptions& options,
               const Device& device);
  LoraTraining(const LoraTraining&) = delete;
  LoraTraining& operator=(const LoraTraining&) = delete;

  LoraModel& model() { return *model_; }
  ModelRun& run() { return *run_; }
  nn::LoopSettings loop() const;
  const LoraTrainingOptions& options() const { return options_; }  // all of them are decided

  int64_t training_samples() const { return training_samples_; }
  int64_t validation_samples() const { return validation_samples_; }
  int64_t tokens() const { return tokens_; }
  int64_t learned_tokens() const { return learned_tokens_; }
  int64_t samples_per_step() const { return options_.run.batch * options_.run.accumulate; }

 private:
  LoraTrainingOptions options_;
  int64_t training_samples_ = 0, validation_samples_ = 0, tokens_ = 0, learned_tokens_ = 0;
  int64_t data_identity_ = 0, model_identity_ = 0;
  std::unique_ptr<LoraModel> model_;
  std::unique_ptr<ModelRun> run_;
};

}  // namespace prism::llm
