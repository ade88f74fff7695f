// Lowers byte packing and high halves of products to shifts and sums, for languages without them.
#include "lower/passes.h"
#include "lower/rewriter.h"

namespace prism::lower_detail {
namespace {

using namespace dsl;
using ir::Inst;
using ir::Op;

class LowerWords : public Rewriter {
  bool rewrite(const Inst& inst) override {
    switch (inst.op) {
      case Op::mul_high:
        bind(inst.result, high_half(arg(inst, 0), arg(inst, 1)));
        return true;
      case Op::pack_8:
        bind(inst.result, packed(bitcast(Type{u32, 4}, arg(inst, 0))));
        return true;
      case Op::unpack_i8:
      case Op::unpack_u8: {
        const bool is_signed = inst.op == Op::unpack_i8;
        const Value word = is_signed ? bitcast(i32, arg(inst, 0)) : arg(inst, 0);
        const auto byte = [&](uint32_t i) { return extract_bits(word, i * 8, 8u); };
        bind(inst.result, vec(byte(0), byte(1), byte(2), byte(3)));
        return true;
      }
      default:
        return false;
    }
  }

  static Value packed(Value x) {
    return (x[0] & 255u) | ((x[1] & 255u) << 8u) | ((x[2] & 255u) << 16u) | (x[3] << 24u);
  }

  // By 16-bit halves, none of whose sums exceeds a word.
  static Value unsigned_high_half(Value a, Value b) {
    const Value a_low = a & 0xffffu, a_high = a >> 16u, b_low = b & 0xffffu, b_high = b >> 16u;
    const Value middle = a_high * b_low + (a_low * b_low >> 16u);
    const Value other = a_low * b_high + (middle & 0xffffu);
    return a_high * b_high + (middle >> 16u) + (other >> 16u);
  }

  // A negative number is its word minus 2^32, which subtracts the other factor from the high half.
  static Value high_half(Value a, Value b) {
    const Type type = a.type(), words{u32, type.lanes};
    if (type.element == u32) return unsigned_high_half(a, b);
    const Value zero = splat(constant(i32, 0), type.lanes);
    return bitcast(type, unsigned_high_half(bitcast(words, a), bitcast(words, b))) -
           select(a < zero, b, zero) - select(b < zero, a, zero);
  }
};

}  // namespace

ir::Kernel lower_words(const ir::Kernel& kernel) { return LowerWords().run(kernel); }

}  // namespace prism::lower_detail
