// Vectorised recurrences of one text: the scan over a matrix of state, and the short convolution.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prism::cpu {

// How a row changes the state; see prism/ops/recurrence.h.
enum class ScanRule : uint8_t { sums, sums_before, delta, moving };
enum class ScanDecay : uint8_t { head, key, element };

// The rows of one text and one head, over a range of columns of the state. Strides are in elements.
struct StateScan {
  ScanRule rule = ScanRule::sums;
  ScanDecay decay_kind = ScanDecay::head;
  size_t rows = 0, keys = 0, columns = 0;
  const float *q = nullptr, *k = nullptr;  // the first row of the head
  size_t q_stride = 0, k_stride = 0;
  const float* v = nullptr;  // the first row and column
  float* y = nullptr;
  size_t v_stride = 0, y_stride = 0;
  const float* gains = nullptr;  // by which v is multiplied, or null
  size_t gain_stride = 0;
  // One number, `keys` numbers, or the steps of the columns, by which v is multiplied.
  const float* decay = nullptr;
  size_t decay_stride = 0;
  const float* extra = nullptr;  // delta: beta; moving: a vector; element: rates [keys, columns]
  size_t extra_stride = 0;       // element: of a key
  const float* rates = nullptr;  // moving: by which that vector is multiplied
  size_t rates_stride = 0;
  float* state = nullptr;  // the first column of the first key
  size_t state_stride = 0;
};
void state_scan(const StateScan& scan);

// The rows of one text over a range of channels.
struct ShortConv {
  size_t rows = 0, channels = 0, taps = 0;
  const float* x = nullptr;
  size_t x_stride = 0;  // of rows
  float* y = nullptr;
  size_t stride = 0;              // of rows in y and the state
  const float* weight = nullptr;  // [channels, taps]
  const float* bias = nullptr;    // or null
  float* state = nullptr;
  bool silu = false;
  bool changes_state = true;
};
void short_conv(const ShortConv& conv);

}  // namespace prism::cpu
