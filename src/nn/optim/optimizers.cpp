// The update rules: SGD, Adam, AdamW, RMSprop, Lion and Muon.
//
// Numbers that change from step to step (learning rate, bias corrections) are device data; the
// settings are constants of the plan.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "nn/train/step_context.h"
#include "ops/elementwise/adam.h"
#include "prism/error.h"
#include "prism/nn/optimizer.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"

namespace prism::nn {

namespace {

using Names = std::vector<std::string>;
using Doubles = std::vector<double>;

// Averages gradients: decay * average + (1 - decay) * value, assigned.
Tensor averaged(const Tensor& average, double decay, const Tensor& value) {
  return change(average, decay * average + (1 - decay) * value);
}

// The share of an average that a step keeps.
void check_kept(const char* optimizer, const char* name, double share) {
  if (share >= 0 && share < 1) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: {} is {}; it must be at least 0 and below 1", optimizer, name, share));
}

template <class Settings>
void check_betas(const char* optimizer, const std::vector<Settings>& groups) {
  for (const Settings& each : groups) {
    check_kept(optimizer, "beta1", each.beta1);
    check_kept(optimizer, "beta2", each.beta2);
  }
}

// The bias corrections of Adam for the first step and on.
Doubles adam_numbers(double beta1, double beta2, double lr, int64_t steps, double decay) {
  const auto t = static_cast<double>(steps + 1);
  return {lr / (1 - std::pow(beta1, t)), 1 / std::sqrt(1 - std::pow(beta2, t)), 1 - lr * decay};
}

// The update as one op, where the device has it and the step cannot be left out.
template <class Settings, class Member>
std::optional<ParameterUpdate> adam_op(const Settings& settings, const Member& member,
                                       double penalty, bool shrinks) {
  const AdamState state = {member.parameter, member.state[0], member.state[1]};
  const StepContext* const context = step_context();
  if ((context && context->go_on) || !has_adam_op(state, member.gradient.plain))
    return std::nullopt;
  // The numbers of all groups are one tensor, of which this group's are views.
  const Tensor& rate = member.numbers[0];
  const Tensor all(rate.node(), rate.output());
  const AdamRule rule = {settings.beta1, settings.beta2, settings.epsilon, penalty, shrinks};
  const AdamState changed = adam_step(rule, state, member.gradient.plain, all, rate.layout().offset,
                                      member.gradient.factor);
  return ParameterUpdate{changed.parameter, {changed.first, changed.second}};
}

// gradient is called for each use; parameter may be scaled already.
template <class Settings, class Gradient>
ParameterUpdate adam_update(const Settings& settings, const Tensor& target, const Tensor& parameter,
                            const Gradient& gradient, std::span<const Tensor> state,
                            std::span<const Tensor> numbers) {
  const Tensor first = averaged(state[0], settings.beta1, gradient());
  const Tensor second = averaged(state[1], settings.beta2, square(gradient()));
  const Tensor down = first / (sqrt(second) * numbers[1] + settings.epsilon);
  return {change(target, parameter - numbers[0] * down), {first, second}};
}

}  // namespace

SGD::SGD(const std::vector<ParameterGroup<SGDSettings>>& groups) {
  add_groups("SGD", groups);
  for (const SGDSettings& each : settings_)
    if (each.nesterov && (each.momentum <= 0 || each.dampening != 0))
      throw Error(ErrorCode::kInvalidArgument,
                  "SGD: Nesterov's momentum needs a momentum above 0 and no dampening");
}

Names SGD::state_names() const {
  const bool any = std::ranges::any_of(settings_, [](const auto& s) { return s.momentum != 0; });
  return any ? Names{"momentum_buffer"} : Names{};
}

// The first gradient enters the momentum undamped, as in PyTorch.
Doubles SGD::numbers(size_t group, double lr, int64_t steps) const {
  return {lr, steps == 0 ? 1.0 : 1 - settings_[group].dampening};
}

ParameterUpdate SGD::update(const Member& member) const {
  const SGDSettings& settings = settings_[member.group];
  const Tensor& p = member.parameter;
  const auto gradient = [&] {
    return settings.weight_decay == 0 ? member.gradient()
                                      : member.gradient() + settings.weight_decay * p;
  };
  if (settings.momentum == 0) return {change(p, p - member.numbers[0] * gradient()), {}};
  const Tensor& buffer = member.state[0];
  const Tensor fresh = settings.dampening == 0 ? gradient() : gradient() * member.numbers[1];
  const Tensor moved = change(buffer, settings.momentum * buffer + fresh);
  const Tensor down = settings.nesterov ? gradient() + settings.momentum * moved : moved;
  return {change(p, p - member.numbers[0] * down), {moved}};
}

Adam::Adam(const std::vector<ParameterGroup<AdamSettings>>& groups) {
  add_groups("Adam", groups);
  check_betas("Adam", settings_);
}

Names Adam::state_names() const { return {"exp_avg", "exp_avg_sq"}; }

Doubles Adam::numbers(size_t group, double lr, int64_t steps) const {
  const AdamSettings& s = settings_[group];
  return adam_numbers(s.beta1, s.beta2, lr, steps, 0);
}

ParameterUpdate Adam::update(const Member& member) const {
  const AdamSettings& settings = settings_[member.group];
  if (auto update = adam_op(settings, member, settings.weight_decay, false)) return *update;
  const Tensor& p = member.parameter;
  const auto gradient = [&] {
    return settings.weight_decay == 0 ? member.gradient()
                                      : member.gradient() + settings.weight_decay * p;
  };
  return adam_update(settings, p, p, gradient, member.state, member.numbers);
}

AdamW::AdamW(const std::vector<ParameterGroup<AdamWSettings>>& groups) {
  add_groups("AdamW", groups);
  check_betas("AdamW", settings_);
}

Names AdamW::state_names() const { return {"exp_avg", "exp_avg_sq"}; }

Doubles AdamW::numbers(size_t group, double lr, int64_t steps) const {
  const AdamWSettings& s = settings_[group];
  return adam_numbers(s.beta1, s.beta2, lr, steps, s.weight_decay);
}

ParameterUpdate AdamW::update(const Member& member) const {
  const AdamWSettings& settings = settings_[member.group];
  if (auto update = adam_op(settings, member, 0, settings.weight_decay != 0)) return *update;
  const Tensor& p = member.parameter;
  const Tensor shrunk = settings.weight_decay == 0 ? p : p * member.numbers[2];
  return adam_update(settings, p, shrunk, member.gradient, member.state, member.numbers);
}

RMSprop::RMSprop(const std::vector<ParameterGroup<RMSpropSettings>>& groups) {
  add_groups("RMSprop", groups);
  for (const RMSpropSettings& each : settings_) check_kept("RMSprop", "alpha", each.alpha);
}

Names RMSprop::state_names() const {
  const bool any = std::ranges::any_of(settings_, [](const auto& s) { return s.momentum != 0; });
  return any ? Names{"square_avg", "momentum_buffer"} : Names{"square_avg"};
}

Doubles RMSprop::numbers(size_t, double lr, int64_t) const { return {lr}; }

ParameterUpdate RMSprop::update(const Member& member) const {
  const RMSpropSettings& settings = settings_[member.group];
  const Tensor& p = member.parameter;
  const auto gradient = [&] {
    return settings.weight_decay == 0 ? member.gradient()
                                      : member.gradient() + settings.weight_decay * p;
  };
  const Tensor squares = averaged(member.state[0], settings.alpha, square(gradient()));
  const Tensor scaled = gradient() / (sqrt(squares) + settings.epsilon);
  if (settings.momentum == 0) return {change(p, p - member.numbers[0] * scaled), {squares}};
  const Tensor moved = change(member.state[1], settings.momentum * member.state[1] + scaled);
  return {change(p, p - member.numbers[0] * moved), {squares, moved}};
}

Lion::Lion(const std::vector<ParameterGroup<LionSettings>>& groups) {
  add_groups("Lion", groups);
  check_betas("Lion", settings_);
}

Names Lion::state_names() const { return {"exp_avg"}; }

Doubles Lion::numbers(size_t group, double lr, int64_t) const {
  return {lr, 1 - lr * settings_[group].weight_decay};
}

ParameterUpdate Lion::update(const Member& member) const {
  const LionSettings& settings = settings_[member.group];
  const Tensor &p = member.parameter, &average = member.state[0];
  const Tensor way = sign(settings.beta1 * average + (1 - settings.beta1) * member.gradient());
  return {change(p, p * member.numbers[1] - member.numbers[0] * way),
          {averaged(average, settings.beta2, member.gradient())}};
}

Muon::Muon(const std::vector<ParameterGroup<MuonSettings>>& groups) {
  add_groups("Muon", groups);
  for (const Tensor& each : parameters()) {
    if (each.ndim() == 2) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("Muon: a parameter of shape {} is no matrix; train it with AdamW",
                            each.shape().text()));
  }
}

Names Muon::state_names() const { return {"momentum_buffer"}; }

Doubles Muon::numbers(size_t group, double lr, int64_t) const {
  return {lr, 1 - lr * settings_[group].weight_decay};
}

ParameterUpdate Muon::update(const Member& member) const {
  const MuonSettings& settings = settings_[member.group];
  const Tensor &p = member.parameter, &buffer = member.state[0];
  const Tensor moved = averaged(buffer, settings.momentum, member.gradient());
  Tensor x = settings.nesterov
                 ? (1 - settings.momentum) * member.gradient() + settings.momentum * moved
                 : moved;
  const auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
  const bool tall = rows > columns;
  if (tall) x = x.transpose();
  x = x / maximum(sqrt(sum(square(x))), settings.epsilon);
  // Coefficients of a quintic that moves all singular values close to 1, from Jordan's paper.
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  for (int i = 0; i < settings.newton_schulz_steps; ++i) {
    const Tensor square_of_x = matmul(x, x.transpose());
    const Tensor mixed = kB * square_of_x + kC * matmul(square_of_x, square_of_x);
    x = kA * x + matmul(mixed, x);
  }
  if (tall) x = x.transpose();
  const double scale = std::sqrt(std::max(1.0, rows / columns));
  return {change(p, p * member.numbers[1] - member.numbers[0] * (scale * x)), {moved}};
}

}  // namespace prism::nn
