// The gradient of gelu: an expression for all devices, and one op for f32 on the CPU.
#include "ops/elementwise/gelu_gradient.h"

#include <cmath>
#include <numbers>

#include "cpu/gelu_gradient.h"
#include "prism/ops/elementwise.h"
#include "tensor/expression_op.h"

namespace prism {

namespace {

// Elements per work item of a thread.
constexpr uint64_t kChunk = 16384;

// Inputs: x and g, of one shape.
class GeluGradientOp : public ExpressionOp {
 public:
  std::string_view name() const override { return "gelu_gradient"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    return {{inputs[0].shape(), DType::f32}};
  }
  std::vector<Tensor> expression(std::span<const Tensor> inputs) const override {
    return {inputs[1] * gelu_slope(inputs[0])};
  }
  int overwrites(std::span<const Tensor>) const override { return 1; }
  void run_cpu(const CpuCall& call) const override {
    const float *x = call.inputs[0].first<float>(), *g = call.inputs[1].first<float>();
    float* const out = call.outputs[0].first<float>();
    call.pool.parallel_for(static_cast<uint64_t>(call.outputs[0].layout.shape.elements()), kChunk,
                           [&](uint64_t first, uint64_t last) {
                             cpu::gelu_gradient(x + first, g + first, out + first, last - first);
                           });
  }
};

}  // namespace

Tensor gelu_slope(const Tensor& x) {
  const Tensor below = 0.5 * (1.0 + erf(x * std::sqrt(0.5)));
  return below + x * exp(square(x) * -0.5) / std::sqrt(2 * std::numbers::pi);
}

std::optional<Tensor> gelu_gradient(const Tensor& x, const Tensor& g) {
  const auto is_f32 = [](const Tensor& t) { return t.type() == ElementType(DType::f32); };
  if (!x.device().info().is_cpu || !is_f32(x) || !is_f32(g) || !(x.shape() == g.shape()))
    return std::nullopt;
  return use_op(std::make_shared<GeluGradientOp>(), {x, g});
}

}  // namespace prism
