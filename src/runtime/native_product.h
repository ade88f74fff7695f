// Dense products that a vendor library may provide: their description and validation.
//
// c = alpha * op(a) * op(b) + beta * c for each matrix of the batch, all row-major. a is m x k (k x
// m if transpose_a). b is k x n (n x k if transpose_b, the usual layout of weights: one row per
// output). c is m x n. f16 and bf16 products accumulate in f32, i8 products in i32.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "prism/dtype.h"

namespace prism {

struct NativeProduct {
  uint32_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType a_type = DType::f16, b_type = DType::f16, c_type = DType::f16;
  // Row strides in elements; 0: contiguous rows.
  uint64_t a_stride = 0, b_stride = 0, c_stride = 0;
  uint32_t batch = 1;
  // Batch strides in elements; 0: the whole batch shares one matrix (not allowed for c).
  uint64_t a_batch = 0, b_batch = 0, c_batch = 0;
  float alpha = 1, beta = 0;      // beta 0: c is write-only and may hold anything
  bool rounded_operands = false;  // f32 operands may be rounded to a 10-bit fraction (tf32)

  uint32_t a_rows() const { return transpose_a ? k : m; }
  uint32_t a_columns() const { return transpose_a ? m : k; }
  uint32_t b_rows() const { return transpose_b ? n : k; }
  uint32_t b_columns() const { return transpose_b ? k : n; }
  bool is_empty() const { return m == 0 || n == 0 || batch == 0; }
  friend auto operator<=>(const NativeProduct&, const NativeProduct&) = default;
};

// Returns the product with all strides filled in. Throws kInvalidArgument if a stride is shorter
// than a row, if the matrices of c overlap, or for unsupported types.
NativeProduct checked(const NativeProduct& product);

// Bytes that the matrices of a checked product span.
struct ProductBytes {
  uint64_t a = 0, b = 0, c = 0;
};
ProductBytes product_bytes(const NativeProduct& product);

// "32 x 4096 x 11008, f16 x f16 to f16, b transposed, batch 4"
std::string describe(const NativeProduct& product);

}  // namespace prism
