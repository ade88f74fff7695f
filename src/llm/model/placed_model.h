// A model placed on devices, which moves to others if one of them fails.
#pragma once

#include <optional>
#include <string>

#include "llm/model/model.h"
#include "prism/llm/fit.h"
#include "prism/llm/language_model.h"
#include "runtime/fallback.h"

namespace prism::llm {

class PlacedModel {
 public:
  // file must outlive the model. placement: where the caller wants the layers; by default chosen
  // from the options. If loading runs out of memory, tries the next best placement (see
  // runtime/fallback.h).
  PlacedModel(const GgufFile& file, const LoadOptions& options,
              const std::optional<Placement>& placement);
  ~PlacedModel();  // also returns pooled memory to the devices, for the next model
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  // Always the same object. Throws kDeviceLost if a device failed and no other could replace it.
  Model& model();
  const Device& device() const { return device_; }  // the device with the most layers
  const std::string& why() const { return why_; }
  int64_t moves() const { return moves_; }  // by place_anew(), after loading

  // Abandons the failed device and reloads the model where it fits now, with the same context and
  // an empty KV cache; the caller must first drop all references into the model. Returns false if
  // no fallback is allowed and the model stays where it was. If the model cannot be placed again,
  // throws the last failure, or kOutOfMemory if it does not fit on the remaining devices.
  bool place_anew(const DeviceFailure& failure);

 private:
  void load(Fit fit, const LoadCallback& progress);
  void let_go();

  const GgufFile& file_;
  LoadOptions options_;  // as requested; fit.context is per sequence
  std::optional<Model> model_;
  bool is_there_ = false;
  Placement placement_;  // from the last load
  Device device_;
  std::string why_;
  int64_t moves_ = 0;
};

}  // namespace prism::llm
