// The gradients of norms: an expression of other ops, and one op for it on the CPU.
#include "ops/rows/norm_gradient.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/norm_gradient.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "tensor/expression_op.h"

namespace prism {

namespace {

NormGradients composed(bool centred, double epsilon, DType type, const Tensor& given_x,
                       const Tensor& given_g, const Tensor& weight) {
  const Tensor x = cast(given_x, type), g = cast(given_g, type);
  const Tensor off = centred ? x - mean(x, {-1}, true) : x;
  const Tensor scale = rsqrt(mean(square(off), {-1}, true) + epsilon);
  const Tensor normed = off * scale;
  const Tensor weighted = weight ? g * cast(weight, type) : g;
  Tensor inner = weighted - normed * mean(weighted * normed, {-1}, true);
  if (centred) inner = inner - mean(weighted, {-1}, true);
  const Shape row = {x.shape()[-1]};
  return {scale * inner, sum_to(g * normed, row), sum_to(g, row)};
}

// Inputs: x, g, the weight if there is one; all f32. Outputs: the gradients of x, weight and bias.
class NormGradientOp : public ExpressionOp {
 public:
  NormGradientOp(bool centred, double epsilon) : centred_(centred), epsilon_(epsilon) {}

  std::string_view name() const override {
    return centred_ ? "layer_norm_gradient" : "rms_norm_gradient";
  }
  std::string attributes() const override { return fmt::format("epsilon {}", epsilon_); }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Shape row = {inputs[0].shape()[-1]};
    return {{inputs[0].shape(), DType::f32}, {row, DType::f32}, {row, DType::f32}};
  }
  std::vector<Tensor> expression(std::span<const Tensor> inputs) const override {
    const auto [x, weight, bias] = composed(centred_, epsilon_, DType::f32, inputs[0], inputs[1],
                                            inputs.size() > 2 ? inputs[2] : Tensor());
    return {x, weight, bias};
  }
  // Chunks of rows sum their columns apart and are added in order, so that the result depends on no
  // thread count.
  void run_cpu(const CpuCall& call) const override {
    const Shape& shape = call.inputs[0].layout.shape;
    const auto n = static_cast<size_t>(shape[-1]);
    const auto rows = n == 0 ? 0 : static_cast<size_t>(shape.elements()) / n;
    const auto each = static_cast<size_t>(rows_a_chunk(shape[-1]));
    const size_t chunks = (rows + each - 1) / each;
    cpu::NormGradient norm{centred_, epsilon_, n, nullptr};
    if (call.inputs.size() > 2) norm.weight = call.inputs[2].first<float>();
    std::vector<float> sums(chunks * 2 * n);
    const float *x = call.inputs[0].first<float>(), *g = call.inputs[1].first<float>();
    float* const slopes = call.outputs[0].first<float>();
    call.pool.parallel_for(chunks, 1, [&](uint64_t first, uint64_t last) {
      for (uint64_t chunk = first; chunk < last; ++chunk) {
        const size_t at = chunk * each * n;
        float* const mine = sums.data() + chunk * 2 * n;
        cpu::norm_gradient(norm, x + at, g + at, std::min(each, rows - chunk * each), slopes + at,
                           mine, mine + n);
      }
    });
    for (size_t i = 0; i < 2 * n; ++i) {
      double sum = 0;
      for (size_t chunk = 0; chunk < chunks; ++chunk)
        sum += static_cast<double>(sums[chunk * 2 * n + i]);
      call.outputs[i < n ? 1 : 2].first<float>()[i % n] = static_cast<float>(sum);
    }
  }

 private:
  bool centred_;
  double epsilon_;
};

}  // namespace

NormGradients norm_gradients(const NormKind& kind, double epsilon, DType type, const Tensor& x,
                             const Tensor& g, const Tensor& weight) {
  const auto is_f32 = [](const Tensor& t) { return !t || t.type() == ElementType(DType::f32); };
  if (!x.device().info().is_cpu || !is_f32(x) || !is_f32(g) || !is_f32(weight))
    return composed(kind.centred, epsilon, type, x, g, weight);
  std::vector<Tensor> inputs = {x, g};
  if (weight) inputs.push_back(weight);
  const std::vector<Tensor> results =
      use_op_all(std::make_shared<NormGradientOp>(kind.centred, epsilon), std::move(inputs));
  return {results[0], results[1], results[2]};
}

}  // namespace prism
