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
  bool gains = false;         // v is multiplied by extra
  bool packed_rates = false;  // extra holds the rates too, after the vector of each row and head
  uint32_t keys = 1;
  uint32_t parts = 1;  // lanes that share a column, for scan_kernel; divides keys

  static constexpr uint32_t kColumns = 32;  // of the state, for each group
  // Chooses parts. one_row: texts have one row each.
  void share_columns(bool one_row, uint32_t most_lanes);
  bool has_extra() const;
  bool has_rates() const { return rule == cpu::ScanRule::moving; }
  std::string key() const;
};
// Buffers: state, q, k, v, decay, extra (gains, beta, the vector `from`, or rates of elements) if
// there is one, the rates of `from` unless packed, texts, y. Parameters: rows, heads, key_heads,
// values, texts, then the stride of rows and the start of q, k and v. Groups: heads * tiles of
// columns, texts.
ir::Kernel scan_kernel(const ScanKernel& p);

}  // namespace prism::ops
