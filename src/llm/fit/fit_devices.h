// Describes a device for fitting: its free memory and, if calibrated, its speed.
#pragma once

#include "prism/llm/fit.h"

namespace prism::llm {

FitDevice fit_device(const Device& device);

}  // namespace prism::llm
