// Dense products that a backend may have from its vendor: what is asked, and whether it makes
// sense.
//
// c = alpha * op(a) * op(b) + beta * c, for each of batch matrices, all row-major: a is m x k (k x
// m where transpose_a), b is k x n (n x k where transpose_b: the usual form of weights, a row an
// output), c is m x n. f16 and bf16 products are summed in f32, i8 ones in i32.
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
  // From one stored row to the next, in elements; 0: rows lie close together.
  uint64_t a_stride = 0, b_stride = 0, c_stride = 0;
  uint32_t batch = 1;
  // From one matrix to the next, in elements; 0: all of the batch share one (not for c).
  uint64_t a_batch = 0, b_batch = 0, c_batch = 0;
  float alpha = 1, beta = 0;      // beta 0: c is only written, whatever it holds
  bool rounded_operands = false;  // f32 operands may be rounded to 10 bits of fraction (tf32)

  uint32_t a_rows() const { return transpose_a ? k : m; }
  uint32_t a_columns() const { return transpose_a ? m : k; }
  uint32_t b_rows() const { return transpose_b ? n : k; }
  uint32_t b_columns() const { return transpose_b ? k : n; }
  bool is_empty() const { return m == 0 || n == 0 || batch == 0; }
  friend auto operator<=>(const NativeProduct&, const NativeProduct&) = default;
};

// The same with every stride written out. Throws kInvalidArgument where a stride is shorter than a
// row, where the matrices of c overlap, and for types that no product has.
NativeProduct checked(const NativeProduct& product);

// Bytes that the matrices of a checked product reach over.
struct ProductBytes {
  uint64_t a = 0, b = 0, c = 0;
};
ProductBytes product_bytes(const NativeProduct& product);

// "32 x 4096 x 11008, f16 x f16 to f16, b transposed, batch 4"
std::string describe(const NativeProduct& product);

}  // namespace prism
