// The gradient of attention over whole sequences as one op, with memory linear in their length.
#include <algorithm>

#include "cpu/attention_gradient.h"
#include "ops/attention/attention_op.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"
#include "tensor/expression_op.h"

namespace prism {

namespace {

// Inputs: q, k and v as AttentionOp has them, its result and the gradient of that. Outputs: the
// gradients of q, k and v.
class AttentionGradientOp : public ExpressionOp {
 public:
  explicit AttentionGradientOp(const AttentionOp& forward) : forward_(forward) {}

  std::string_view name() const override { return "attention_gradient"; }
  std::string attributes() const override { return forward_.attributes(); }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    return {{inputs[0].shape(), DType::f32},
            {inputs[1].shape(), DType::f32},
            {inputs[2].shape(), DType::f32}};
  }
  // From the score matrix.
  std::vector<Tensor> expression(std::span<const Tensor> inputs) const override {
    const Tensor &k = inputs[1], &v = inputs[2];
    const int64_t batch = k.size(0), kv_heads = k.size(2);
    const int64_t queries = inputs[0].size(0) / batch, heads = inputs[0].size(1);
    const auto by_group = [&](const Tensor& x) {  // [batch, kv_heads, group, queries, dim]
      return x.reshape({batch, queries, kv_heads, heads / kv_heads, x.size(-1)})
          .permute({0, 2, 3, 1, 4});
    };
    const auto shared = [&](const Tensor& x) { return x.permute({0, 2, 1, 3}).unsqueeze(2); };
    const Tensor q = by_group(inputs[0]), g = by_group(inputs[4]);
    const Tensor scores = matmul(q, shared(k).transpose()) * forward_.scale;
    const Tensor weights = softmax(forward_.masked(scores), -1);
    const Tensor slopes = matmul(g, shared(v).transpose());
    const Tensor score_slopes =
        weights * (slopes - sum(slopes * weights, {-1}, true)) * forward_.scale;
    const auto of_shared = [](const Tensor& x) { return sum(x, {2}).permute({0, 2, 1, 3}); };
    return {matmul(score_slopes, shared(k)).permute({0, 3, 1, 2, 4}).reshape(inputs[0].shape()),
            of_shared(matmul(score_slopes.transpose(), q)),
            of_shared(matmul(weights.transpose(), g))};
  }

  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    return input == 3 ? Op::takes_layout(input, tensor, device)
                      : forward_.takes_layout(input == 4 ? 0 : input, tensor, device);
  }
  void run_cpu(const CpuCall& call) const override {
    const HostView &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2],
                   &slopes = call.inputs[4];
    const auto size = [](int64_t value) { return static_cast<size_t>(value); };
    cpu::AttentionGradient data;
    data.sequences = size(k.layout.shape[0]);
    data.queries = size(q.layout.shape[0]) / data.sequences;
    data.keys = size(k.layout.shape[1]);
    data.q = q.first<float>();
    data.k = k.first<float>();
    data.v = v.first<float>();
    data.out = call.inputs[3].first<float>();
    data.out_gradient = slopes.first<float>();
    data.gradient_row = size(slopes.layout.stride(0));
    data.gradient_head = size(slopes.layout.stride(1));
    data.q_gradient = call.outputs[0].first<float>();
    data.k_gradient = call.outputs[1].first<float>();
    data.v_gradient = call.outputs[2].first<float>();
    cpu::attention_gradient(call.pool, forward_.cpu_options(q, k, v), data);
  }

  // Five products of the size of the scores, and the scores once more.
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView>) const override {
    return (forward_.causal ? 0.5 : 1.0) * 12.0 * static_cast<double>(inputs[0].elements()) *
           static_cast<double>(inputs[1].layout.shape[1]);
  }

 private:
  AttentionOp forward_;
};

}  // namespace

std::vector<Tensor> AttentionOp::gradient(const GradientCall& call) const {
  std::vector<Tensor> results = use_op_all(
      std::make_shared<AttentionGradientOp>(*this),
      {call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0], call.output_gradients[0]});
  results.resize(call.inputs.size());
  return results;
}

bool AttentionOp::has_whole_gradient(const Device& device, std::span<const Tensor> inputs) {
  const auto small = [](const Tensor& x) {
    return x.type() == ElementType(DType::f32) &&
           x.size(-1) <= static_cast<int64_t>(cpu::kMaxGradientDim);
  };
  return device.info().is_cpu && std::ranges::all_of(inputs, small);
}

}  // namespace prism
