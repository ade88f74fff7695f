// Element representations in memory and in planes.
#pragma once

#include "ir/interpreter/interpreter_half.h"
#include "prism/dtype.h"

namespace prism::ir::vm {

// The stored type of an element, the type it widens to, and the conversions between them.
template <class T, class Wide = T>
struct Cell {
  using Raw = T;
  using Plane = Wide;
  static constexpr bool kWords = false;
  static PRISM_INLINE Plane widen(Raw raw) { return static_cast<Plane>(raw); }
  static PRISM_INLINE Raw narrow(Plane value) { return static_cast<Raw>(value); }
};
struct HalfCell {
  using Raw = uint16_t;
  using Plane = float;
  static constexpr bool kWords = false;
  static PRISM_INLINE Plane widen(Raw raw) { return half_value(raw); }
  static PRISM_INLINE Raw narrow(Plane value) { return static_cast<Raw>(half_bits(value)); }
};
struct BrainCell {
  using Raw = uint16_t;
  using Plane = float;
  static constexpr bool kWords = false;
  static PRISM_INLINE Plane widen(Raw raw) { return brain_value(raw); }
  static PRISM_INLINE Raw narrow(Plane value) { return static_cast<Raw>(brain_bits(value)); }
};
// A buffer of any element type, accessed as words.
struct WordCell : Cell<uint32_t> {
  static constexpr bool kWords = true;
};

// Calls visit(Cell) with the cell of a stored type. Visitor: generic, any result.
template <class Visitor>
PRISM_INLINE auto with_cell(DType element, Visitor&& visit) {
  switch (element) {
    case DType::f32:
      return visit(Cell<float>{});
    case DType::i8:
      return visit(Cell<int8_t, int32_t>{});
    case DType::u8:
      return visit(Cell<uint8_t, uint32_t>{});
    case DType::i16:
      return visit(Cell<int16_t, int32_t>{});
    case DType::u16:
      return visit(Cell<uint16_t, uint32_t>{});
    case DType::i64:
    case DType::u64:
    case DType::f64:
      return visit(Cell<uint64_t>{});
    case DType::f16:
      return visit(HalfCell{});
    case DType::bf16:
      return visit(BrainCell{});
    default:
      return visit(Cell<uint32_t>{});
  }
}

}  // namespace prism::ir::vm
