// What all kinds of `prism train` share: checks, the estimate, and the loop with its output.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/train.h"
#include "llm/train/model_run.h"
#include "nn/train/training_loop.h"
#include "prism/llm/language_model.h"

namespace prism::cli {

// Throws kInvalidArgument for numbers out of their range.
void check_settings(const TrainSettings& settings);
// The options that the kinds of training have in common, from those that the kind chose.
llm::ModelRunOptions run_options(const TrainSettings& settings, llm::ModelRunOptions otherwise);

std::string exact_text(int64_t count);                             // "12,345"
void say(const TrainSettings& settings, const std::string& line);  // unless quiet
// Prints the memory and the time that the run will need; throws as llm::check_memory does.
void say_estimate(const TrainSettings& settings, llm::ModelRun& run, const nn::LoopSettings& loop,
                  const Device& device);

struct SessionEnd {
  std::optional<int> interrupted;  // the exit status; the checkpoint is written
  std::string summary;  // "200 steps (stopped early), validation loss 1.2345 of step 150"
};
// Trains, and gives the model its best parameters at the end. before_steps is called after a
// resumed run was read, before the first step.
SessionEnd run_session(const TrainSettings& settings, llm::ModelRun& run,
                       const nn::LoopSettings& loop, const std::function<void()>& before_steps);

// Prints texts of the finished model, through the engine that `prism run` uses: answers if there
// are adapters and the model has a chat template, otherwise texts that begin with the prompt.
void print_samples(const TrainSettings& settings, const std::string& model,
                   const std::vector<llm::LoraAdapter>& adapters, const std::string& prompt);

}  // namespace prism::cli
