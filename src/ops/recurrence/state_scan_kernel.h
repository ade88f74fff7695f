// The kernel of scans over a matrix of state.
#pragma once

#include <cstdint>
#include <string>

#include "cpu/state_scan.h"
#include "prism/kernel_ir.h"

namespace prism::ops {

struct ScanKernel {
  cpu::ScanRule rule = cpu::ScanRule::sums;
  cpu::ScanDecay decay = cpu::ScanDecay::head;
  bool tiled_keys = false;
  bool gains = false;  // v is multiplied by extra
  uint32_t keys = 1;

  static constexpr uint32_t kColumns = 32;  // of the state, for each group
  uint32_t parts() const;                   // lanes that share a column
  bool has_extra() const;
  std::string key() const;
};
// Buffers: state, q, k, v, decay, extra (gains, beta, two vectors, or rates) if there is one,
// texts, y. Parameters: rows, heads, key_heads, values, texts, then the stride of rows and the
// start of q, k and v. Groups: heads * tiles of columns, texts.
ir::Kernel scan_kernel(const ScanKernel& p);

}  // namespace prism::ops
