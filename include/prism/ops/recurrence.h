// Ops of recurrent layers: each text has a state that its rows read and change in order.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// In all of these, `texts` (i32 [texts, 4]) is device data that says which rows of a batch belong
// to which text: the first row, the number of rows (0: none; the state is left alone), 0, and the
// index of the state. Texts have different states and rows. Rows of no text are after all others
// and give zeros. States (f32) are changed in place: they must be evaluated. A text whose rows or
// state are out of range is an error on the CPU and undefined on other devices. All values are f32.
// There are no gradients.
struct Recurrence {
  Tensor y;
  Tensor state;  // the memory of the state, with the change
};

struct ConvSettings {
  bool silu = false;  // of the sum
};

// A causal convolution of each channel over the rows of a text:
//   y[row, c] = bias[c] + sum over t of weight[c, t] * x[row - taps + 1 + t, c]
// x [rows, channels], weight [channels, taps], bias [channels] or an empty tensor; the state
// [states, taps - 1, channels] holds the rows before the first, the oldest first. At least 2 taps.
// With several filters, weight [filters, channels, taps] and no bias, y is [filters, rows,
// channels].
Recurrence short_conv(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const Tensor& state, const Tensor& texts, const ConvSettings& settings = {});

struct ScanSettings {
  bool reads_before = false;  // y is read from the state before the row changes it
  // Which of fewer key heads belongs to head h: h % key_heads, else h / (heads / key_heads).
  bool tiled_keys = false;
  Tensor gains = {};  // f32 [rows, heads]: v is multiplied by these; empty: it is not
};

// A matrix S [keys, values] for each head, changed by every row:
//   S = decay * S + k v^T,  y = q^T S
// q and k [rows, key_heads, keys], v [rows, heads, values], decay [rows, heads] or [rows, heads,
// keys]; the state [states, heads, keys, values] holds S. The result is [rows, heads, values].
Recurrence state_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                      const Tensor& state, const Tensor& texts, const ScanSettings& settings = {});

// The same with a step for each column, which is a gain too, and a decay for each element of S:
//   S = exp(steps * rates) * S + k (steps * v)^T,  y = q^T S
// steps [rows, heads, values], rates [heads, keys, values].
Recurrence selective_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& steps,
                          const Tensor& rates, const Tensor& state, const Tensor& texts);

// The gated delta rule: what S already holds for k is replaced by v, in part.
//   S = decay * S,  S = S + k (beta (v - k^T S))^T,  y = q^T S
// beta [rows, heads]; the others as in state_scan.
Recurrence delta_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                      const Tensor& beta, const Tensor& state, const Tensor& texts,
                      bool tiled_keys = false);

// The rule of RWKV 7: what S holds for a vector is subtracted, in part.
//   S = decay * S + k v^T - (rates * from) (from^T S)^T,  y = q^T S
// from and rates [rows, heads, keys]; the others as in state_scan.
Recurrence moving_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                       const Tensor& from, const Tensor& rates, const Tensor& state,
                       const Tensor& texts);

}  // namespace prism

#pragma GCC visibility pop
