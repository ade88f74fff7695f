// Random weights of any element type as devices hold them, activations, and float64 products to
// compare kernels with.
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

// Every type that weights of a product may have.
std::vector<ElementType> all_weights();

// rows x k, dense: the bytes that go into a buffer, and what they mean.
struct Matrix {
  ElementType type = DType::f32;
  uint32_t rows = 0, k = 0;
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

// Block types: random codes and scales, in planes; plain types: values in [-1, 1).
Matrix random_matrix(kernels::CaseRandom& random, ElementType type, uint32_t rows, uint32_t k);

// The rows as kernels round them for block weights: 32 elements to bytes with one scale.
Matrix rounded_to_bytes(const Matrix& x);

// What follows a product in its launch: + bias, then the gate of it times the product beside it (+
// its bias), then + residual.
struct Following {
  bool bias = false, residual = false;
  std::optional<ScalarOp> gate = {};  // silu or gelu_tanh
  DType stored = DType::f32;          // of the residual
};
// As a tail: its buffers are bias, that of the second product, residual. Null where nothing does.
std::shared_ptr<const TailSpec> tail_of(const Following& following);

// A product and, for each result, the sum of the magnitudes of its terms: what rounding errors are
// measured against.
struct Expected {
  std::vector<double> values, magnitudes;
};
// y[i][r] = sum over c of w[r][c] x[i][c], for row i of x and every row of w
Expected product(const Matrix& w, const Matrix& x);

// Empty when each got[i] is within bound * magnitudes[i] (and rounding to the type) of the
// reference and the normalised mean square error is at most nmse; else a line that says where.
std::string compare_product(const std::vector<std::byte>& got, DType type, const Expected& want,
                            double bound, double nmse);

}  // namespace prism::testing_support
