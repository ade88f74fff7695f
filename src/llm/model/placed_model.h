// A model on the devices it was given, placed anew on others where one of them fails.
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
  // The file must live longer. placement: where the caller wants the layers, else by the options.
  // Out of memory while loading: the next best placement, by the rule of runtime/fallback.h.
  PlacedModel(const GgufFile& file, const LoadOptions& options,
              const std::optional<Placement>& placement);
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  // The same object for good. Throws kDeviceLost where a device failed and no other could take it.
  Model& model();
  const Device& device() const { return device_; }  // with most of the layers
  const std::string& why() const { return why_; }

  // Gives the failed device up and loads the model where it fits now, with the same context and
  // nothing in its cache: whatever refers to the model's inside must be gone. False where the
  // failure stands and the model is where it was. Throws where it is nowhere any more: the last
  // failure, or kOutOfMemory of a model that does not fit on what is left.
  bool place_anew(const DeviceFailure& failure);

 private:
  void load(Fit fit, const LoadCallback& progress);
  void let_go();

  const GgufFile& file_;
  LoadOptions options_;  // as asked for; its context: of one text
  std::optional<Model> model_;
  bool is_there_ = false;
  Placement placement_;  // of the last load
  Device device_;
  std::string why_;
};

}  // namespace prism::llm
