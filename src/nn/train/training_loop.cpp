// The loop around a training step.
#include "nn/train/training_loop.h"

#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/grad.h"
#include "prism/io.h"
#include "prism/ops/assign.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"

namespace prism::nn {

namespace {

// A loss is read this often, since reading waits for the device: after as many steps, or as much
// time.
constexpr int64_t kReadSteps = 10;
constexpr std::chrono::milliseconds kReadTime{500};

void copy_all(const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
  std::vector<Tensor> copies;
  for (size_t i = 0; i < to.size(); ++i) copies.push_back(assign(to[i], from[i]));
  eval(copies);
}

std::string identity_name(const std::string& name) { return "identity." + name; }

}  // namespace

TrainingLoop::State::State(Module& model, const LoopSettings& settings, bool validates)
    : model_(model), parameters_(model.parameters()) {
  const NoGrad off;
  for (const auto& [name, value] : settings.identity)
    identity_.emplace_back(name, from_vector<int64_t>({value}, {1}, Device::cpu()));
  if (validates)
    for (const Tensor& each : parameters_)
      best_.push_back(zeros(each.shape(), each.dtype(), each.device()));
  prism::eval(best_);
  numbers_ =
      from_vector<double>({std::numeric_limits<double>::infinity(), 0, 0}, {3}, Device::cpu());
}

void TrainingLoop::State::visit(Members& visitor) {
  model_.visit(visitor);
  for (auto& [name, value] : identity_) visitor.member(identity_name(name), value);
  visitor.member("best", best_);
  visitor.member("validation", numbers_);
}

void TrainingLoop::State::note(double loss, int64_t step) {
  if (!(loss < number(kBestLoss))) {
    numbers_ = from_vector<double>({number(kBestLoss), number(kBestStep), number(kFailures) + 1},
                                   {3}, Device::cpu());
    return;
  }
  numbers_ = from_vector<double>({loss, static_cast<double>(step), 0}, {3}, Device::cpu());
  copy_all(parameters_, best_);
}

void TrainingLoop::State::use_best() {
  if (best_.empty() || !std::isfinite(number(kBestLoss))) return;
  copy_all(best_, parameters_);
}

bool TrainingLoop::State::is_finite() const {
  const NoGrad off;
  return std::isfinite(global_norm(parameters_).item());
}

TrainingLoop::TrainingLoop(const TrainingRun& run, LoopSettings settings, LoopEvents events)
    : run_(run),
      settings_(std::move(settings)),
      events_(std::move(events)),
      state_(*run.model, settings_, static_cast<bool>(events_.validate)) {
  run_.model = &state_;
}

void TrainingLoop::resume() {
  const std::string& path = settings_.checkpoint;
  const std::map<std::string, Tensor> saved = load_safetensors(path, Device::cpu());
  for (const auto& [name, value] : settings_.identity) {
    const auto found = saved.find("model/" + identity_name(name));
    if (found == saved.end() || found->second.dtype() != DType::i64) continue;  // refused below
    if (found->second.size() == 1 && found->second.to_vector<int64_t>()[0] == value) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: the checkpoint is of a run with another {}; give the same data "
                            "and options, or start anew",
                            path, name));
  }
  load_checkpoint(path, run_);
}

int64_t TrainingLoop::next_due(int64_t every) const {
  if (every <= 0) return settings_.steps;
  return std::min(settings_.steps, (steps() / every + 1) * every);
}

std::vector<Tensor> TrainingLoop::update() {
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < settings_.accumulate; ++i)
    losses.push_back((*run_.step)(run_.loader->next()));
  return losses;
}

double TrainingLoop::read(std::span<const Tensor> losses) const {
  double sum = 0;
  for (const Tensor& each : losses) sum += each.item();
  const double loss = sum / static_cast<double>(losses.size());
  if (!std::isfinite(loss))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("training: the loss is {} at step {}; try a smaller learning rate, or "
                            "detect anomalies to see where it begins. A checkpoint that was "
                            "written before is good",
                            loss, steps()));
  return loss;
}

void TrainingLoop::report(double loss, bool validates) {
  const double rate = run_.optimizers[0]->lr();
  const std::string line = progress_->line(steps(), loss);
  if (events_.report) events_.report({steps(), loss, {}, line});
  if (!validates) {
    if (events_.log) events_.log->add(steps(), {{"loss", loss}, {"rate", rate}});
    return;
  }
  const double validation = events_.validate();
  state_.note(validation, steps());
  if (events_.log)
    events_.log->add(steps(), {{"loss", loss}, {"rate", rate}, {"validation", validation}});
  if (events_.report)
    events_.report(
        {steps(), loss, validation, fmt::format("{}; validation loss {:.4f}", line, validation)});
}

void TrainingLoop::save() {
  if (!state_.is_finite())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("training: parameters are not finite after step {}; try a smaller "
                            "learning rate. A checkpoint that was written before is good",
                            steps()));
  if (!settings_.checkpoint.empty()) save_checkpoint(settings_.checkpoint, run_);
}

LoopEnd TrainingLoop::run() {
  progress_.emplace(settings_.steps, settings_.units_per_step, settings_.unit, steps());
  int64_t validate_at = next_due(settings_.validate_every),
          save_at = next_due(settings_.save_every);
  auto last_read = std::chrono::steady_clock::now();
  const auto is_out_of_patience = [&] {
    return settings_.patience > 0 &&
           state_.number(State::kFailures) >= static_cast<double>(settings_.patience);
  };
  while (steps() < settings_.steps && !is_out_of_patience()) {
    const std::vector<Tensor> losses = update();
    const bool validates = events_.validate && steps() == validate_at;
    const bool saves = steps() == save_at;
    const auto now = std::chrono::steady_clock::now();
    if (validates || saves || steps() % kReadSteps == 0 || now - last_read >= kReadTime) {
      report(read(losses), validates);
      last_read = now;
    }
    if (validates) validate_at = next_due(settings_.validate_every);
    const bool is_interrupted = events_.interrupted && events_.interrupted();
    if (saves || is_interrupted || is_out_of_patience()) save();
    if (saves) save_at = next_due(settings_.save_every);
    if (is_interrupted && steps() < settings_.steps) return LoopEnd::interrupted;
  }
  return steps() < settings_.steps ? LoopEnd::stopped_early : LoopEnd::finished;
}

void TrainingLoop::use_best() { state_.use_best(); }

}  // namespace prism::nn
