// Random expressions for each type of value.
#include "support/kernels/random_values.h"

namespace prism::test {

using namespace dsl;

namespace {

Value splat_like(Value like, double number) {
  return splat(constant(like.element(), number), like.type().lanes);
}

bool is_wide(DType type) { return dtype_bytes(type) == 8; }

}  // namespace

Value RandomValues::tame(Value value, Value otherwise) {
  const bool half = value.element() == f16;
  const Value size = abs(value);
  const Value small_enough = size < splat_like(value, half ? 1024.0 : 0x1p20);
  const Value large_enough =
      (size > splat_like(value, half ? 0x1p-8 : 0x1p-20)) | (value == splat_like(value, 0));
  return select(small_enough & large_enough, value, otherwise);
}

Value RandomValues::plain_zero(Value value) {
  const Value bits = bitcast(u32, value);
  return bitcast(f32, select(bits == 0x80000000u, 0u, bits));
}

void RandomValues::release(Mark mark) {
  while (log_.size() > mark.log) {
    pool_[log_.back()].pop_back();
    log_.pop_back();
  }
  uniform_.erase(uniform_.begin() + static_cast<std::ptrdiff_t>(mark.uniform), uniform_.end());
}

ir::Type RandomValues::any_type() {
  const uint32_t choice = random_.below(100);
  const uint8_t lanes = random_.chance(65) ? 1 : random_.one_of<uint8_t>({2, 4});
  if (half_ && choice < 10) return {f16, lanes};
  if (wide_ && choice < 30) return {random_.one_of({i64, u64, f64}), lanes};
  return {random_.one_of({u32, u32, i32, i32, f32, f32, b1}), lanes};
}

Value RandomValues::scalar_constant(DType type) {
  if (type == b1) return constant(b1, static_cast<int>(random_.below(2)));
  if (is_float(type)) {
    // Never -1: compilers turn a product with it into a negation, which Intel's CPU compiler loses
    // across barriers (the printer works around explicit negations only).
    const double number = random_.one_of({0.0, 1.0, -3.0, 0.5, -2.5, 3.0, 0.1, 100.25, 7.0});
    const double any = (random_.below(2001) - 1000.0) / 16.0;
    return constant(type, random_.chance(50) || any == -1.0 ? number : any);
  }
  const uint64_t edges[] = {0,      1,      2,          3,          5,          7,
                            31,     32,     33,         0x7f,       0x80,       0xff,
                            0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  const uint64_t edge = edges[random_.below(std::size(edges))];
  const uint64_t low = random_.chance(70) ? edge : random_.word();
  if (!is_wide(type)) return constant_bits(type, low);
  // Includes all ones and the 64-bit sign.
  return constant_bits(
      type,
      random_.chance(50)
          ? (low | uint64_t(random_.one_of({0u, 0x80000000u, 0xffffffffu, 0x7fffffffu})) << 32)
          : low);
}

Value RandomValues::constant_of(ir::Type type) {
  const Value first = scalar_constant(type.element);
  if (type.lanes == 1) return first;
  if (random_.chance(50)) return splat(first, type.lanes);
  const Value second = scalar_constant(type.element);
  return type.lanes == 2 ? vec(first, second)
                         : vec(first, second, first, scalar_constant(type.element));
}

Value RandomValues::any(ir::Type type) {
  const auto& known = pool_[key(type)];
  if (!known.empty() && !random_.chance(12)) {
    // Prefers recent values, so that results depend on long chains.
    const uint32_t count = static_cast<uint32_t>(known.size());
    return known[random_.chance(50) ? count - 1 - random_.below(std::min(count, 4u))
                                    : random_.below(count)];
  }
  if (type.lanes > 1 && random_.chance(60)) {
    const Value a = any(type.element), b = any(type.element);
    return type.lanes == 2 ? vec(a, b) : vec(a, b, any(type.element), a);
  }
  return constant_of(type);
}

Value RandomValues::uniform() {
  if (uniform_.empty() || random_.chance(20)) return constant(u32, random_.below(9));
  return uniform_[random_.below(static_cast<uint32_t>(uniform_.size()))];
}

Value RandomValues::wild_float() {
  switch (random_.below(4)) {
    case 0:
      return constant_bits(f32, random_.one_of({0x7fc00000u, 0x7f800000u, 0xff800000u, 0x80000000u,
                                                0x4f000000u, 0xcf000000u, 0xcf000001u, 0x4effffffu,
                                                0x4f800000u, 0x4f7fffffu, 0xbf7fffffu}));
    // Arbitrary bits, except subnormal numbers: devices may flush those to zero.
    case 1: {
      const Value bits = any(u32);
      return bitcast(f32, select((bits & 0x7f800000u) == 0u, bits & 0x80000000u, bits));
    }
    case 2:
      return cast(f32, any(random_.one_of({u32, i32}))) * scalar_constant(f32);
    default:
      return any(f32);
  }
}

void RandomValues::grow() {
  const ir::Type type = any_type();
  Value made = constant(u32, 0);
  if (random_.chance(22))
    made = converted(type);
  else if (type.element == b1)
    made = truth(type.lanes);
  else if (is_float(type.element))
    made = floating(type);
  else if (type == ir::Type{u32, 1} && random_.chance(45))
    made = word_operation();
  else
    made = integer(type);
  keep(made);
}

Value RandomValues::integer(ir::Type type) {
  const Value a = any(type), b = any(type);
  const bool word = !is_wide(type.element);
  switch (random_.below(20)) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return div_trunc(a, b);
    case 4:
      return rem_trunc(a, b);
    case 5:
      return div_floor(a, b);
    case 6:
      return mod_floor(a, b);
    case 7:
      return word ? mul_high(a, b) : a * b;
    case 8:
      return -a;
    case 9:
      return abs(a);
    case 10:
      return min(a, b);
    case 11:
      return max(a, b);
    case 12:
      return a & b;
    case 13:
      return a | b;
    case 14:
      return a ^ b;
    case 15:
      return ~a;
    case 16:
      return a << b;
    case 17:
      return a >> b;
    case 18: {
      if (!word) return a + b;
      const Value offset = any(u32) & 15u;
      return extract_bits(a, offset,
                          random_.chance(50) ? constant(u32, random_.below(17)) : any(u32) & 15u);
    }
    default:
      return select(any({b1, random_.chance(50) ? type.lanes : uint8_t(1)}), a, b);
  }
}

Value RandomValues::word_operation() {
  const Value a = any(u32), b = any(u32);
  switch (random_.below(9)) {
    case 0:
      return popcount(a);
    case 1:
      return count_leading_zeros(a);
    case 2: {
      const Value offset = any(u32) & 15u;
      return insert_bits(a, b, offset, any(u32) & 15u);
    }
    case 3: {
      const Value offset = constant(u32, random_.below(17));
      return insert_bits(a, b, offset, constant(u32, random_.below(16)));
    }
    case 4:
      return dot4_u8(a, b, any(u32));
    case 5:
      return bitcast(u32, dot4_i8(a, b, any(i32)));
    case 6:
      return pack_8(any({random_.one_of({u32, i32}), 4}));
    case 7:
      return pack_f16(any({f32, 2}));
    default:
      return extract_bits(a, constant(u32, random_.below(33)), constant(u32, 0));
  }
}

Value RandomValues::floating(ir::Type type) {
  const Value a = any(type), b = any(type);
  switch (random_.below(14)) {
    case 0:
    case 1:
      return tame(a + b, a);
    case 2:
      return tame(a - b, b);
    case 3:
    case 4:
      return tame(a * b, a);
    // f16: rounding to f32 first differs from rounding once.
    case 5:
      return type.element == f16 ? tame(a * b, b) : tame(fma(a, b, any(type)), b);
    case 6:
      return min(a, b);
    case 7:
      return max(a, b);
    case 8:
      return -a;
    case 9:
      return abs(a);
    case 10:
      return floor(a);
    case 11:
      return random_.chance(50) ? ceil(a) : trunc(a);
    case 12:
      return round_even(a);
    default:
      return select(any({b1, random_.chance(50) ? type.lanes : uint8_t(1)}), a, b);
  }
}

Value RandomValues::truth(uint8_t lanes) {
  if (random_.chance(25)) {
    const Value a = any({b1, lanes}), b = any({b1, lanes});
    switch (random_.below(lanes == 1 ? 6 : 5)) {
      case 0:
        return a & b;
      case 1:
        return a | b;
      case 2:
        return a ^ b;
      case 3:
        return a == b;
      case 4:
        return a != b;
      default:
        return !a;
    }
  }
  ir::Type type = any_type();
  if (type.element == b1) type.element = u32;
  type.lanes = lanes;
  Value a = any(type), b = any(type);
  if (type == ir::Type{f32, 1} && random_.chance(60)) {
    a = wild_float();
    b = random_.chance(70) ? wild_float() : a;
    if (random_.chance(20)) return is_nan(a);
    if (random_.chance(20)) a = random_.chance(50) ? min(a, b) : max(a, b);
  }
  switch (random_.below(6)) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

Value RandomValues::converted(ir::Type type) {
  const uint8_t lanes = type.lanes;
  const Value otherwise = is_float(type.element) ? any(type) : constant(u32, 0);
  if (lanes == 1 && random_.chance(25)) {  // one lane of a vector
    const uint8_t from = random_.one_of<uint8_t>({2, 4});
    return any({type.element, from})[random_.below(from)];
  }
  switch (type.element) {
    case DType::u32:
      if (random_.chance(30)) return bitcast(type, any({random_.one_of({i32, f32}), lanes}));
      if (random_.chance(20) && lanes == 4) return unpack_u8(any(u32));
      if (lanes == 1 && random_.chance(40)) return cast(u32, wild_float());
      if (wide_ && lanes == 2 && random_.chance(50))
        return bitcast(type, any(random_.one_of({u64, i64, f64})));
      if (wide_ && random_.chance(30))
        return cast(u32, any({random_.one_of({i64, u64, f64}), lanes}));
      if (half_ && random_.chance(20))
        return lanes == 1 ? bitcast(type, any({f16, 2})) : cast(u32, any({f16, lanes}));
      return cast(u32, any({random_.one_of({i32, f32, b1}), lanes}));
    case DType::i32:
      if (random_.chance(30)) return bitcast(type, any({random_.one_of({u32, f32}), lanes}));
      if (random_.chance(20) && lanes == 4) return unpack_i8(any(u32));
      if (lanes == 1 && random_.chance(40)) return cast(i32, wild_float());
      if (wide_ && random_.chance(30))
        return cast(i32, any({random_.one_of({i64, u64, f64}), lanes}));
      if (half_ && random_.chance(20)) return cast(i32, any({f16, lanes}));
      return cast(i32, any({random_.one_of({u32, f32, b1}), lanes}));
    case DType::i64:
    case DType::u64:
      if (lanes == 1 && random_.chance(20)) return bitcast(type, any({u32, 2}));
      if (lanes == 1 && random_.chance(20)) return cast(type.element, wild_float());
      return cast(
          type.element,
          any({random_.one_of({u32, i32, f32, f64, b1, type.element == i64 ? u64 : i64}), lanes}));
    case DType::f64:
      return tame(cast(f64, any({random_.one_of({u32, i32, f32, i64, u64, b1}), lanes})),
                  otherwise);
    case DType::f16:
      if (lanes == 2 && random_.chance(40))
        return tame(bitcast(type, any(u32) & 0xbbffbbffu), otherwise);
      return tame(cast(f16, any({random_.one_of({u32, i32, f32, b1}), lanes})), otherwise);
    case DType::f32:
      if (random_.chance(25)) {  // any mantissa and sign, a bounded exponent
        const Value bits = any({u32, lanes});
        const Value exponent = 110u + ((bits >> 20u) & 15u);
        return bitcast(type, (bits & 0x807fffffu) | (exponent << 23u));
      }
      if (lanes == 2 && random_.chance(40))
        return tame(unpack_f16(any(u32) & 0xbbffbbffu), otherwise);
      if (half_ && random_.chance(30)) return cast(f32, any({f16, lanes}));
      if (wide_ && random_.chance(30))
        return tame(cast(f32, any({random_.one_of({i64, u64, f64}), lanes})), otherwise);
      return tame(cast(f32, any({random_.one_of({u32, i32, b1}), lanes})), otherwise);
    default:
      return cast(b1, any({random_.one_of({u32, i32, f32}), lanes}));
  }
}

Value RandomValues::word_of(Value value) {
  Value word = constant(u32, 17);
  for (uint32_t i = 0; i < value.type().lanes; ++i) {
    const Value part = value[i];
    Value bits = part;
    switch (part.element()) {
      case DType::b1:
        bits = cast(u32, part);
        break;
      case DType::f16:
        bits = bitcast(u32, cast(f32, part));
        break;
      case DType::i64:
      case DType::u64:
      case DType::f64: {
        const Value halves = bitcast(Type{u32, 2}, part);
        bits = halves[0] * 5u + halves[1];
        break;
      }
      default:
        bits = bitcast(u32, part);
        break;
    }
    word = word * 31u + bits;
  }
  return word;
}

}  // namespace prism::test
