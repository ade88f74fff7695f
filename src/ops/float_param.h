// Floating-point kernel parameters in f32 or f64; an f64 is passed as two 32-bit parameters.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "prism/device.h"
#include "prism/kernel.h"
#include "prism/kernel_ir.h"

namespace prism::ops {

// type: f32 or f64.
inline dsl::Value float_param(const std::string& name, DType type) {
  if (type != DType::f64) return dsl::param(name, DType::f32);
  const dsl::Value low = dsl::param(name + "_low", DType::u32),
                   high = dsl::param(name + "_high", DType::u32);
  return dsl::bitcast(DType::f64, dsl::vec(low, high));
}

inline void add_float_param(std::vector<ParamValue>& params, double value, DType type) {
  if (type != DType::f64) {
    params.emplace_back(static_cast<float>(value));
    return;
  }
  const auto bits = std::bit_cast<uint64_t>(value);
  params.emplace_back(static_cast<uint32_t>(bits));
  params.emplace_back(static_cast<uint32_t>(bits >> 32));
}

}  // namespace prism::ops
