// assign: a chain that writes into the memory of its first input.
#include "prism/ops/assign.h"

#include <fmt/format.h>

#include "ops/index/index_reading.h"
#include "prism/error.h"
#include "tensor/chain/chain_op.h"

namespace prism {

Tensor assign(const Tensor& target, const Tensor& value) {
  if (!target || !value)
    throw Error(ErrorCode::kInvalidArgument, "assign: an empty Tensor as an operand");
  ops::check_changeable("assign", target);
  if (target.dtype().is_block() || value.dtype().is_block()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("assign: values of type {} to a tensor of type {}; block-quantised "
                            "tensors cannot be assigned",
                            value.dtype().name(), target.dtype().name()));
  }
  if (!(broadcast("assign", target.shape(), value.shape()) == target.shape())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("assign: values of shape {} do not fit a tensor of shape {}",
                            value.shape().text(), target.shape().text()));
  }
  // A value that reads the target in another order is complete before the target changes.
  const bool tangled =
      value.is_evaluated() &&
      value.node()->storage[value.output()] == target.node()->storage[target.output()] &&
      (value.node() != target.node() || !(value.layout() == target.layout()));
  const Tensor source = tangled ? copied(value) : value;
  Chain chain;
  const DType type = target.dtype().plain();
  chain.add_input(type);
  const uint16_t given = chain.add_input(value.dtype().plain());
  chain.result = value.dtype() == target.dtype() ? given : chain.add_cast(given, type);
  chain.output = type;
  const NoGrad off;
  return use_op(std::make_shared<ChainOp>(std::move(chain), target.shape(), true),
                {target, source});
}

}  // namespace prism
