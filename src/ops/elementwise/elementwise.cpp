// Elementwise functions. Each call makes a chain of one step; the planner fuses chains.
#include "prism/ops/elementwise.h"

#include <cmath>

#include <fmt/format.h>

#include "ops/elementwise/elementwise_op.h"
#include "prism/error.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

DType plain_type(ScalarOp op, const Tensor& tensor) {
  if (!tensor) fail(fmt::format("{}: an empty Tensor as an operand", scalar_op_name(op)));
  if (tensor.type().is_block()) {
    fail(fmt::format("{}: an operand of type {}; dequantise() it first", scalar_op_name(op),
                     tensor.type().name()));
  }
  return tensor.type().plain();
}

// The type of a number beside a tensor: a fraction promotes integers to f32.
DType number_type(DType beside, double number) {
  if (is_float(beside) || number == std::trunc(number)) return beside;
  return DType::f32;
}

// The promoted type of the value operands, without conditions.
DType common_type(ScalarOp op, std::span<const TensorOrNumber> operands) {
  std::optional<DType> type;
  for (const TensorOrNumber& each : operands) {
    if (!each.tensor()) continue;
    const DType plain = plain_type(op, *each.tensor());
    type = type ? promoted(*type, plain) : plain;
  }
  for (const TensorOrNumber& each : operands)
    if (!each.tensor()) type = type ? number_type(*type, each.number()) : DType::f32;
  return *type;
}

Tensor make(ScalarOp op, std::span<const TensorOrNumber> operands) {
  const bool selects = op == ScalarOp::select;
  DType type = common_type(op, selects ? operands.subspan(1) : operands);
  if (is_logical(op)) type = DType::b1;
  if (type == DType::b1 && !is_logical(op) && !is_comparison(op) && !selects) type = DType::i32;
  if (needs_float(op) && !is_float(type)) {
    fail(fmt::format("{}: elements of type {}; cast them to a float type first", scalar_op_name(op),
                     ElementType(type).name()));
  }
  if (is_comparison(op) && type == DType::b1) type = DType::i32;
  Chain chain;
  std::vector<Tensor> inputs;
  std::vector<uint16_t> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    const DType wanted = register_type(selects && i == 0 ? DType::b1 : type);
    if (const Tensor* tensor = operands[i].tensor()) {
      uint16_t value = chain.add_input(plain_type(op, *tensor));
      if (chain.steps[value].type != wanted) value = chain.add_cast(value, wanted);
      values.push_back(value);
      inputs.push_back(*tensor);
    } else {
      values.push_back(chain.add_constant(operands[i].number(), wanted));
    }
  }
  values.resize(3, 0);
  chain.add_apply(op, values[0], values[1], values[2]);
  chain.output = is_comparison(op) || is_logical(op) ? DType::b1 : type;
  return use_op(std::make_shared<ElementwiseOp>(std::move(chain)), std::move(inputs));
}

// Float division; converts integers first.
Tensor true_divide(const TensorOrNumber& a, const TensorOrNumber& b) {
  const TensorOrNumber operands[] = {a, b};
  const DType type = common_type(ScalarOp::div, operands);
  if (is_float(type)) return elementwise(ScalarOp::div, a, b);
  const auto converted = [&](const TensorOrNumber& each) {
    const DType result = type == DType::i64 ? DType::f64 : DType::f32;
    return each.tensor() ? TensorOrNumber(cast(*each.tensor(), result)) : each;
  };
  return elementwise(ScalarOp::div, converted(a), converted(b));
}

}  // namespace

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  const auto bytes = [](DType type) { return ElementType(type).block_bytes(); };
  if (a == DType::b1 || b == DType::b1) return a == DType::b1 ? b : a;
  if (bytes(a) != bytes(b)) return bytes(a) > bytes(b) ? a : b;
  return is_float(a) ? DType::f32 : DType::i16;  // f16 with bf16; i8 with u8
}

Tensor elementwise(ScalarOp op, const TensorOrNumber& a) {
  if (scalar_op_operands(op) != 1)
    fail(fmt::format("{}: takes {} operands", scalar_op_name(op), scalar_op_operands(op)));
  return make(op, std::span(&a, 1));
}

Tensor elementwise(ScalarOp op, const TensorOrNumber& a, const TensorOrNumber& b) {
  if (scalar_op_operands(op) != 2)
    fail(fmt::format("{}: takes {} operands", scalar_op_name(op), scalar_op_operands(op)));
  if (!a.tensor() && !b.tensor())
    fail(fmt::format("{}: two numbers and no tensor", scalar_op_name(op)));
  const TensorOrNumber operands[] = {a, b};
  return make(op, operands);
}

Tensor where(const Tensor& condition, const TensorOrNumber& if_true,
             const TensorOrNumber& if_false) {
  const TensorOrNumber operands[] = {condition, if_true, if_false};
  return make(ScalarOp::select, operands);
}

Tensor cast(const Tensor& x, ElementType type) {
  if (x.type() == type) return x;
  if (type.is_block() || x.type().is_block()) {
    fail(fmt::format("cast: from {} to {}; use quantise() and dequantise()", x.type().name(),
                     type.name()));
  }
  if (!is_tensor_type(type))
    fail(fmt::format("cast: no tensor has elements of type {}", type.name()));
  return use_op(std::make_shared<ElementwiseOp>(cast_chain(x.type().plain(), type.plain())), {x});
}

Tensor clamp(const Tensor& x, double low, double high) {
  if (low > high) fail(fmt::format("clamp: the low end {} is above the high end {}", low, high));
  return minimum(maximum(x, low), high);
}

Tensor floor_divide(const Tensor& a, const TensorOrNumber& b) {
  const Tensor quotient = elementwise(ScalarOp::div, a, b);
  if (is_float(quotient.dtype().plain())) return floor(quotient);
  // Truncation rounds up if the remainder and the divisor have opposite signs.
  const Tensor rest = a - quotient * b;
  const Tensor divisor = b.tensor() ? *b.tensor() : full({}, b.number(), rest.dtype(), a.device());
  const Tensor above =
      logical_or(logical_and(rest<0.0, divisor> 0.0), logical_and(rest > 0.0, divisor < 0.0));
  return where(above, quotient - 1.0, quotient);
}

Tensor operator+(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::add, a, b);
}
Tensor operator-(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::sub, a, b);
}
Tensor operator*(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::mul, a, b);
}
Tensor operator/(const Tensor& a, const TensorOrNumber& b) { return true_divide(a, b); }
Tensor operator+(double a, const Tensor& b) { return elementwise(ScalarOp::add, a, b); }
Tensor operator-(double a, const Tensor& b) { return elementwise(ScalarOp::sub, a, b); }
Tensor operator*(double a, const Tensor& b) { return elementwise(ScalarOp::mul, a, b); }
Tensor operator/(double a, const Tensor& b) { return true_divide(a, b); }
Tensor operator-(const Tensor& a) { return elementwise(ScalarOp::neg, a); }
Tensor operator==(const Tensor& a, const Tensor& b) { return equal(a, b); }
Tensor operator==(const Tensor& a, double b) { return equal(a, b); }
Tensor operator==(double a, const Tensor& b) { return equal(b, a); }
Tensor operator!=(const Tensor& a, const Tensor& b) { return not_equal(a, b); }
Tensor operator!=(const Tensor& a, double b) { return not_equal(a, b); }
Tensor operator!=(double a, const Tensor& b) { return not_equal(b, a); }
Tensor equal(const Tensor& a, const TensorOrNumber& b) { return elementwise(ScalarOp::eq, a, b); }
Tensor not_equal(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::ne, a, b);
}
Tensor operator<(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::lt, a, b);
}
Tensor operator<=(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::le, a, b);
}
Tensor operator>(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::gt, a, b);
}
Tensor operator>=(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::ge, a, b);
}
Tensor logical_not(const Tensor& a) { return elementwise(ScalarOp::logical_not, a); }
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return elementwise(ScalarOp::logical_and, a, b);
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return elementwise(ScalarOp::logical_or, a, b);
}

#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  Tensor name(const Tensor& x) { return elementwise(ScalarOp::name, x); }
#include "base/types/float_functions.inc"

Tensor abs(const Tensor& x) { return elementwise(ScalarOp::abs, x); }
Tensor sign(const Tensor& x) { return elementwise(ScalarOp::sign, x); }
Tensor relu(const Tensor& x) { return elementwise(ScalarOp::relu, x); }
Tensor square(const Tensor& x) { return elementwise(ScalarOp::square, x); }
Tensor pow(const Tensor& x, const TensorOrNumber& e) { return elementwise(ScalarOp::pow, x, e); }
Tensor minimum(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::min, a, b);
}
Tensor maximum(const Tensor& a, const TensorOrNumber& b) {
  return elementwise(ScalarOp::max, a, b);
}

Tensor full(const Shape& shape, double value, ElementType type, const Device& device) {
  if (type.is_block() || !is_tensor_type(type))
    fail(fmt::format("full: elements of type {}", type.name()));
  Chain chain;
  const DType plain = type.plain();
  const uint16_t number = chain.add_constant(value, register_type(plain));
  if (register_type(plain) != plain) chain.add_cast(number, plain);
  chain.output = plain;
  return use_op(std::make_shared<ElementwiseOp>(std::move(chain), shape), {}, device);
}

Tensor zeros(const Shape& shape, ElementType type, const Device& device) {
  return full(shape, 0, type, device);
}

Tensor ones(const Shape& shape, ElementType type, const Device& device) {
  return full(shape, 1, type, device);
}

}  // namespace prism
