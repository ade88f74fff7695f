// A device with what is free on it and how fast it is, as far as that was measured.
#pragma once

#include "prism/llm/fit.h"

namespace prism::llm {

FitDevice fit_device(const Device& device);

}  // namespace prism::llm
