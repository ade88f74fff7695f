// Elementwise functions of f64 that the kernel language lacks.
#pragma once

#include "prism/kernel.h"

namespace prism {

// 1 + erf(x) with full relative accuracy, also near 0.
dsl::Value one_plus_erf_f64(dsl::Value x);
dsl::Value erf_f64(dsl::Value x);
// pow with the sign and the special cases of C.
dsl::Value pow_f64(dsl::Value a, dsl::Value b);

}  // namespace prism
