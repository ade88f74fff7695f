// Gradients of the elementwise functions, as tensor expressions.
#include <cmath>

#include "ops/elementwise/elementwise_op.h"
#include "ops/elementwise/gelu_gradient.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"

namespace prism {

namespace {

constexpr double kPi = 3.14159265358979323846;

// The gradients of the operands; empty for an operand without a gradient.
struct Parts {
  Tensor a, b, c;
};

Tensor zero_where_not(const Tensor& condition, const Tensor& x) { return where(condition, x, 0.0); }

Tensor twice_gelu_tanh_slope(const Tensor& x) {
  const double k = std::sqrt(2 / kPi), c = 0.044715;
  const Tensor t = tanh((x + x * square(x) * c) * k);
  const Tensor slope = (1.0 - square(t)) * (1.0 + square(x) * (3 * c)) * k;
  return 1.0 + t + x * slope;
}

// A device computes s twice in one chain; shared, it would be a tensor of its own.
Tensor silu_gradient(const Tensor& x, const Tensor& g) {
  const Tensor s = sigmoid(x), again = x.device().info().is_cpu ? s : sigmoid(x);
  return g * s * (1.0 + x * (1.0 - again));
}

// y is the result, g its gradient.
Parts one_operand(ScalarOp op, const Tensor& x, const Tensor& y, const Tensor& g) {
  if (op == ScalarOp::gelu)
    if (const auto slopes = gelu_gradient(x, g)) return {*slopes, {}, {}};
  switch (op) {
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  case ScalarOp::name:                                                                         \
    return {gradient, {}, {}};
#include "base/types/float_functions.inc"
    case ScalarOp::neg:
      return {-g, {}, {}};
    case ScalarOp::abs:
      return {g * sign(x), {}, {}};
    case ScalarOp::relu:
      return {zero_where_not(x > 0.0, g), {}, {}};
    case ScalarOp::square:
      return {g * x * 2.0, {}, {}};
    default:
      return {};  // sign and logic have slope 0
  }
}

Parts two_operands(ScalarOp op, const TensorOrNumber& a, const TensorOrNumber& b, const Tensor& y,
                   const Tensor& g) {
  switch (op) {
    case ScalarOp::add:
      return {g, g, {}};
    case ScalarOp::sub:
      return {g, -g, {}};
    case ScalarOp::mul:
      return {g * b, g * a, {}};
    case ScalarOp::div:
      return {g / b, -(g * y / b), {}};
    case ScalarOp::pow: {
      Parts parts;
      if (a.tensor()) {
        const Tensor lower =
            b.tensor() ? pow(*a.tensor(), *b.tensor() - 1.0) : pow(*a.tensor(), b.number() - 1);
        parts.a = g * b * lower;
      }
      if (b.tensor()) {
        const Tensor slope = a.tensor() ? where(*a.tensor() > 0.0, log(*a.tensor()), 0.0)
                                        : full({}, std::log(a.number()), g.type(), g.device());
        parts.b = g * y * slope;
      }
      return parts;
    }
    case ScalarOp::min: {  // the first operand gets the gradient of ties
      const Tensor first = elementwise(ScalarOp::le, a, b);
      return {zero_where_not(first, g), where(first, 0.0, g), {}};
    }
    case ScalarOp::max: {
      const Tensor first = elementwise(ScalarOp::ge, a, b);
      return {zero_where_not(first, g), where(first, 0.0, g), {}};
    }
    default:
      return {};
  }
}

bool is_constant(const Chain::Step& step) { return step.kind == Chain::Kind::constant; }

}  // namespace

// Walks the chain backwards with a tensor for each step.
std::vector<Tensor> ElementwiseOp::gradient(const GradientCall& call) const {
  const std::vector<Chain::Step>& steps = chain().steps;
  std::vector<Tensor> values(steps.size()), gradients(steps.size());
  const auto operand = [&](uint16_t s) {
    return is_constant(steps[s]) ? TensorOrNumber(steps[s].number) : TensorOrNumber(values[s]);
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const Chain::Step& step = steps[s];
    if (step.kind == Chain::Kind::input) values[s] = call.inputs[step.index];
    if (step.kind == Chain::Kind::cast) values[s] = cast(values[step.a], step.stored);
    if (step.kind == Chain::Kind::apply) values[s] = call.outputs[0];  // the only apply step
  }
  gradients[chain().result] = call.output_gradients[0];
  std::vector<Tensor> results(call.inputs.size());
  const auto gather = [](Tensor& sum, const Tensor& more) {
    if (more) sum = sum ? sum + more : more;
  };
  for (size_t s = steps.size(); s-- > 0;) {
    const Chain::Step& step = steps[s];
    const Tensor& g = gradients[s];
    if (!g) continue;
    if (step.kind == Chain::Kind::input) {
      const Tensor& input = call.inputs[step.index];
      if (call.wanted[step.index])
        gather(results[step.index], cast(sum_to(g, input.shape()), input.type()));
    } else if (step.kind == Chain::Kind::cast) {
      // Casts to and from integers have no gradient.
      if (is_float(step.stored) && is_float(steps[step.a].type))
        gather(gradients[step.a], cast(g, steps[step.a].type));
    } else if (step.kind == Chain::Kind::apply) {
      const int operands = scalar_op_operands(step.op);
      Parts parts;
      if (operands == 1) {
        parts = one_operand(step.op, values[step.a], values[s], g);
      } else if (operands == 2) {
        parts = two_operands(step.op, operand(step.a), operand(step.b), values[s], g);
      } else {
        parts = {{}, zero_where_not(values[step.a], g), where(values[step.a], 0.0, g)};
      }
      if (!is_constant(steps[step.a])) gather(gradients[step.a], parts.a);
      if (operands > 1 && !is_constant(steps[step.b])) gather(gradients[step.b], parts.b);
      if (operands > 2 && !is_constant(steps[step.c])) gather(gradients[step.c], parts.c);
    }
  }
  return results;
}

}  // namespace prism
