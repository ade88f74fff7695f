// Checkpoints: the whole state of a training run in one .safetensors file.
#pragma once

#include <string>
#include <vector>

#include "prism/nn/data.h"
#include "prism/nn/module.h"
#include "prism/nn/optimizer.h"
#include "prism/nn/train_step.h"

#pragma GCC visibility push(default)

namespace prism::nn {

// What a run consists of; parts that are null are left out.
struct TrainingRun {
  Module* model = nullptr;
  std::vector<Optimizer*> optimizers = {};
  TrainStep* step = nullptr;
  MovingAverage* average = nullptr;
  DataLoader* loader = nullptr;
};

// Writes parameters, buffers, the optimisers' state, the position in schedule and data, and the
// state of random numbers. The file appears under its name only when it is complete, so the last
// good checkpoint remains if the disk is full (kIo) or the process is killed.
void save_checkpoint(const std::string& path, const TrainingRun& run);

// Continues the run: the steps that follow have the same bits as without the interruption, on the
// same device. Throws kInvalidArgument for a checkpoint of another model or optimiser, and then
// changes nothing; kNotFound, kIo or kCorruptFile if the file cannot be read.
void load_checkpoint(const std::string& path, const TrainingRun& run);

}  // namespace prism::nn

#pragma GCC visibility pop
