// The C++ types in which ops compute on the CPU.
//
// Each function calls f with a value of that type, which f uses only for its type:
//   with_float(type, [&](auto sample) { run<decltype(sample)>(call); });
#pragma once

#include <cstdint>

#include "prism/dtype.h"

namespace prism {

// type: a float type. double for f64, float for f32 and narrower ones.
template <class Function>
void with_float(DType type, const Function& f) {
  if (type == DType::f64)
    f(double{});
  else
    f(float{});
}

// type: a register type. float, double, int32_t or int64_t.
template <class Function>
void with_register(DType type, const Function& f) {
  if (type == DType::i32)
    f(int32_t{});
  else if (type == DType::i64)
    f(int64_t{});
  else
    with_float(type, f);
}

// type: any plain type. Floats as in with_float; int64_t for integers, whose sums wrap when they
// are stored.
template <class Function>
void with_sum(DType type, const Function& f) {
  if (is_float(type))
    with_float(type, f);
  else
    f(int64_t{});
}

}  // namespace prism
