// Checking gradients: those of a conformance case against finite differences.
#pragma once

#include "conformance/conformance.h"

namespace prism {

// Of a case with `gradient`: its gradients in f64 on the CPU against central differences, then
// those of the device, in the case's own types, against them. The loss is a weighted sum of all
// outputs that are floats.
CaseResult run_gradient_case(const OpCase& test, const Device& device);

}  // namespace prism
