// The loop around a training step: validation, early stop, checkpoints, log and progress.
//
//   TrainingLoop loop({&model, {&optimizer}, &step, nullptr, &loader}, settings, events);
//   if (resumes) loop.resume();
//   if (loop.run() != LoopEnd::interrupted) loop.use_best();
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prism/nn/checkpoint.h"
#include "prism/nn/log.h"

namespace prism::nn {

struct LoopSettings {
  int64_t steps = 0;           // updates of the parameters in all
  int64_t accumulate = 1;      // batches for an update, as the TrainStep has it
  int64_t units_per_step = 0;  // what the progress line counts
  std::string unit = "tokens";
  int64_t validate_every = 0;  // updates; 0: never. The last one is always validated
  int64_t patience = 0;        // validations without improvement that end the run; 0: no early stop
  int64_t save_every = 0;      // updates; 0: only at the end and when interrupted
  std::string checkpoint;      // empty: none is written
  // What a run must have in common with its checkpoint, by the names that errors show.
  std::vector<std::pair<std::string, int64_t>> identity;
};

struct LoopReport {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> validation;
  std::string line;  // for a terminal, with all of this, the speed and the time left
};

// All of them may be empty.
struct LoopEvents {
  std::function<double()> validate;   // the validation loss
  std::function<bool()> interrupted;  // asked after every update
  // Called every few steps. Where a step is validated, called before and again after it.
  std::function<void(const LoopReport&)> report;
  TrainingLog* log = nullptr;
};

enum class LoopEnd { finished, stopped_early, interrupted };

class TrainingLoop {
 public:
  TrainingLoop(const TrainingRun& run, LoopSettings settings, LoopEvents events);

  // Continues from the checkpoint. Throws as load_checkpoint does, and kInvalidArgument naming what
  // differs from the run of the checkpoint.
  void resume();
  // Trains until the steps are done, validation asks for a stop or the caller interrupts, and
  // writes a checkpoint then. Throws kInvalidArgument for a loss or parameters that are not finite;
  // these are never saved, so the last checkpoint is good.
  LoopEnd run();
  // Gives the model the parameters of the best validation, if there was one.
  void use_best();

  int64_t steps() const { return run_.optimizers.at(0)->steps(); }      // done so far
  double best_loss() const { return state_.number(State::kBestLoss); }  // infinite before the first
  int64_t best_step() const { return static_cast<int64_t>(state_.number(State::kBestStep)); }

 private:
  // What a checkpoint holds beside the usual: the best parameters so far, and the identity.
  class State : public Module {
   public:
    enum Number { kBestLoss, kBestStep, kFailures };  // failures: validations since the best
    State(Module& model, const LoopSettings& settings, bool validates);
    void visit(Members& visitor) override;
    double number(Number which) const { return numbers_.to_doubles()[which]; }
    void note(double loss, int64_t step);  // a validation
    void use_best();
    bool is_finite() const;  // all parameters

   private:
    Module& model_;
    std::vector<std::pair<std::string, Tensor>> identity_;
    std::vector<Tensor> parameters_, best_;
    Tensor numbers_;
  };

  int64_t next_due(int64_t every) const;  // the next step that is a multiple, or the last step
  std::vector<Tensor> update();           // returns the losses of its batches
  double read(std::span<const Tensor> losses) const;
  void report(double loss, bool validates);
  void save();

  TrainingRun run_;
  LoopSettings settings_;
  LoopEvents events_;
  State state_;
  std::optional<Progress> progress_;
};

}  // namespace prism::nn
