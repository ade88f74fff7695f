// Checks the gradients of a conformance case against finite differences.
#pragma once

#include "conformance/conformance.h"

namespace prism {

// For a case with `gradient`: compares its f64 gradients on the CPU with central differences, then
// the device's gradients, in the case's own types, with those. The loss is a weighted sum of all
// float outputs.
CaseResult run_gradient_case(const OpCase& test, const Device& device);

}  // namespace prism
