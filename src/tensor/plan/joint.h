// Ops that do the work of several in one step: of what makes their inputs, or of others over the
// same input.
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

// An op that knows such others is derived from this too; the planner asks it, for devices with
// kernels. Where launches of the joint op turn out not to fit the device, the ops are done apart.
class JoinsAlike {
 public:
  virtual ~JoinsAlike() = default;
  // This op with these inputs, and what makes the input of that number, in one step. Nobody else
  // uses that input.
  virtual std::optional<Joint> with_maker(const Device& device, std::span<const Tensor> inputs,
                                          size_t made, const OpUse& maker) const = 0;
  // uses[0] is this op; all have the same first input, and one output. Output i of the joint op is
  // that of use i.
  virtual std::optional<Joint> beside(const Device& device, std::span<const OpUse> uses) const = 0;
};

// An op that can do the work of a joint step too, where it uses all that the step makes, is derived
// from this; the planner asks it, for devices with kernels.
class JoinsJoint {
 public:
  virtual ~JoinsJoint() = default;
  // Output i of the maker is the input of number made[i], as it was made but maybe of another
  // shape. Nobody else uses any of them.
  virtual std::optional<Joint> with_joint(const Device& device, std::span<const Tensor> inputs,
                                          std::span<const size_t> made,
                                          const OpUse& maker) const = 0;
};

}  // namespace prism
