// The base of ops that the planner makes of several: they are launches and nothing else.
#pragma once

#include "tensor/op.h"

namespace prism {

class JointOp : public Op {
 public:
  void run_cpu(const CpuCall& call) const override;  // an error: the CPU does the parts
  // The parts were asked before they were joined.
  bool takes_layout(size_t, const Tensor&, const DeviceInfo&) const override { return true; }
};

}  // namespace prism
