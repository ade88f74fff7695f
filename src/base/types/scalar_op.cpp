// Names and arities of the element functions.
#include "base/types/scalar_op.h"

#include <array>

namespace prism {

namespace {

constexpr std::array<std::string_view, kScalarOpCount> kNames = {
    "neg",         "abs",        "sign",   "exp",        "log",     "sqrt", "rsqrt",
    "sin",         "cos",        "tanh",   "erf",        "sigmoid", "relu", "gelu",
    "gelu_tanh",   "silu",       "square", "reciprocal", "floor",   "ceil", "round",
    "logical_not", "add",        "sub",    "mul",        "div",     "pow",  "min",
    "max",         "eq",         "ne",     "lt",         "le",      "gt",   "ge",
    "logical_and", "logical_or", "select"};

}  // namespace

std::string_view scalar_op_name(ScalarOp op) { return kNames[static_cast<size_t>(op)]; }

std::optional<ScalarOp> scalar_op_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
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
  switch (op) {
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::sign:
    case ScalarOp::relu:
    case ScalarOp::square:
    case ScalarOp::logical_not:
      return false;
    default:
      return op < ScalarOp::add || op == ScalarOp::pow;
  }
}

}  // namespace prism
