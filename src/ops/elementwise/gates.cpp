// Gated activations as elementwise chains, which the planner fuses with their neighbours.
#include "prism/ops/gates.h"

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/ops/elementwise.h"

namespace prism {

namespace {

void check(const char* op, const Tensor& gate, const Tensor& up) {
  if (gate && up && gate.shape() == up.shape()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: gate {} and up {}; both must have one shape", op,
                          gate.shape().text(), up.shape().text()));
}

int64_t half(const char* op, const Tensor& both) {
  if (both && both.rank() > 0 && both.size(-1) % 2 == 0) return both.size(-1) / 2;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} has no last axis of two equal halves", op, both.shape().text()));
}

}  // namespace

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  check("swiglu", gate, up);
  return silu(gate) * up;
}

Tensor geglu(const Tensor& gate, const Tensor& up, bool exact) {
  check("geglu", gate, up);
  return (exact ? gelu(gate) : gelu_tanh(gate)) * up;
}

Tensor swiglu(const Tensor& both) {
  const int64_t n = half("swiglu", both);
  return swiglu(both.slice(-1, 0, n), both.slice(-1, n, 2 * n));
}

Tensor geglu(const Tensor& both, bool exact) {
  const int64_t n = half("geglu", both);
  return geglu(both.slice(-1, 0, n), both.slice(-1, n, 2 * n), exact);
}

}  // namespace prism
