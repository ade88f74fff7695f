// The kernel of running sums along rows.
#pragma once

#include <string>

#include "ops/rows/row_source.h"

namespace prism::ops {

// How a group traverses a row: in pieces of `turns` times four elements per lane.
struct ScanCut {
  uint32_t group = 256;  // lanes
  uint32_t turns = 1;
  uint32_t subgroup = 0;  // lanes of a subgroup; 0: scans in shared memory
  bool by_four = false;   // loads and stores of four neighbours

  uint32_t piece() const { return group * 4 * turns; }
  std::string key() const;
};

// stored: the type of the sums in memory.
ScanCut scan_cut(const Rows& rows, const RowBinding& source, DType stored,
                 const DeviceInfo& device);

// Buffers: the source's, y. Params: length, the source's. Grid: one group for each row.
ir::Kernel cumsum_kernel(const RowBinding& source, DType stored, bool reverse, const ScanCut& cut);

}  // namespace prism::ops
