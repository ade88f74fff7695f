// Optimisers: rules that change parameters in place by their gradients.
//
//   Tensor w = randn({3, 4}).set_requires_grad();
//   nn::AdamW optimizer({w}, {.lr = 0.01});
//   optimizer.zero_grad();
//   w.square().mean().backward();
//   optimizer.step();
//
// nn::TrainStep (prism/nn/train_step.h) makes forward pass, backward pass and update one plan.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prism/nn/schedule.h"
#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism::nn {

// Parameters with settings of their own.
template <class Settings>
struct ParameterGroup {
  std::vector<Tensor> parameters;
  Settings settings;
};

// A parameter's update as a graph, made by Optimizer::update.
struct ParameterUpdate {
  Tensor parameter;
  std::vector<Tensor> state;  // assigned tensors
};

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes every parameter that has a grad(). The memory of parameters stays where it is.
  void step();
  void zero_grad();  // clears grad() of all parameters

  // The learning rate of each group is its own times the schedule's factor at steps().
  void set_schedule(Schedule schedule) { schedule_ = std::move(schedule); }
  double lr(size_t group = 0) const;  // of the next step
  void set_lr(double lr);             // of all groups
  void set_lr(size_t group, double lr);
  int64_t steps() const { return steps_; }  // done so far
  size_t groups() const { return group_lr_.size(); }
  const std::vector<Tensor>& parameters() const { return parameters_; }

  // The state by name, "exp_avg.3" for parameter 3, with "steps". load_state_dict throws
  // kInvalidArgument if names or shapes differ, and then changes nothing.
  std::map<std::string, Tensor> state_dict() const;
  void load_state_dict(const std::map<std::string, Tensor>& state);

  // --- for compiled steps
  // The numbers of the next step, computed on the host in double precision: f32 [groups, numbers].
  Tensor step_numbers(const Device& device) const;
  // The updates of all parameters as a graph. Parameters with an empty gradient are left out.
  // factor: a number on the device that multiplies all gradients, or an empty tensor.
  std::vector<ParameterUpdate> updates(std::span<const Tensor> gradients,
                                       const Tensor& step_numbers, const Tensor& factor = {});
  void count_step() { ++steps_; }

 protected:
  Optimizer() = default;

  // A gradient that is scaled anew for each use, so that the scaling is fused into each user.
  struct Gradient {
    Tensor plain, factor;
    Tensor operator()() const;
  };
  struct Member {
    Tensor parameter;
    Gradient gradient;
    std::vector<Tensor> state, numbers;  // numbers: scalars on the device
    size_t group = 0;
  };

  // Called by constructors, once for each group.
  void add_group(const char* optimizer, std::span<const Tensor> parameters, double lr);
  virtual std::vector<std::string> state_names() const = 0;
  // The numbers of a group for the step after `steps` steps.
  virtual std::vector<double> numbers(size_t group, double lr, int64_t steps) const = 0;
  virtual ParameterUpdate update(const Member& member) const = 0;

 private:
  void make_state();

  std::vector<Tensor> parameters_;
  std::vector<size_t> group_of_;
  std::vector<double> group_lr_;
  std::vector<std::vector<Tensor>> state_;  // for each parameter, as state_names() names it
  Schedule schedule_;
  int64_t steps_ = 0;
};

// The base of optimisers with one kind of settings for all groups.
template <class Settings>
class OptimizerOf : public Optimizer {
 public:
  const Settings& settings(size_t group) const { return settings_[group]; }

 protected:
  void add_groups(const char* optimizer, std::span<const ParameterGroup<Settings>> groups) {
    for (const ParameterGroup<Settings>& each : groups) {
      add_group(optimizer, each.parameters, each.settings.lr);
      settings_.push_back(each.settings);
    }
  }
  std::vector<Settings> settings_;
};

#define PRISM_OPTIMIZER(Name)                                                           \
  class Name : public OptimizerOf<Name##Settings> {                                     \
   public:                                                                              \
    explicit Name(const std::vector<Tensor>& parameters, Name##Settings settings = {})  \
        : Name(std::vector<ParameterGroup<Name##Settings>>{{parameters, settings}}) {}  \
    explicit Name(const std::vector<ParameterGroup<Name##Settings>>& groups);           \
                                                                                        \
   protected:                                                                           \
    std::vector<std::string> state_names() const override;                              \
    std::vector<double> numbers(size_t group, double lr, int64_t steps) const override; \
    ParameterUpdate update(const Member& member) const override;                        \
  }

// Weight decay of SGD, RMSprop and Adam is added to the gradient; that of AdamW, Lion and Muon
// shrinks the parameter itself.
struct SGDSettings {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};
PRISM_OPTIMIZER(SGD);

struct AdamSettings {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};
PRISM_OPTIMIZER(Adam);

struct AdamWSettings {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
};
PRISM_OPTIMIZER(AdamW);

struct RMSpropSettings {
  double lr = 1e-2, alpha = 0.99, epsilon = 1e-8, weight_decay = 0, momentum = 0;
};
PRISM_OPTIMIZER(RMSprop);

// Lion (Chen et al., 2023): the sign of an interpolated momentum.
struct LionSettings {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
PRISM_OPTIMIZER(Lion);

// Muon (Jordan et al., 2024): momentum orthogonalised by Newton-Schulz steps. For matrices only:
// train embeddings, biases and norms with AdamW beside it.
struct MuonSettings {
  double lr = 1e-3, momentum = 0.95, weight_decay = 0.1, epsilon = 1e-7;
  bool nesterov = true;
  int newton_schulz_steps = 5;
};
PRISM_OPTIMIZER(Muon);

#undef PRISM_OPTIMIZER

// --- gradients
// The Euclidean norm of all elements of all tensors, f32 []. Empty tensors are left out.
Tensor global_norm(std::span<const Tensor> gradients);
// The factor, at most 1, that limits the norm to `most`: f32 [].
Tensor clip_factor(const Tensor& norm, double most);
// Clip grad() of the parameters before step(). The norm before clipping is returned.
double clip_grad_norm(std::span<const Tensor> parameters, double most);
void clip_grad_value(std::span<const Tensor> parameters, double most);

// An exponential moving average of parameters: average = decay * average + (1 - decay) * parameter.
class MovingAverage {
 public:
  explicit MovingAverage(std::span<const Tensor> parameters, double decay = 0.999);
  void update();  // after a step
  void swap();    // exchanges averages and parameters
  const std::vector<Tensor>& parameters() const { return parameters_; }
  const std::vector<Tensor>& averages() const { return averages_; }
  // The update as a graph from the new parameters, for compiled steps.
  std::vector<Tensor> updates(std::span<const Tensor> parameters) const;

 private:
  std::vector<Tensor> parameters_, averages_;
  double decay_;
};

}  // namespace prism::nn

#pragma GCC visibility pop
