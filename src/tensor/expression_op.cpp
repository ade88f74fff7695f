// What ops without device kernels answer.
#include "tensor/expression_op.h"

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {

std::optional<std::string> ExpressionOp::cannot_run(const DeviceInfo& device,
                                                    std::span<const Tensor>) const {
  if (device.is_cpu) return std::nullopt;
  return fmt::format("{} has no device kernel", name());
}

void ExpressionOp::launch(DeviceCall&) const {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{}: has no device kernel; compute its expression", name()));
}

}  // namespace prism
