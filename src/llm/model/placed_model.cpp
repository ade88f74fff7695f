// Places a model and moves it after a device failure.
#include "llm/model/placed_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"
#include "tensor/storage.h"

namespace prism::llm {
namespace {

// All slots share the KV cache, so the fit must cover their total context.
Fit fit_for(const GgufFile& file, const FitOptions& fit_options, const LoadOptions& load) {
  const int64_t slots = load.slots;
  FitOptions wanted = fit_options;
  wanted.batch_rows = load.batch_rows;
  if (wanted.context) wanted.context = *wanted.context * slots;
  Fit fit = fit_model(file, wanted);
  fit.placement.context = std::max<int64_t>(fit.placement.context / slots, 1);
  return fit;
}

}  // namespace

PlacedModel::PlacedModel(const GgufFile& file, const LoadOptions& options,
                         const std::optional<Placement>& placement)
    : file_(file), options_(options) {
  Fit fit;
  if (placement) {
    fit.placement = *placement;
    options_.fit = {};
    options_.fit.context = placement->context;
    options_.fit.kv_type = placement->kv_type;
  } else {
    fit = fit_for(file, options.fit, options);
  }
  try {
    load(std::move(fit), options_.progress);
  } catch (const DeviceFailure& failure) {
    place_anew(failure);
  }
}

Model& PlacedModel::model() {
  if (!is_there_)
    throw Error(
        ErrorCode::kDeviceLost,
        "model: one of its devices failed and no other could replace it; load the model again");
  return *model_;
}

void PlacedModel::load(Fit fit, const LoadCallback& progress) {
  placement_ = std::move(fit.placement);
  Model loaded = Model::load(file_, {.placement = placement_,
                                     .slots = options_.slots,
                                     .batch_rows = options_.batch_rows,
                                     .progress = progress});
  // Assign in place: callers hold references to the model.
  if (model_)
    *model_ = std::move(loaded);
  else
    model_.emplace(std::move(loaded));
  is_there_ = true;
  why_ = std::move(fit.why);
  // Ties go to the later device: accelerators get the last layers.
  ptrdiff_t most = 0;
  for (const Device& each : placement_.layers) {
    const auto count = std::ranges::count(placement_.layers, each);
    if (count >= most) most = count, device_ = each;
  }
}

void PlacedModel::let_go() {
  if (model_) const Model gone = std::move(*model_);
  is_there_ = false;
  // Pooled memory must count as free when the next placement is chosen.
  for (const Device& each : placement_.layers) release_pooled_memory(each);
  release_pooled_memory(placement_.embedding);
  release_pooled_memory(placement_.output);
}

bool PlacedModel::place_anew(const DeviceFailure& first) {
  DeviceFailure failure = first;
  // Running sequences keep their context; before the first load, the fit chooses it.
  FitOptions wanted = options_.fit;
  wanted.device = "auto";
  if (is_there_) {
    wanted.context = placement_.context;
    wanted.kv_type = placement_.kv_type;
  }
  const LoadCallback progress = is_there_ ? LoadCallback() : options_.progress;
  while (fall_back(failure)) {
    let_go();
    Fit fit;
    try {
      fit = fit_for(file_, wanted, options_);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("{}. On the remaining devices: {}", failure.what(), error.what()));
    }
    try {
      load(std::move(fit), progress);
      return true;
    } catch (const DeviceFailure& next) {
      failure = next;
    }
  }
  if (!is_there_) throw failure;
  return false;
}

}  // namespace prism::llm
