// Names, arities and kinds of the elementwise functions.
#include "base/types/scalar_op.h"

#include <iterator>

namespace prism {

namespace {

// In the order of ScalarOp.
// clang-format off
constexpr std::string_view kNames[] = {
    "neg", "abs", "sign", "relu", "square", "logical_not",
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) #name,
#include "base/types/float_functions.inc"
    "add", "sub", "mul", "div", "pow", "min", "max", "eq", "ne", "lt", "le", "gt", "ge",
    "logical_and", "logical_or", "select"};
// clang-format on
static_assert(std::size(kNames) == kScalarOpCount);

}  // namespace

std::string_view scalar_op_name(ScalarOp op) { return kNames[static_cast<size_t>(op)]; }

std::optional<ScalarOp> scalar_op_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<ScalarOp>(i);
  return std::nullopt;
}

int scalar_op_operands(ScalarOp op) {
  if (op < ScalarOp::add) return 1;
  return op == ScalarOp::select ? 3 : 2;
}

bool is_comparison(ScalarOp op) { return op >= ScalarOp::eq && op <= ScalarOp::ge; }

bool is_logical(ScalarOp op) {
  return op == ScalarOp::logical_not || op == ScalarOp::logical_and || op == ScalarOp::logical_or;
}

bool needs_float(ScalarOp op) {
  return (op > ScalarOp::logical_not && op < ScalarOp::add) || op == ScalarOp::pow;
}

}  // namespace prism
