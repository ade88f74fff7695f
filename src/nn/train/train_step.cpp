// The compiled training step: records loss, gradients, clipping and updates as one function.
#include "prism/nn/train_step.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "nn/train/anomaly.h"
#include "nn/train/step_context.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/ops/assign.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/reduce.h"
#include "tensor/op.h"

namespace prism::nn {

namespace {

// The loss scale of f16: where it starts, how long a run without overflow doubles it, and its
// bound. The first two are those of PyTorch's GradScaler.
constexpr double kFirstScale = 65536, kScaleSteps = 2000, kMostScale = 16777216;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

struct TrainStep::State {
  State(std::vector<Optimizer*> given, Loss f, TrainStepOptions with)
      : optimizers(std::move(given)), loss(std::move(f)), options(with) {
    for (const Optimizer* each : optimizers)
      parameters.insert(parameters.end(), each->parameters().begin(), each->parameters().end());
    if (parameters.empty()) fail("TrainStep: the optimiser has no parameters");
    if (options.accumulate < 1)
      fail(fmt::format("TrainStep: accumulate {}; give 1 or more", options.accumulate));
    if (options.accumulate > 1) {
      const NoGrad off;
      for (const Tensor& each : parameters)
        sums.push_back(zeros(each.shape(), each.dtype(), each.device()));
      eval(sums);
    }
    if (options.compute != DType::f32 && options.compute != DType::bf16 &&
        options.compute != DType::f16)
      fail(fmt::format("TrainStep: computes in {}; give f32, bf16 or f16",
                       dtype_name(options.compute)));
    if (options.compute == DType::f16)
      scaling = from_vector<float>({kFirstScale, 0}, {2}, parameters[0].device());
    gathers.emplace([this](std::span<const Tensor> inputs) { return record(inputs, false); });
    updates.emplace([this](std::span<const Tensor> inputs) { return record(inputs, true); });
  }

  // The values besides the batch: the numbers of each optimiser, then the key of dropout.
  std::vector<Tensor> inputs_of(std::span<const Tensor> batch) const {
    std::vector<Tensor> inputs(batch.begin(), batch.end());
    const Device device = parameters[0].device();
    for (const Optimizer* each : optimizers) inputs.push_back(each->step_numbers(device));
    const auto word = [](uint64_t value) {
      return static_cast<int32_t>(static_cast<uint32_t>(value));
    };
    const uint64_t key = options.seed ^ (static_cast<uint64_t>(batches) << 32);
    inputs.push_back(from_vector<int32_t>({word(key), word(key >> 32)}, {2}, device));
    return inputs;
  }

  // Results: the loss; the norm of the gradients, where it is needed; the assignments.
  std::vector<Tensor> record(std::span<const Tensor> inputs, bool update) {
    const size_t count = inputs.size() - optimizers.size() - 1;
    StepContext context;
    context.key = inputs.back();
    context.compute = options.compute;
    Tensor value;
    {
      const WithContext with(context);
      value = loss(inputs.first(count));
    }
    if (!value || value.size() != 1)
      fail(
          fmt::format("TrainStep: the function returned {}; it must return one number (mean() or "
                      "sum() it)",
                      value ? "a tensor of shape " + value.shape().text() : "an empty Tensor"));
    const Tensor share =
        options.accumulate > 1 ? value / static_cast<double>(options.accumulate) : value;
    std::vector<Tensor> slopes = scaling ? scaled_gradients(share) : gradients(share, parameters);
    const NoGrad off;
    std::vector<Tensor> results = {value.reshape(Shape{}).astype(DType::f32)}, changes;
    for (size_t i = 0; i < sums.size(); ++i) slopes[i] = sums[i] + slopes[i];
    if (update && options.clip_value > 0)
      for (Tensor& each : slopes) each = clamp(each, -options.clip_value, options.clip_value);
    if (options.detect_anomaly || scaling || (update && options.clip_norm > 0))
      results.push_back(global_norm(slopes));
    const WithContext with(context);
    if (options.detect_anomaly || scaling) context.go_on = are_finite(results);
    if (scaling) changes.push_back(next_scaling(context.go_on));
    for (size_t i = 0; i < sums.size(); ++i) {
      const Tensor none = zeros(sums[i].shape(), sums[i].dtype(), sums[i].device());
      changes.push_back(change(sums[i], update ? none : slopes[i]));
    }
    if (update) {
      const Tensor factor =
          options.clip_norm > 0 ? clip_factor(results[1], options.clip_norm) : Tensor();
      add_updates(slopes, inputs.subspan(count, optimizers.size()), factor, changes);
    }
    // Recorded before go_on was known.
    for (const Tensor& each : context.changes)
      changes.push_back(change(each.node()->inputs[0], each.node()->inputs[1]));
    // The last layers first: their gradients are there first, and then nothing keeps what they
    // need.
    results.insert(results.end(), changes.rbegin(), changes.rend());
    return results;
  }

  // The gradients of the loss times the scale, over the scale again: in between they are f16.
  std::vector<Tensor> scaled_gradients(const Tensor& share) const {
    const Tensor scale = scaling.slice(0, 0, 1).reshape(Shape{});
    std::vector<Tensor> slopes = gradients(share.reshape(Shape{}) * scale, parameters);
    const NoGrad off;
    for (Tensor& each : slopes) each = each / scale;
    return slopes;
  }
  // Halves the scale after an overflow, doubles it after many steps without one.
  Tensor next_scaling(const Tensor& is_finite) const {
    const Tensor scale = scaling.slice(0, 0, 1), good = scaling.slice(0, 1, 2) + 1.0;
    const Tensor is_due = good >= kScaleSteps;
    const Tensor grown = where(is_due, minimum(scale * 2.0, kMostScale), scale);
    const Tensor none = good * 0.0;
    return assign(scaling, concat({where(is_finite, grown, maximum(scale * 0.5, 1.0)),
                                   where(is_finite, where(is_due, none, good), none)},
                                  0));
  }

  void add_updates(std::span<const Tensor> slopes, std::span<const Tensor> numbers,
                   const Tensor& factor, std::vector<Tensor>& changes) {
    std::vector<Tensor> updated;
    size_t first = 0;
    for (size_t o = 0; o < optimizers.size(); ++o) {
      const size_t count = optimizers[o]->parameters().size();
      for (const ParameterUpdate& each :
           optimizers[o]->updates(slopes.subspan(first, count), numbers[o], factor)) {
        updated.push_back(each.parameter);
        changes.push_back(each.parameter);
        changes.insert(changes.end(), each.state.begin(), each.state.end());
      }
      first += count;
    }
    if (!options.average) return;
    for (const Tensor& each : options.average->updates(averaged_from(updated)))
      changes.push_back(each);
  }

  // The updated parameters in the order of the average, which may differ from the optimisers' one.
  // Parameters without an optimiser stay as they are.
  std::vector<Tensor> averaged_from(std::span<const Tensor> updated) const {
    std::vector<Tensor> result = options.average->parameters();
    for (Tensor& each : result)
      for (size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].node() == each.node()) {
          each = updated[i];
          break;
        }
    return result;
  }

  Tensor call(std::span<const Tensor> batch) {
    const bool update = (batches + 1) % options.accumulate == 0;
    std::vector<Tensor> results = (update ? *updates : *gathers)(inputs_of(batch));
    if (options.detect_anomaly) check_finite(results, batch);
    if (update && options.clip_norm > 0) norm = results[1];
    ++batches;
    if (update)
      for (Optimizer* each : optimizers) each->count_step();
    return results[0];
  }

  void check_finite(std::span<const Tensor> results, std::span<const Tensor> batch) {
    const double value = results[0].item(), size = results[1].item();
    // Gradients that overflow in f16 are no anomaly: the next step has a smaller scale.
    if (std::isfinite(value) && (std::isfinite(size) || scaling)) return;
    StepContext context;
    context.key = inputs_of(batch).back();
    context.compute = options.compute;
    throw_anomaly({.step = batches, .loss = value, .norm = size}, loss, batch, context,
                  options.model, parameters);
  }

  std::vector<Optimizer*> optimizers;
  Loss loss;
  TrainStepOptions options;
  std::vector<Tensor> parameters, sums;
  std::optional<CompiledFunction> gathers, updates;
  Tensor norm;
  Tensor scaling;  // f16 only: f32 [2], the scale of the loss and the steps since it changed
  int64_t batches = 0;
};

TrainStep::TrainStep(Optimizer& optimizer, Loss loss, TrainStepOptions options)
    : TrainStep(std::vector<Optimizer*>{&optimizer}, std::move(loss), options) {}

TrainStep::TrainStep(std::vector<Optimizer*> optimizers, Loss loss, TrainStepOptions options)
    : state_(std::make_unique<State>(std::move(optimizers), std::move(loss), options)) {}

TrainStep::~TrainStep() = default;
TrainStep::TrainStep(TrainStep&&) noexcept = default;

Tensor TrainStep::operator()(std::span<const Tensor> batch) { return state_->call(batch); }
const Tensor& TrainStep::gradient_norm() const { return state_->norm; }
int64_t TrainStep::batches() const { return state_->batches; }

std::map<std::string, Tensor> TrainStep::state_dict() const {
  std::map<std::string, Tensor> result;
  for (size_t i = 0; i < state_->sums.size(); ++i)
    result[fmt::format("sum.{}", i)] = state_->sums[i];
  if (state_->scaling) result["scaling"] = state_->scaling;
  result["batches"] = from_vector<int64_t>({state_->batches}, {1}, Device::cpu());
  return result;
}

void TrainStep::load_state_dict(const std::map<std::string, Tensor>& state) {
  std::vector<Tensor> changes;
  for (size_t i = 0; i < state_->sums.size(); ++i) {
    const Tensor& sum = state_->sums[i];
    changes.push_back(assign(sum, state.at(fmt::format("sum.{}", i)).to(sum.device())));
  }
  if (const Tensor& scaling = state_->scaling)
    changes.push_back(assign(scaling, state.at("scaling").to(scaling.device())));
  eval(changes);
  state_->batches = state.at("batches").to_vector<int64_t>()[0];
}

std::vector<PlanMemory> TrainStep::estimate_memory(std::span<const Tensor> batch) {
  return state_->updates->estimate_memory(state_->inputs_of(batch));
}

std::string TrainStep::explain(std::span<const Tensor> batch) {
  return state_->updates->explain(state_->inputs_of(batch));
}

size_t TrainStep::plans() const { return state_->gathers->plans() + state_->updates->plans(); }

}  // namespace prism::nn
