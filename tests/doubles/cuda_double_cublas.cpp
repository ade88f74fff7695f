// The double's cuBLASLt: f32, f16 and bf16 matrix products by plain loops, in stream order,
// recorded while the stream records.
#include <bit>
#include <cmath>
#include <cstring>

#include "doubles/cuda_double_state.h"

namespace prism::test::cuda_double {
namespace {

constexpr int kR32F = 0, kR16F = 2, kR16BF = 14;      // cudaDataType
constexpr int kNotSupported = 15, kInvalid = 7;       // cublasStatus_t
constexpr int kTransposeA = 3, kTransposeB = 4;       // cublasLtMatmulDescAttributes_t
constexpr int kBatchCount = 5, kBatchOffset = 6;      // cublasLtMatrixLayoutAttribute_t
constexpr uint64_t kAlgorithm = 0x646f75626c65646fu;  // in the first word of every algorithm

struct Description {
  int transpose_a = 0, transpose_b = 0;
};

struct Matrix {  // column-major
  int type = kR32F;
  uint64_t rows = 0, columns = 0;
  int64_t stride = 0, batch_stride = 0;
  int batch = 1;

  size_t element_bytes() const { return type == kR32F ? 4 : 2; }
  size_t bytes() const {
    const auto last = static_cast<uint64_t>((batch - 1) * batch_stride) +
                      (columns - 1) * static_cast<uint64_t>(stride) + rows;
    return last * element_bytes();
  }
  size_t place(int z, uint64_t row, uint64_t column) const {
    return static_cast<size_t>(z * batch_stride) + column * static_cast<size_t>(stride) + row;
  }
};

double load(const Matrix& matrix, const unsigned char* data, size_t place) {
  if (matrix.type == kR32F) {
    float value = 0;
    std::memcpy(&value, data + place * 4, 4);
    return value;
  }
  uint16_t half = 0;
  std::memcpy(&half, data + place * 2, 2);
  if (matrix.type == kR16BF) return std::bit_cast<float>(uint32_t{half} << 16);
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : HUGE_VAL)
                      : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                     : std::ldexp(fraction, -24);
  return half >> 15 ? -size : size;
}

uint16_t half_of(float value) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  const int exponent = size < std::ldexp(1, -14) ? -14 : std::ilogb(size);
  const int units = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // A carry propagates into the exponent.
  return static_cast<uint16_t>(sign | (units < 1024 ? units : (exponent + 14) * 1024 + units));
}

void store(const Matrix& matrix, unsigned char* data, size_t place, double value) {
  const auto single = static_cast<float>(value);
  if (matrix.type == kR32F) {
    std::memcpy(data + place * 4, &single, 4);
  } else if (matrix.type == kR16F) {
    const uint16_t half = half_of(single);
    std::memcpy(data + place * 2, &half, 2);
  } else {
    const auto word = std::bit_cast<uint32_t>(single);
    const auto half = static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
    std::memcpy(data + place * 2, &half, 2);
  }
}

struct Product {
  Description how;
  Matrix a, b, c;
  float alpha = 1, beta = 0;
  uint64_t from_a = 0, from_b = 0, to = 0;

  bool fits() const {
    const uint64_t k = how.transpose_a ? a.rows : a.columns;
    return (how.transpose_a ? a.columns : a.rows) == c.rows &&
           (how.transpose_b ? b.rows : b.columns) == c.columns &&
           (how.transpose_b ? b.columns : b.rows) == k && a.type == b.type &&
           (c.type == kR32F || c.type == a.type);
  }

  void run() const {
    ++counter("products");
    if (!allocation_of(from_a, a.bytes()) || !allocation_of(from_b, b.bytes()) ||
        !allocation_of(to, c.bytes())) {
      state().lost = kIllegalAddress;
      return;
    }
    const auto* left = reinterpret_cast<const unsigned char*>(from_a);
    const auto* right = reinterpret_cast<const unsigned char*>(from_b);
    auto* result = reinterpret_cast<unsigned char*>(to);
    const uint64_t k = how.transpose_a ? a.rows : a.columns;
    for (int z = 0; z < c.batch; ++z) {
      for (uint64_t row = 0; row < c.rows; ++row) {
        for (uint64_t column = 0; column < c.columns; ++column) {
          double sum = 0;
          for (uint64_t i = 0; i < k; ++i)
            sum += load(a, left, how.transpose_a ? a.place(z, i, row) : a.place(z, row, i)) *
                   load(b, right, how.transpose_b ? b.place(z, column, i) : b.place(z, i, column));
          const size_t place = c.place(z, row, column);
          const double before = beta == 0 ? 0 : beta * load(c, result, place);
          store(c, result, place, alpha * sum + before);
        }
      }
    }
  }
};

}  // namespace
}  // namespace prism::test::cuda_double

using namespace prism::test::cuda_double;

extern "C" {

struct DoubleAlgorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct DoubleHeuristic {  // cublasLtMatmulHeuristicResult_t
  DoubleAlgorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

size_t cublasLtGetVersion() { return 130000; }

int cublasLtCreate(void** handle) {
  static int one = 0;
  *handle = &one;
  return 0;
}
int cublasLtDestroy(void*) { return 0; }

int cublasLtMatmulDescCreate(Description** description, int, int) {
  *description = new Description;
  return 0;
}
int cublasLtMatmulDescDestroy(Description* description) {
  delete description;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Description* description, int which, const void* value,
                                   size_t bytes) {
  if (bytes != 4 || (which != kTransposeA && which != kTransposeB)) return kInvalid;
  std::memcpy(which == kTransposeA ? &description->transpose_a : &description->transpose_b, value,
              4);
  return 0;
}

int cublasLtMatrixLayoutCreate(Matrix** matrix, int type, uint64_t rows, uint64_t columns,
                               int64_t stride) {
  *matrix = new Matrix{type, rows, columns, stride};
  return 0;
}
int cublasLtMatrixLayoutDestroy(Matrix* matrix) {
  delete matrix;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Matrix* matrix, int which, const void* value, size_t bytes) {
  if (which == kBatchCount && bytes == 4)
    std::memcpy(&matrix->batch, value, 4);
  else if (which == kBatchOffset && bytes == 8)
    std::memcpy(&matrix->batch_stride, value, 8);
  else
    return kInvalid;
  return 0;
}

int cublasLtMatmulPreferenceCreate(void** preference) { return cublasLtCreate(preference); }
int cublasLtMatmulPreferenceDestroy(void*) { return 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }

int cublasLtMatmulAlgoGetHeuristic(void*, const Description* how, const Matrix* a, const Matrix* b,
                                   const Matrix* c, const Matrix*, void*, int, DoubleHeuristic* to,
                                   int* count) {
  const auto known = [](int type) { return type == kR32F || type == kR16F || type == kR16BF; };
  *count = 0;
  if (!known(a->type) || !Product{*how, *a, *b, *c}.fits()) return kNotSupported;
  *to = {};
  to->algorithm.data[0] = kAlgorithm;
  *count = 1;
  return 0;
}

int cublasLtMatmul(void*, const Description* how, const void* alpha, uint64_t a,
                   const Matrix* a_layout, uint64_t b, const Matrix* b_layout, const void* beta,
                   uint64_t c, const Matrix* c_layout, uint64_t d, const Matrix*,
                   const DoubleAlgorithm* algorithm, uint64_t, size_t, Stream* stream) {
  const Lock lock(mutex());
  if (enter() || !state().streams.count(stream)) return kInvalid;
  Product product{*how, *a_layout, *b_layout, *c_layout};
  if (algorithm->data[0] != kAlgorithm || c != d || !product.fits()) return kInvalid;
  std::memcpy(&product.alpha, alpha, 4);
  std::memcpy(&product.beta, beta, 4);
  product.from_a = a;
  product.from_b = b;
  product.to = d;
  give(
      *stream, [product] { product.run(); }, false);
  return 0;
}

}  // extern "C"
