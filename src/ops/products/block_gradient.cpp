// The gradient of a product with quantised weights, which are decoded into scratch memory. As a
// tensor of its own the decoded matrix would be a constant of the plan, kept for all of its life.
#include "ops/products/block_gradient.h"

#include <fmt/format.h>

#include "base/types/gpu_block_layout.h"
#include "cpu/elementwise.h"
#include "cpu/quantise/dequantise.h"
#include "ops/products/product_launch.h"
#include "ops/quantise/block_kernels.h"
#include "tensor/chain/chain_op.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

// Enough mantissa for slopes, and the range of f32.
constexpr DType kOperand = DType::bf16;

NativeProduct native_of(int64_t m, int64_t n, int64_t k) {
  NativeProduct native;
  native.m = static_cast<uint32_t>(m);
  native.n = static_cast<uint32_t>(k);
  native.k = static_cast<uint32_t>(n);
  native.a_type = native.b_type = kOperand;
  native.c_type = DType::f32;
  return native;
}

// Inputs: g (f32 [m, n]), weights ([n, k]).
class BlockGradientOp : public Op {
 public:
  std::string_view name() const override { return "block_gradient"; }
  bool has_gradient() const override { return false; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    return {{{inputs[0].size(0), inputs[1].size(1)}, DType::f32}};
  }
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    return input == 0 ? Op::takes_layout(input, tensor, device)
                      : tensor.layout().is_dense() && tensor.layout().offset == 0;
  }

  void launch(DeviceCall& call) const override {
    const DeviceView &g = call.input(0), &weights = call.input(1);
    const int64_t m = g.layout.shape[0], n = g.layout.shape[1], k = weights.layout.shape[1];
    const GpuBlockLayout planes =
        gpu_block_layout(weights.type.block(), static_cast<uint64_t>(n), static_cast<uint64_t>(k));
    const DeviceView narrow = call.scratch({m, n}, kOperand), rows = call.scratch({n, k}, kOperand);
    launch_chain(call, cast_chain(DType::f32, kOperand), std::span(&g, 1), narrow);
    const auto launch = ops::dequantise_gpu_blocks_launch(planes);
    call.launch(
        fmt::format("dequantise_gpu_blocks {} {}", weights.type.name(), dtype_name(kOperand)),
        [&] { return ops::dequantise_gpu_blocks(weights.type.block(), kOperand); }, launch.groups,
        {weights, rows}, param_values(launch.params));
    call.product(native_of(m, n, k), narrow, rows, call.output());
  }

  // For plans that continue on the CPU after their device failed.
  void run_cpu(const CpuCall& call) const override {
    const HostView &g = call.inputs[0], &weights = call.inputs[1], &y = call.outputs[0];
    const int64_t m = g.layout.shape[0], n = g.layout.shape[1], k = weights.layout.shape[1];
    std::vector<float> rows(static_cast<size_t>(n * k));
    cpu::dequantise(weights.type.block(), weights.data, rows.data(), rows.size(), call.pool);
    call.pool.parallel_for(static_cast<uint64_t>(m), 1, [&](uint64_t begin, uint64_t end) {
      for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
        float* const to = y.first<float>() + row * k;
        std::fill(to, to + k, 0.0f);
        for (int64_t i = 0; i < n; ++i) {
          const float by = g.first<float>()[row * n + i];
          const float* const from = rows.data() + i * k;
          for (int64_t j = 0; j < k; ++j) to[j] += by * from[j];
        }
      }
    });
  }

  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override {
    return 2.0 * static_cast<double>(outputs[0].elements()) *
           static_cast<double>(inputs[0].layout.shape[1]);
  }
};

}  // namespace

bool has_block_gradient(const Tensor& g, const Tensor& weights) {
  return !g.device().info().is_cpu && g.rank() == 2 && weights.rank() == 2 &&
         g.type() == ElementType(DType::f32) && g.elements() > 0 && weights.elements() > 0 &&
         weights.layout().offset == 0 && weights.layout().is_dense() &&
         g.device().supports(native_of(g.size(0), g.size(1), weights.size(1)));
}

Tensor block_gradient(const Tensor& g, const Tensor& weights) {
  return use_op(std::make_shared<BlockGradientOp>(), {g, weights});
}

}  // namespace prism
