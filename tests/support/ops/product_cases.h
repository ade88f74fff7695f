// Random weights of any element type in device layout, activations, and float64 reference products.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/tail.h"
#include "prism/element_type.h"
#include "sample_kernels/sample_case_tools.h"

namespace prism::testing_support {

// Every supported weight type of a product.
std::vector<ElementType> all_weights();

// A dense rows x k matrix: the bytes of a buffer and their values.
struct Matrix {
  ElementType type = DType::f32;
  uint32_t rows = 0, k = 0;
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

// Block types: random codes and scales, in the GPU layout; plain types: values in [-1, 1).
Matrix random_matrix(kernels::CaseRandom& random, ElementType type, uint32_t rows, uint32_t k);

// The rows rounded as kernels do for block weights: 32 elements to bytes with one scale.
Matrix rounded_to_bytes(const Matrix& x);

// The epilogue of a product: + bias, then gate(product) times the second product (+ its bias), then
// + residual.
struct Following {
  bool bias = false, residual = false;
  std::optional<ScalarOp> gate = {};  // silu or gelu_tanh
  DType stored = DType::f32;          // type of the residual
};
// As a tail with the buffers bias, second bias, residual. Null if the epilogue is empty.
std::shared_ptr<const TailSpec> tail_of(const Following& following);

// A product and, for each result, the sum of the magnitudes of its terms: the scale of rounding
// errors.
struct Expected {
  std::vector<double> values, magnitudes;
};
// y[i][r] = sum over c of w[r][c] x[i][c], for row i of x and every row of w
Expected product(const Matrix& w, const Matrix& x);

// Empty if each got[i] is within bound * magnitudes[i] (plus rounding to the type) of the reference
// and the normalised mean square error is at most nmse; else one line that says where.
std::string compare_product(const std::vector<std::byte>& got, DType type, const Expected& want,
                            double bound, double nmse);

}  // namespace prism::testing_support
