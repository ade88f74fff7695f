// Preprocessing of an input that several ops can share, or that the input's producer can do.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "tensor/op.h"

namespace prism {

// `prepare` has that input as its only one and runs once for all ops whose `prepare` has the same
// name and attributes; `rest` takes its output in place of the input. Both must be able to run on
// the device. If `prepare` is an element function, the producer of the input may apply it, and
// `rest` must also run on the CPU.
struct Preparation {
  size_t input = 0;
  std::shared_ptr<const Op> prepare, rest;
  // Whether it becomes a separate step even if no other op shares it.
  bool apart = false;
};

// Implemented by ops that preprocess an input; called by the planner.
class PreparesInput {
 public:
  virtual ~PreparesInput() = default;
  virtual std::optional<Preparation> preparation(const Device& device,
                                                 std::span<const Tensor> inputs) const = 0;
};

// Implemented by ops that can apply other ops' preprocessing to their only output. The planner
// calls it for devices with kernels.
class MakesPrepared {
 public:
  virtual ~MakesPrepared() = default;
  // Returns this op followed by `prepare` of its output, viewed in shape `seen`, or null if it
  // cannot. Outputs: the op's own output if `kept`, then the prepared one.
  virtual std::shared_ptr<const Op> with_prepared(const Device& device,
                                                  std::span<const Tensor> inputs, const Op& prepare,
                                                  const Shape& seen, bool kept) const = 0;
};

}  // namespace prism
