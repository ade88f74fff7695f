// Products of rows routed to experts: the shape rule, the gradient and the limits of devices.
#include "ops/products/expert_matmul_op.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "ops/products/matmul_op.h"
#include "ops/products/product_launch.h"
#include "ops/products/round_rows_op.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"
#include "prism/ops/quantise.h"
#include "prism/ops/reduce.h"
#include "tensor/chain/chain_kernel.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "expert_matmul: " + message);
}

Tensor routed(const Tensor& x, const Tensor& weights, const Tensor& experts) {
  return use_op(std::make_shared<ExpertMatmulOp>(), {x, weights, experts});
}

}  // namespace

Tensor expert_matmul(const Tensor& x, const Tensor& weights, const Tensor& experts,
                     const Tensor& bias) {
  if (!x || !weights || !experts) fail("an empty Tensor as an operand");
  if (experts.type() != ElementType(DType::i32) && experts.type() != ElementType(DType::i64))
    fail(fmt::format("experts of type {}; they must be i32 or i64", experts.type().name()));
  // What does not fit stays outside.
  const bool wide = experts.type() == ElementType(DType::i64);
  const Tensor ids = wide ? cast(clamp(experts, -1, INT32_MAX), DType::i32) : experts;
  const Tensor y = routed(x, weights, ids);
  if (!bias) return y;
  if (bias.rank() != 2 || bias.shape()[0] != weights.shape()[0] ||
      bias.shape()[1] != weights.shape()[1]) {
    fail(fmt::format("a bias {} for weights {}; it must be [experts, out]", bias.shape().text(),
                     weights.shape().text()));
  }
  return cast(y + gather_rows(bias, ids), y.type());
}

std::vector<Spec> ExpertMatmulOp::infer(std::span<const Tensor> inputs) const {
  const Tensor &x = inputs[0], &weights = inputs[1], &experts = inputs[2];
  const bool shapes_fit =
      weights.rank() == 3 && experts.rank() == 2 &&
      (x.rank() == 2 || (x.rank() == 3 && x.shape()[1] == experts.shape()[1])) &&
      x.shape()[0] == experts.shape()[0] && x.shape()[-1] == weights.shape()[-1];
  if (!shapes_fit) {
    fail(
        fmt::format("x {}, weights {}, experts {}; they must be [rows, in] or [rows, used, in], "
                    "[experts, out, in] and [rows, used]",
                    x.shape().text(), weights.shape().text(), experts.shape().text()));
  }
  if (x.type().is_block() || !is_float(x.type().plain()))
    fail(fmt::format("x of type {}; cast it to a float type first", x.type().name()));
  if (!weights.type().is_block() && !is_float(weights.type().plain()))
    fail(
        fmt::format("weights of type {}; they must be floats or quantised", weights.type().name()));
  if (weights.type().is_block() && !weights.layout().is_dense())
    fail(fmt::format("weights {} of type {} are a view that does not lie expert by expert",
                     weights.shape().text(), weights.type().name()));
  return {{{experts.shape()[0], experts.shape()[1], weights.shape()[1]},
           product_type(x.type(), weights.type())}};
}

std::vector<Tensor> ExpertMatmulOp::gradient(const GradientCall& call) const {
  const Tensor &x = call.inputs[0], &weights = call.inputs[1], &experts = call.inputs[2];
  const Tensor& g = call.output_gradients[0];
  std::vector<Tensor> results(3);
  if (call.wanted[0]) {
    const Tensor plain = weights.type().is_block() ? dequantise(weights) : weights;
    const Tensor back = routed(g, plain.transpose(), experts);
    results[0] = cast(x.rank() == 2 ? sum(back, {1}) : back, x.type());
  }
  if (call.wanted[1] && !weights.type().is_block()) {
    // Of each expert the product of g, where it is the one, with x: more multiplications than there
    // are, by the number of experts, but no more launches.
    const Shape& by_slot = g.shape();
    const int64_t slots = by_slot[0] * by_slot[1], in = x.shape()[-1];
    const Tensor mask =
        one_hot(experts.reshape({slots}), weights.shape()[0], g.type().plain()).transpose();
    const Tensor own = g.reshape({slots, by_slot[2]}) * mask.unsqueeze(-1);
    const Tensor rows = x.rank() == 2 ? x.unsqueeze(1).expand({by_slot[0], by_slot[1], in}) : x;
    results[1] = cast(matmul(own.transpose(), rows.reshape({slots, in})), weights.type());
  }
  return results;
}

std::shared_ptr<const Op> ExpertMatmulOp::with_tail(Tail tail) const {
  // Kernels have five buffers of their own and 16 parameters, of 8 and 24.
  if (tail.others() > 3 || tail.params() > 8) return nullptr;
  return std::make_shared<ExpertMatmulOp>(std::move(tail), rounded_, x_share_);
}

std::optional<Preparation> ExpertMatmulOp::preparation(const Device& device,
                                                       std::span<const Tensor> inputs) const {
  const Tensor &x = inputs[0], &weights = inputs[1];
  if (rounded_ || !weights.type().is_block() || x.elements() == 0) return std::nullopt;
  const Sizes sizes = sizes_of(x.layout(), weights.layout(), inputs[2].layout());
  const bool rounds = device.info().is_cpu || reads_by_slot(sizes);
  if (!rounds || !RoundRowsOp::runs_on(device, x)) return std::nullopt;
  return Preparation{0, std::make_shared<RoundRowsOp>(device, weights.type().block()),
                     std::make_shared<ExpertMatmulOp>(tail_, x.type().plain(), sizes.x_share)};
}

ExpertMatmulOp::Sizes ExpertMatmulOp::sizes_of(const Layout& x, const Layout& weights,
                                               const Layout& experts) const {
  const int64_t used = std::max<int64_t>(1, experts.shape[1]);
  return {experts.shape.elements(), weights.shape[1], weights.shape[2], weights.shape[0],
          x_share_ > 0          ? x_share_
          : x.shape.rank() == 2 ? used
                                : 1};
}

// Slots that share an expert are few while there are no more of them than half the experts, and
// then tiles of rows would be nearly empty.
bool ExpertMatmulOp::reads_by_slot(const Sizes& s) {
  return s.slots <= std::max<int64_t>(kFewRows, std::min<int64_t>(64, s.experts / 2));
}

bool ExpertMatmulOp::takes_layout(size_t input, const Tensor& tensor,
                                  const DeviceInfo& device) const {
  if (input >= 3 || tensor.type().is_block()) return true;  // infer() has seen that it is whole
  if (input == 1 && device.is_cpu) {
    const auto matrix = matrix_layout(tensor.layout());
    return matrix && matrix->batch_step >= 0;
  }
  return Op::takes_layout(input, tensor, device);
}

std::optional<std::string> ExpertMatmulOp::cannot_run(const DeviceInfo& device,
                                                      std::span<const Tensor> inputs) const {
  const Tensor& weights = inputs[1];
  for (const Tensor& each : inputs) {
    if (each.type() != ElementType(DType::f64)) continue;
    if (weights.type().is_block()) return "kernels multiply quantised matrices up to f32";
    if (const std::string reason = lacks_type(device.capabilities, DType::f64); !reason.empty())
      return reason;
  }
  if (weights.type().is_block() && weights.layout().offset != 0)
    return "kernels take quantised matrices whole";
  if (weights.shape()[0] > ops::kMostExperts)
    return fmt::format("kernels route rows to at most {} experts", ops::kMostExperts);
  return std::nullopt;
}

}  // namespace prism
