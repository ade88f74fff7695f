// What the kernels of scans share: buffers, parameters, and the part of the state of a group.
#pragma once

#include <optional>

#include "ops/recurrence/state_scan_kernel.h"
#include "ops/recurrence/text_rows.h"
#include "prism/kernel.h"

namespace prism::ops {

// Declares the buffers and parameters of scan_kernel.
struct ScanOperands {
  // columns: of the state, for each group.
  ScanOperands(const ScanKernel& kind, uint32_t columns);

  // Where the vector `from` of a head's row starts in *extra, and its rates in rates().
  dsl::Value from_at(const dsl::Value& of_head) const;
  dsl::Value rates_at(const dsl::Value& of_head) const;
  const dsl::In& rates() const { return own_rates ? *own_rates : *extra; }
  // Where the state of this group's text and head starts.
  dsl::Value state_at() const { return (texts.state() * heads + head) * scan.keys; }
  // Makes a column of the rows after those of all texts zero.
  void clear_other_rows(const dsl::Value& column) const;

  const ScanKernel& scan;
  dsl::Array state;
  dsl::In q, k, v, decays;
  std::optional<dsl::In> extra, own_rates;
  KernelTexts texts;
  dsl::Array y;
  dsl::Value rows, heads, key_heads, values, text_count;
  RowPlaces of_q, of_k, of_v;
  dsl::Value head, key_head, first_column;
  dsl::Value first, count;  // rows of the text
};

}  // namespace prism::ops
