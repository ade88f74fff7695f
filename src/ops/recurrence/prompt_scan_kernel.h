// The kernel of scans over a matrix of state for texts with many rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ops/recurrence/state_scan_kernel.h"
#include "prism/capabilities.h"

namespace prism::ops {

struct PromptScanKernel {
  ScanKernel scan;
  // Four neighbours in rows of q and k, or of what belongs to columns, can be copied at once.
  bool key_quads = false, value_quads = false;
  uint32_t columns = 32;   // of the state, for each group
  uint32_t each = 1;       // of these, for each lane
  uint32_t staged = 16;    // rows in shared memory at once
  uint32_t subgroup = 32;  // of the device
  // At least so much shared memory, so that no two groups are on one processor; 0: no matter.
  uint32_t alone_bytes = 0;
  uint32_t parts = 1;     // lanes that share columns, all in one subgroup
  uint32_t unrolled = 8;  // rows whose results are added up over lanes together
  uint32_t lanes() const { return columns / each * parts; }
  uint32_t staged_words() const;
  std::string key() const;
};

// The kernel for so many columns of all heads and texts, or none if the device or the number of
// keys does not suit it. processors: of the device.
std::optional<PromptScanKernel> prompt_scan(const ScanKernel& scan, uint32_t heads, uint32_t values,
                                            uint32_t texts, const ir::Capabilities& capabilities,
                                            uint32_t processors);

// Buffers, parameters and groups: those of scan_kernel, with tiles of p.columns columns.
ir::Kernel prompt_scan_kernel(const PromptScanKernel& p);

}  // namespace prism::ops
