// Tells failures of a model's devices from exceptions of a caller's callbacks.
#pragma once

#include "runtime/fallback.h"

namespace prism::llm {

struct ModelFailure {
  DeviceFailure failure;
};

// Runs work on the model's devices; throws ModelFailure if one of them fails.
template <class Work>
auto on_devices(Work&& work) {
  const FallbackHeld held;
  try {
    return work();
  } catch (const DeviceFailure& failure) {
    throw ModelFailure{failure};
  }
}

}  // namespace prism::llm
