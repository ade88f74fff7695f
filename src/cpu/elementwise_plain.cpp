// Functions of f64, i32 and i64 elements as plain loops that the compiler vectorises.
#include <cmath>
#include <limits>
#include <type_traits>

#include "cpu/elementwise_parts.h"

namespace prism::cpu {
namespace {

template <class T, class F>
bool map(const T* a, T* out, size_t n, F f) {
  for (size_t i = 0; i < n; ++i) out[i] = f(a[i]);
  return true;
}
template <class T, class F>
bool map(const T* a, const T* b, T* out, size_t n, F f) {
  for (size_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  return true;
}
template <class T, class F>
bool compare(const T* a, const T* b, void* out, size_t n, F f) {
  int32_t* truth = static_cast<int32_t*>(out);
  for (size_t i = 0; i < n; ++i) truth[i] = f(a[i], b[i]) ? 1 : 0;
  return true;
}

template <class T>
bool apply_any(ScalarOp op, const T* a, const T* b, void* out, size_t n) {
  T* to = static_cast<T*>(out);
  switch (op) {
    case ScalarOp::relu:
      return map(a, to, n, [](T x) { return x < 0 ? T(0) : x; });
    case ScalarOp::min:
      return map(a, b, to, n, [](T x, T y) { return y < x || y != y ? y : x; });
    case ScalarOp::max:
      return map(a, b, to, n, [](T x, T y) { return x < y || y != y ? y : x; });
    case ScalarOp::eq:
      return compare(a, b, out, n, [](T x, T y) { return x == y; });
    case ScalarOp::ne:
      return compare(a, b, out, n, [](T x, T y) { return x != y; });
    case ScalarOp::lt:
      return compare(a, b, out, n, [](T x, T y) { return x < y; });
    case ScalarOp::le:
      return compare(a, b, out, n, [](T x, T y) { return x <= y; });
    case ScalarOp::gt:
      return compare(a, b, out, n, [](T x, T y) { return x > y; });
    case ScalarOp::ge:
      return compare(a, b, out, n, [](T x, T y) { return x >= y; });
    default:
      return false;
  }
}

// Integer arithmetic wraps, which C++ guarantees only for unsigned types.
template <class T>
bool apply_int(ScalarOp op, const T* a, const T* b, void* out, size_t n) {
  using U = std::make_unsigned_t<T>;
  T* to = static_cast<T*>(out);
  switch (op) {
    case ScalarOp::neg:
      return map(a, to, n, [](T x) { return T(U(0) - U(x)); });
    case ScalarOp::abs:
      return map(a, to, n, [](T x) { return x < 0 ? T(U(0) - U(x)) : x; });
    case ScalarOp::sign:
      return map(a, to, n, [](T x) { return T((x > 0) - (x < 0)); });
    case ScalarOp::square:
      return map(a, to, n, [](T x) { return T(U(x) * U(x)); });
    case ScalarOp::add:
      return map(a, b, to, n, [](T x, T y) { return T(U(x) + U(y)); });
    case ScalarOp::sub:
      return map(a, b, to, n, [](T x, T y) { return T(U(x) - U(y)); });
    case ScalarOp::mul:
      return map(a, b, to, n, [](T x, T y) { return T(U(x) * U(y)); });
    case ScalarOp::div:
      // The lowest value divided by -1 would trap; it wraps to itself.
      return map(a, b, to, n, [](T x, T y) {
        return y == 0 ? T(0) : y == -1 ? T(U(0) - U(x)) : T(x / y);
      });
    default:
      return apply_any(op, a, b, out, n);
  }
}

double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

bool apply_double_functions(ScalarOp op, const double* a, double* to, size_t n) {
  switch (op) {
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  case ScalarOp::name:                                                                         \
    return map(a, to, n, [](double x) { return f64; });
#include "base/types/float_functions.inc"
    default:
      return false;
  }
}

}  // namespace

bool apply_f64(ScalarOp op, const double* a, const double* b, void* out, size_t n) {
  double* to = static_cast<double*>(out);
  switch (op) {
    case ScalarOp::neg:
      return map(a, to, n, [](double x) { return -x; });
    case ScalarOp::abs:
      return map(a, to, n, [](double x) { return std::abs(x); });
    case ScalarOp::sign:
      return map(a, to, n, [](double x) { return std::abs(x) > 0 ? std::copysign(1.0, x) : x; });
    case ScalarOp::square:
      return map(a, to, n, [](double x) { return x * x; });
    case ScalarOp::add:
      return map(a, b, to, n, [](double x, double y) { return x + y; });
    case ScalarOp::sub:
      return map(a, b, to, n, [](double x, double y) { return x - y; });
    case ScalarOp::mul:
      return map(a, b, to, n, [](double x, double y) { return x * y; });
    case ScalarOp::div:
      return map(a, b, to, n, [](double x, double y) { return x / y; });
    case ScalarOp::pow:
      return map(a, b, to, n, [](double x, double y) { return std::pow(x, y); });
    default:
      return apply_double_functions(op, a, to, n) || apply_any(op, a, b, out, n);
  }
}

bool apply_i32(ScalarOp op, const int32_t* a, const int32_t* b, void* out, size_t n) {
  return apply_int(op, a, b, out, n);
}

bool apply_i64(ScalarOp op, const int64_t* a, const int64_t* b, void* out, size_t n) {
  return apply_int(op, a, b, out, n);
}

}  // namespace prism::cpu
