// The base of optimisers: parameters, groups, state, and the step as a graph of assignments.
#include "prism/nn/optimizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/ops/assign.h"
#include "prism/ops/elementwise.h"
#include "tensor/op.h"

namespace prism::nn {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

Optimizer::~Optimizer() = default;

Tensor Optimizer::Gradient::operator()() const { return factor ? plain * factor : plain; }

void Optimizer::add_group(const char* optimizer, std::span<const Tensor> parameters, double lr) {
  if (!(lr >= 0)) fail(fmt::format("{}: a learning rate of {}; give 0 or more", optimizer, lr));
  for (const Tensor& each : parameters) {
    if (!each || !each.requires_grad()) {
      fail(fmt::format("{}: parameter {} requires no gradients; call set_requires_grad() on it",
                       optimizer, parameters_.size()));
    }
    for (const Tensor& known : parameters_)
      if (known.node() == each.node())
        fail(fmt::format("{}: parameter {} of shape {} is given twice; leave one out", optimizer,
                         parameters_.size(), each.shape().text()));
    each.eval();
    parameters_.push_back(each);
    group_of_.push_back(group_lr_.size());
  }
  group_lr_.push_back(lr);
}

void Optimizer::make_state() {
  if (state_.size() == parameters_.size()) return;
  const NoGrad off;
  const size_t count = state_names().size();
  std::vector<Tensor> all;
  state_.clear();
  for (const Tensor& each : parameters_) {
    std::vector<Tensor>& mine = state_.emplace_back();
    for (size_t i = 0; i < count; ++i)
      all.push_back(mine.emplace_back(zeros(each.shape(), each.dtype(), each.device())));
  }
  eval(all);
}

double Optimizer::lr(size_t group) const {
  return group_lr_.at(group) * (schedule_ ? schedule_(steps_) : 1.0);
}

void Optimizer::set_lr(double lr) { std::ranges::fill(group_lr_, lr); }
void Optimizer::set_lr(size_t group, double lr) { group_lr_.at(group) = lr; }

void Optimizer::zero_grad() {
  for (Tensor& each : parameters_) each.zero_grad();
}

Tensor Optimizer::step_numbers(const Device& device) const {
  std::vector<float> all;
  for (size_t group = 0; group < group_lr_.size(); ++group)
    for (const double each : numbers(group, lr(group), steps_))
      all.push_back(static_cast<float>(each));
  const auto rows = static_cast<int64_t>(group_lr_.size());
  return from_vector(all, {rows, static_cast<int64_t>(all.size()) / rows}, device);
}

std::vector<ParameterUpdate> Optimizer::updates(std::span<const Tensor> gradients,
                                                const Tensor& step_numbers, const Tensor& factor) {
  if (gradients.size() != parameters_.size())
    fail(fmt::format("optimizer: {} gradients for {} parameters", gradients.size(),
                     parameters_.size()));
  make_state();
  const NoGrad off;
  std::vector<ParameterUpdate> result(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradients[i]) continue;
    const size_t group = group_of_[i];
    Member member{parameters_[i], {gradients[i], factor}, state_[i], {}, group};
    const Tensor row = step_numbers.select(0, static_cast<int64_t>(group));
    for (int64_t n = 0; n < row.size(); ++n) member.numbers.push_back(row.select(0, n));
    result[i] = update(member);
  }
  return result;
}

void Optimizer::step() {
  std::vector<Tensor> gradients;
  for (const Tensor& each : parameters_) gradients.push_back(each.grad());
  if (parameters_.empty()) fail("optimizer: step() without parameters; add them when it is made");
  std::vector<Tensor> all;
  for (const ParameterUpdate& each : updates(gradients, step_numbers(parameters_[0].device()))) {
    if (!each.parameter) continue;
    all.push_back(each.parameter);
    all.insert(all.end(), each.state.begin(), each.state.end());
  }
  eval(all);
  count_step();
}

std::map<std::string, Tensor> Optimizer::state_dict() const {
  const_cast<Optimizer*>(this)->make_state();
  std::map<std::string, Tensor> result;
  const std::vector<std::string> names = state_names();
  for (size_t p = 0; p < state_.size(); ++p)
    for (size_t i = 0; i < names.size(); ++i)
      result[fmt::format("{}.{}", names[i], p)] = state_[p][i];
  result["steps"] = from_vector<int64_t>({steps_}, {1}, Device::cpu());
  return result;
}

void Optimizer::load_state_dict(const std::map<std::string, Tensor>& given) {
  std::vector<Tensor> changes;
  std::map<std::string, Tensor> mine = state_dict();
  const NoGrad off;
  for (const auto& [name, tensor] : mine) {
    const auto found = given.find(name);
    if (found == given.end())
      fail(fmt::format("optimizer: the state has no \"{}\"; was it saved by another optimiser?",
                       name));
    if (!(found->second.shape() == tensor.shape()))
      fail(
          fmt::format("optimizer: \"{}\" has shape {}, {} is needed; was it saved with another "
                      "model?",
                      name, found->second.shape().text(), tensor.shape().text()));
    if (name != "steps") changes.push_back(assign(tensor, found->second.to(tensor.device())));
  }
  if (given.size() != mine.size())
    fail(
        fmt::format("optimizer: the state has {} tensors, {} are needed; was it saved with "
                    "another model?",
                    given.size(), mine.size()));
  eval(changes);
  steps_ = static_cast<int64_t>(given.at("steps").to_doubles()[0]);
}

}  // namespace prism::nn
