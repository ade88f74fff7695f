// The element functions of tensors, independent of the device: the CPU evaluates them in
// cache-sized pieces, other devices in kernels generated from chains of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace prism {

// Floats compute in f32 (f64 for f64), integers in i32 or i64 with wrap-around; comparisons and
// logical functions give 0 or 1.
enum class ScalarOp : uint8_t {
  // one operand
  neg,
  abs,
  sign,
  exp,
  log,
  sqrt,
  rsqrt,
  sin,
  cos,
  tanh,
  erf,
  sigmoid,
  relu,
  gelu,
  gelu_tanh,
  silu,
  square,
  reciprocal,
  floor,
  ceil,
  round,
  logical_not,
  // two operands; integer division truncates, division by zero gives 0
  add,
  sub,
  mul,
  div,
  pow,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  // three operands: selects the second if the first is not 0, else the third
  select,
};
inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::select) + 1;

std::string_view scalar_op_name(ScalarOp op);
std::optional<ScalarOp> scalar_op_from_name(std::string_view name);
int scalar_op_operands(ScalarOp op);
bool is_comparison(ScalarOp op);  // eq to ge: the result is a truth value
bool is_logical(ScalarOp op);     // truth values in and out
bool needs_float(ScalarOp op);    // undefined for integers (exp, rsqrt, gelu ...)

}  // namespace prism
