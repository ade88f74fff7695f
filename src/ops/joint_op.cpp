// A merged op rejects the CPU.
#include "ops/joint_op.h"

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {

void JointOp::run_cpu(const CpuCall&) const {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{}: this merged op has device kernels only", name()));
}

}  // namespace prism
