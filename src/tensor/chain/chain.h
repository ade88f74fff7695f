// Chains: compositions of elementwise functions as data. The CPU runs a chain over pieces that fit
// its cache; other devices run a kernel generated from it. The planner fuses chains.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types/scalar_op.h"
#include "prism/dtype.h"

namespace prism {

// The type in which a stored element is computed: f32 (f16, bf16, f32), f64, i32 (narrow integers),
// i64, b1.
DType register_type(DType stored);

struct Chain {
  enum class Kind : uint8_t {
    input,     // element of inputs[index]
    constant,  // a number: a kernel parameter, so other numbers use the same kernel
    apply,     // op of values a, b, c
    cast,      // value a rounded or wrapped to the stored type, then widened again
  };
  struct Step {
    Kind kind = Kind::input;
    ScalarOp op = ScalarOp::add;
    DType type = DType::f32;       // of the result: a register type
    DType stored = DType::f32;     // of a cast, and of an input
    uint16_t a = 0, b = 0, c = 0;  // earlier steps
    uint16_t index = 0;            // of an input
    double number = 0;             // of a constant
    bool operator==(const Step&) const = default;
  };

  std::vector<DType> inputs;  // as stored
  std::vector<Step> steps;
  uint16_t result = 0;        // the step that gives the chain's value
  DType output = DType::f32;  // as stored

  size_t constants() const;
  // Identifies the kernel: everything except the values of constants.
  std::string key() const;
  std::string text() const;  // readable: "silu(x0) * x1"

  // --- construction
  uint16_t add_input(DType stored);  // the step that loads it
  uint16_t add_constant(double number, DType type);
  uint16_t add_cast(uint16_t a, DType stored);
  uint16_t add_apply(ScalarOp op, uint16_t a, uint16_t b = 0, uint16_t c = 0);
};

// The consumer with one input computed by the producer. Inputs: the consumer's other inputs, then
// the producer's.
Chain joined(const Chain& consumer, size_t input, const Chain& producer);

// The chain after constant folding and removal of unused steps.
Chain simplified(const Chain& chain);

// Applies op to one element: values as doubles, integers exact up to 2^53. Used to fold constants.
double evaluate(ScalarOp op, DType type, double a, double b = 0, double c = 0);

}  // namespace prism
