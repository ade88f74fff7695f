// Interfaces of ops that can do the work of several ops in one step: their producer's, or that of
// siblings over the same input.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tensor/op.h"

namespace prism {

struct OpUse {
  const Op& op;
  std::span<const Tensor> inputs;
};

struct Joint {
  std::shared_ptr<const Op> op;
  std::vector<Tensor> inputs;
};

// Implemented by ops that can merge with a producer or with siblings. The planner calls it for
// devices with kernels. If the joint op's launches do not fit the device, the planner emits the ops
// separately.
class JoinsAlike {
 public:
  virtual ~JoinsAlike() = default;
  // Merges this op with `maker`, the producer of input `made`. No other op uses that input.
  virtual std::optional<Joint> with_maker(const Device& device, std::span<const Tensor> inputs,
                                          size_t made, const OpUse& maker) const = 0;
  // Whether beside() accepts ops whose first inputs differ.
  virtual bool joins_other_inputs() const { return false; }
  // Merges sibling ops. uses[0] is this op; all have one output, and share the first input unless
  // joins_other_inputs(). Output i of the joint op is the output of uses[i].
  virtual std::optional<Joint> beside(const Device& device, std::span<const OpUse> uses) const = 0;
};

// Implemented by ops that can absorb a joint step and consume all of its outputs. The planner
// calls it for devices with kernels.
class JoinsJoint {
 public:
  virtual ~JoinsJoint() = default;
  // Output i of `maker` is input made[i], contiguous but possibly reshaped. No other op uses these
  // outputs.
  virtual std::optional<Joint> with_joint(const Device& device, std::span<const Tensor> inputs,
                                          std::span<const size_t> made,
                                          const OpUse& maker) const = 0;
};

}  // namespace prism
