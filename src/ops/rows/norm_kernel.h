// Kernels of layer norm and rms norm.
#pragma once

#include <memory>
#include <optional>

#include "ops/rows/row_source.h"
#include "ops/rows/row_walk.h"
#include "ops/tail.h"
#include "prism/kernel_ir.h"

namespace prism {

struct NormKind {
  // The outputs: the rows, the rows rounded to 8 bits (ops/products/rounded_rows.h), or both.
  enum class Rounding : uint8_t { none, also, only };

  bool centred = false;               // subtracts the mean: layer norm
  std::optional<DType> weight, bias;  // as stored
  Rounding rounding = Rounding::none;

  const char* name() const { return centred ? "layer_norm" : "rms_norm"; }
  bool rounds() const { return rounding != Rounding::none; }
  bool keeps() const { return rounding != Rounding::only; }
};

// Buffers: the rows' inputs, weight, bias, the tail's inputs, y, rounded rows (u32). Rounding
// requires rows in registers and no tail.
ir::Kernel norm_kernel(const NormKind& kind, const RowBinding& source, const RowWalk& walk,
                       DType stored, const std::shared_ptr<const TailSpec>& spec);

}  // namespace prism
