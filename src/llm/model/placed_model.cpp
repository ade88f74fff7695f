// Places a model and moves it after a device failure.
#include "llm/model/placed_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"
#include "tensor/storage.h"

namespace prism::llm {
namespace {

bool shares_cache(const LoadOptions& load) { return load.shares_cache || load.slots == 0; }

// The fit must cover the context of one text, or that of all texts if they do not share the cache.
Fit fit_for(const GgufFile& file, const FitOptions& fit_options, const LoadOptions& load) {
  const int64_t slots = load.slots;
  FitOptions wanted = fit_options;
  wanted.batch_rows = load.batch_rows;
  if (slots < 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model: {} texts at once; at least 1 is needed", slots));
  if (shares_cache(load)) return fit_model(file, wanted);
  // No two texts share a block that they write.
  if (slots > 1 && wanted.context && *wanted.context > 0)
    wanted.context = std::max(*wanted.context, whole_blocks(*wanted.context));
  if (wanted.context && __builtin_mul_overflow(*wanted.context, slots, &*wanted.context))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model: a context of {} tokens for each of {} texts is too large",
                            *fit_options.context, slots));
  Fit fit = fit_model(file, wanted);
  int64_t& context = fit.placement.context;
  context = std::max<int64_t>(context / slots, 1);
  if (fit_options.context)
    context = std::min(context, *fit_options.context);
  else if (slots > 1 && context > cache_block(context))
    context -= context % cache_block(context);
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

PlacedModel::~PlacedModel() {
  try {
    let_go();
  } catch (...) {  // a device that has failed
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
  SharedCache cache = {options_.slots, whole_blocks(fit.placement.context) * options_.slots};
  if (shares_cache(options_)) cache = fit_shared_cache(fit, options_.slots);
  placement_ = std::move(fit.placement);
  Model loaded = Model::load(file_, {.placement = placement_,
                                     .slots = cache.slots,
                                     .cache_positions = cache.tokens,
                                     .batch_rows = options_.batch_rows,
                                     .adapters = options_.adapters,
                                     .progress = progress});
  // Assign in place: callers hold references to the model.
  if (model_)
    *model_ = std::move(loaded);
  else
    model_.emplace(std::move(loaded));
  is_there_ = true;
  // A model that moves keeps its slots, in which texts run.
  if (options_.slots == 0) options_.shares_cache = true, options_.slots = cache.slots;
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
  const bool is_move = is_there_;
  const LoadCallback progress = is_move ? LoadCallback() : options_.progress;
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
      moves_ += is_move;
      return true;
    } catch (const DeviceFailure& next) {
      failure = next;
    }
  }
  if (!is_there_) throw failure;
  return false;
}

}  // namespace prism::llm
