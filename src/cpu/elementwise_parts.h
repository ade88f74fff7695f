// The parts of elementwise.cpp: a function for each register type. They are separate files so that
// they compile in parallel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types/scalar_op.h"

namespace prism::cpu {

// Each returns false if it does not implement op. f32 in vector code: arithmetic and comparisons,
// then functions computed in f32 and in f64 lanes.
bool apply_f32(ScalarOp op, const float* a, const float* b, void* out, size_t n);
bool apply_f32_functions(ScalarOp op, const float* a, const float* b, float* out, size_t n);
bool apply_f64(ScalarOp op, const double* a, const double* b, void* out, size_t n);
bool apply_i32(ScalarOp op, const int32_t* a, const int32_t* b, void* out, size_t n);
bool apply_i64(ScalarOp op, const int64_t* a, const int64_t* b, void* out, size_t n);

// Conversion of contiguous 16-bit floats in vector code. The bits are those of prism/dtype.h, but a
// signalling NaN may become quiet.
void f32_from_f16(const uint16_t* from, float* to, size_t n);
void f16_from_f32(const float* from, uint16_t* to, size_t n);
void f32_from_bf16(const uint16_t* from, float* to, size_t n);
void bf16_from_f32(const float* from, uint16_t* to, size_t n);

}  // namespace prism::cpu
