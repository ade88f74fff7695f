// The functions of single elements that tensors know, whoever computes them: the CPU over pieces of
// a cache's size, other devices by kernels made from chains of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace prism {

// Floats compute in f32 (f64 for f64), integers in i32 or i64 with wrap-around; comparisons and
// logic give 0 or 1.
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
  // two operands; division of integers truncates, by zero gives 0
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
  // three operands: the first, if not 0, chooses the second
  select,
};
inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::select) + 1;

std::string_view scalar_op_name(ScalarOp op);
std::optional<ScalarOp> scalar_op_from_name(std::string_view name);
int scalar_op_operands(ScalarOp op);
bool is_comparison(ScalarOp op);  // eq to ge: the result is a truth value
bool is_logical(ScalarOp op);     // truth values in and out
bool needs_float(ScalarOp op);    // has no meaning for integers (exp, rsqrt, gelu ...)

}  // namespace prism
