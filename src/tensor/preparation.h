// What ops make of an input before all else and other ops of a plan may make of it too.
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
};

// An op with such a part is derived from this too; the planner asks it.
class PreparesInput {
 public:
  virtual ~PreparesInput() = default;
  virtual std::optional<Preparation> preparation(const Device& device,
                                                 std::span<const Tensor> inputs) const = 0;
};

}  // namespace prism
