// The elementwise functions. The CPU applies them to pieces that fit its cache; other devices run
// kernels made from chains of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace prism {

// Floats compute in f32 (f64 for f64), integers in i32 or i64 with wrap-around; comparisons and
// logic give 0 or 1.
enum class ScalarOp : uint8_t {
  // one operand, of any type
  neg,
  abs,
  sign,
  relu,
  square,
  logical_not,
// one operand, a float
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) name,
#include "base/types/float_functions.inc"
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
  // three operands: the second if the first is not 0, else the third
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
