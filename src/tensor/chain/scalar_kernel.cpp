// The elementwise functions in the kernel language, and conversions between element types.
#include <array>

#include <fmt/format.h>

#include "prism/error.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/chain/scalar_kernel_f64.h"

namespace prism {

using namespace dsl;

namespace {

Value polynomial(Value x, std::span<const float> coefficients) {  // lowest power first
  Value sum = constant(f32, static_cast<double>(coefficients.back()));
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, coefficients[i]);
  return sum;
}

// erf(x) / x as a polynomial in x^2 for |x| < 1, with an error below 1.2e-9. Both fits are minimax
// fits of the float64 functions.
constexpr std::array<float, 7> kErfNear = {
    1.1283791065216064f,   -0.3761262595653534f,    0.11283600330352783f,  -0.026854444295167923f,
    0.005189535208046436f, -0.0008020841050893068f, 7.889119297033176e-05f};
// -log(1 - erf(t)) for t from 0.95 to 9.3, beyond which 1 - erf(t) underflows in f32. The error is
// below 1.4e-6.
constexpr float kErfEnd = 9.3f;
constexpr std::array<float, 11> kErfFar = {
    0.00045066242455504835f, 1.127606987953186f,      0.6354348659515381f,
    0.1075214296579361f,     -0.02545553259551525f,   0.004606748465448618f,
    -0.0006141879712231457f, 5.786748806713149e-05f,  -3.6236820051271934e-06f,
    1.3475307980570506e-07f, -2.2453148229573117e-09f};

// 1 + erf(x) with full relative accuracy, also near 0.
Value one_plus_erf(Value x) {
  const Value t = min(abs(x), kErfEnd);
  const Value tail = exp(-polynomial(t, kErfFar));
  const Value far = select(x < 0.0f, tail, 2.0f - tail);
  const Value near = fma(x, polynomial(x * x, kErfNear), 1.0f);
  return select(t < 1.0f, near, far);
}

Value erf_f32(Value x) {
  const Value t = min(abs(x), kErfEnd);
  const Value far = 1.0f - exp(-polynomial(t, kErfFar));
  const Value near = x * polynomial(x * x, kErfNear);
  return select(t < 1.0f, near, select(x < 0.0f, -far, far));
}

// exp2(b log2 |a|) with the sign and the special cases of C's pow.
Value pow_f32(Value a, Value b) {
  const Value magnitude = exp2(b * log2(abs(a)));
  const Value whole = floor(b) == b;
  const Value odd = whole && floor(b * 0.5f) * 2.0f != b;
  const Value not_a_number = constant_bits(f32, 0x7fc00000u);
  const Value is_negative = (bitcast(u32, a) >> 31u) != 0u;  // includes -0
  const Value finite = abs(a) < constant_bits(f32, 0x7f800000u);
  const Value signed_result = select(a < 0.0f && finite && !whole, not_a_number,
                                     select(is_negative && odd, -magnitude, magnitude));
  const Value one = b == 0.0f || a == 1.0f || (a == -1.0f && abs(b) > 3.0e38f);
  return select(one, 1.0f, select(is_nan(a) || is_nan(b), a + b, signed_result));
}

Value sigmoid(Value x) {
  const Value one = constant(x.element(), 1.0);
  return one / (one + exp(-x));
}

Value with_nan(Value a, Value b, Value result) {
  if (a.element() == f32) return select(is_nan(a) || is_nan(b), a + b, result);
  if (a.element() == f64) return select(a != a || b != b, a + b, result);
  return result;
}

Value zero_of(Value like) {
  return is_float(like.element()) ? constant(like.element(), 0.0) : constant(like.element(), 0);
}
Value one_of(Value like) {
  return is_float(like.element()) ? constant(like.element(), 1.0) : constant(like.element(), 1);
}

Value inverse_root(Value x) { return x.element() == f64 ? one_of(x) / sqrt(x) : rsqrt(x); }

// The factor x / (u - 1) corrects the rounding of u = 1 + x, unless u is 1 or x.
Value log1p(Value x) {
  const Value one = one_of(x), u = x + one;
  return select(u == one, x, select(u == x, log(u), log(u) * (x / (u - one))));
}

Value erf(Value x) { return x.element() == f64 ? erf_f64(x) : select(is_nan(x), x, erf_f32(x)); }

Value gelu(Value x) {
  if (x.element() == f64) return 0.5 * x * one_plus_erf_f64(x * 0.70710678118654752);
  return 0.5f * x * one_plus_erf(x * 0.70710678118654752f);
}

// 0.5 (1 + tanh(u)) equals sigmoid(2u), which stays accurate near 0.
Value gelu_tanh(Value x) {
  const Value twice = x.element() == f64 ? 1.5957691216057308 * (x * x * x * 0.044715 + x)
                                         : 1.5957691216057308f * fma(x * x * x, 0.044715f, x);
  return x * sigmoid(twice);
}

}  // namespace

Value emit_scalar_op(ScalarOp op, Value a, Value b, Value c) {
  const DType type = a.element();
  switch (op) {
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  case ScalarOp::name: {                                                                       \
    const Value x = a;                                                                         \
    return kernel;                                                                             \
  }
#include "base/types/float_functions.inc"
    case ScalarOp::neg:
      return -a;
    case ScalarOp::abs:
      return abs(a);
    case ScalarOp::sign: {
      const Value zero = zero_of(a), one = one_of(a);
      const Value result = select(a > zero, one, select(a < zero, -one, zero));
      if (type == f32) return select(is_nan(a), a, result);
      return type == f64 ? select(a != a, a, result) : result;
    }
    case ScalarOp::relu: {
      const Value zero = zero_of(a);
      return select(a < zero, zero, a);
    }
    case ScalarOp::square:
      return a * a;
    case ScalarOp::logical_not:
      return !a;
    case ScalarOp::add:
      return a + b;
    case ScalarOp::sub:
      return a - b;
    case ScalarOp::mul:
      return a * b;
    case ScalarOp::div: {
      if (is_float(type)) return a / b;
      const Value zero = zero_of(b);
      const Value divided = div_trunc(a, select(b == zero, one_of(b), b));
      return select(b == zero, zero, divided);
    }
    case ScalarOp::pow:
      return type == f64 ? pow_f64(a, b) : pow_f32(a, b);
    case ScalarOp::min:
      return with_nan(a, b, min(a, b));
    case ScalarOp::max:
      return with_nan(a, b, max(a, b));
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    case ScalarOp::gt:
      return a > b;
    case ScalarOp::ge:
      return a >= b;
    case ScalarOp::logical_and:
      return a && b;
    case ScalarOp::logical_or:
      return a || b;
    case ScalarOp::select:
      return select(a, b, c);
  }
  return a;
}

DType kernel_type(DType stored) { return stored == b1 ? u8 : stored; }

Value from_loaded(Value loaded, DType stored) {
  if (stored == b1) return loaded != 0u;
  return loaded.element() == u32 ? bitcast(i32, loaded) : loaded;
}

Value load_element(const In& from, Value index, DType stored) {
  return from_loaded(from[index], stored);
}

Value to_stored(Value value, DType stored) {
  if (stored == b1) return select(value, constant(u32, 1), constant(u32, 0));
  const DType wanted = widened(stored);
  if (wanted == u32 && value.element() == i32) return bitcast(u32, value);
  return value.element() == wanted ? value : cast(wanted, value);
}

Value emit_cast(Value value, DType stored) {
  const DType type = register_type(stored), from = value.element();
  if (stored == b1) return from == b1 ? value : value != zero_of(value);
  if (from == b1) value = select(value, constant(i32, 1), constant(i32, 0));
  Value wide = value.element() == type ? value : cast(type, value);
  switch (stored) {
    case f16:
      return unpack_f16(pack_f16(vec(wide, constant(f32, 0.0))))[0];
    case bf16: {
      const Value bits = bitcast(u32, wide);
      const Value rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u;
      return select(is_nan(wide), wide, bitcast(f32, rounded));
    }
    // No pair of shifts: one driver's compiler miscompiles it.
    case i8:
      return ((wide & 0xff) ^ 0x80) - 0x80;
    case i16:
      return ((wide & 0xffff) ^ 0x8000) - 0x8000;
    case u8:
      return wide & 0xff;
    default:
      return wide;
  }
}

std::string lacks_type(const ir::Capabilities& capabilities, DType stored) {
  if (stored == f64 && !capabilities.math_f64) return "it has no f64 arithmetic";
  if (stored == i64 && !capabilities.math_i64) return "it has no 64-bit integers";
  return {};
}

}  // namespace prism
