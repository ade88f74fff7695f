// Base class of ops that the planner merges from several; they exist only as device launches.
#pragma once

#include "tensor/op.h"

namespace prism {

class JointOp : public Op {
 public:
  void run_cpu(const CpuCall& call) const override;  // throws: the CPU runs the parts
  // The planner checked the parts before it merged them.
  bool takes_layout(size_t, const Tensor&, const DeviceInfo&) const override { return true; }
};

}  // namespace prism
