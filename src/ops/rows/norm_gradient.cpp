// The gradients of norms: an expression of other ops, and one op for f32.
#include "ops/rows/norm_gradient.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/norm_gradient.h"
#include "ops/rows/norm_gradient_kernel.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "tensor/chain/chain_op.h"
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

// Inputs: x, g, the weight if there is one; all f32, but g may be narrower on devices with kernels.
// Outputs: the gradients of x, weight and bias.
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
  std::optional<std::string> cannot_run(const DeviceInfo&, std::span<const Tensor>) const override {
    return std::nullopt;
  }
  // A cast of g to f32.
  std::shared_ptr<const Op> with_prologue(size_t input, const Chain& chain) const override {
    if (input != 1 || chain.inputs.size() != 1) return nullptr;
    const DType from = chain.inputs[0];
    if ((from != DType::f16 && from != DType::bf16) ||
        chain.key() != cast_chain(from, DType::f32).key())
      return nullptr;
    return std::make_shared<NormGradientOp>(centred_, epsilon_);
  }
  void launch(DeviceCall& call) const override { launch_norm_gradient(call, centred_, epsilon_); }
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
    std::vector<float> wide;
    const HostView& given = call.inputs[1];
    if (given.type != ElementType(DType::f32)) {
      wide.resize(rows * n);
      cpu::load(given.type.plain(), given.first<uint16_t>(), 1, DType::f32, wide.data(), rows * n);
    }
    const float* const x = call.inputs[0].first<float>();
    const float* const g = wide.empty() ? given.first<float>() : wide.data();
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
  const bool fits =
      x.device().info().is_cpu || (x.elements() > 0 && has_norm_gradient_kernel(x.shape()[-1]));
  if (!fits || !is_f32(x) || !is_f32(g) || !is_f32(weight))
    return composed(kind.centred, epsilon, type, x, g, weight);
  std::vector<Tensor> inputs = {x, g};
  if (weight) inputs.push_back(weight);
  const std::vector<Tensor> results =
      use_op_all(std::make_shared<NormGradientOp>(kind.centred, epsilon), std::move(inputs));
  return {results[0], results[1], results[2]};
}

}  // namespace prism
