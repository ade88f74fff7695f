// What ops make of an input before all else: made once for all ops of a plan that need it, and by
// what makes the input where that can do both.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "tensor/op.h"

namespace prism {

// `prepare`, whose only input that is, is done once for all ops whose prepare has the same name and
// attributes, and `rest` takes what comes out in the input's place. Both run on the device for
// certain. Where `prepare` is an element function, the maker of the input may do it, and `rest`
// runs on the CPU too.
struct Preparation {
  size_t input = 0;
  std::shared_ptr<const Op> prepare, rest;
  // Whether it is a step of its own where no other op needs it.
  bool apart = false;
};

// An op with such a part is derived from this too; the planner asks it.
class PreparesInput {
 public:
  virtual ~PreparesInput() = default;
  virtual std::optional<Preparation> preparation(const Device& device,
                                                 std::span<const Tensor> inputs) const = 0;
};

// An op that can end with what others prepare of its only output is derived from this too; the
// planner asks it, for devices with kernels.
class MakesPrepared {
 public:
  virtual ~MakesPrepared() = default;
  // This op with these inputs, and then `prepare` of its output, seen in that shape; null where it
  // cannot. Outputs: its own where it is kept, then what was prepared.
  virtual std::shared_ptr<const Op> with_prepared(const Device& device,
                                                  std::span<const Tensor> inputs, const Op& prepare,
                                                  const Shape& seen, bool kept) const = 0;
};

}  // namespace prism
