// Lowers narrow elements that the device cannot store: 16-bit floats as bits, 8- and 16-bit
// elements packed into words.
#include <optional>

#include "lower/passes.h"
#include "lower/rewriter.h"

namespace prism::lower_detail {
namespace {

using namespace dsl;
using ir::Inst;
using ir::Op;

Value joined(const std::vector<Value>& parts) {
  if (parts.size() == 1) return parts[0];
  return parts.size() == 2 ? vec(parts[0], parts[1]) : vec(parts[0], parts[1], parts[2], parts[3]);
}

// The f16 bits of an f32, rounded to nearest even. Below 2^-14, adding 0.5 lets the adder do the
// rounding.
Value half_bits(Value x) {
  const Value bits = bitcast(u32, x);
  const Value sign = (bits >> 16u) & 0x8000u, magnitude = bits & 0x7fffffffu;
  const Value small = bitcast(u32, bitcast(f32, magnitude) + 0.5f) - 0x3f000000u;
  const Value normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u;
  const Value finite = select(magnitude < 0x38800000u, small, normal);
  const Value large =
      select(magnitude > 0x7f800000u, constant(u32, 0x7e00u), constant(u32, 0x7c00u));
  return sign | select(magnitude < 0x47800000u, finite, large);
}

Value float_of_half(Value bits) {
  const Value sign = (bits & 0x8000u) << 16u, exponent = (bits >> 10u) & 0x1fu,
              mantissa = bits & 0x3ffu;
  const Value normal = ((exponent + 112u) << 23u) | (mantissa << 13u);
  const Value tiny = bitcast(u32, cast(f32, mantissa) * 0x1p-24f);
  const Value huge = (mantissa << 13u) | 0x7f800000u;
  return bitcast(f32, sign | select(exponent == 0u, tiny, select(exponent == 31u, huge, normal)));
}

Value bfloat_bits(Value x) {
  const Value bits = bitcast(u32, x);
  const Value rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return select(is_nan(x), (bits >> 16u) | 0x40u, rounded);
}

// Converts the low bits of a word to the value a load gives.
Value decode(DType element, Value bits) {
  switch (element) {
    case DType::i8:
      return extract_bits(bitcast(i32, bits), 0u, 8u);
    case DType::u8:
      return bits & 0xffu;
    case DType::i16:
      return extract_bits(bitcast(i32, bits), 0u, 16u);
    case DType::u16:
      return bits & 0xffffu;
    case DType::f16:
      return float_of_half(bits & 0xffffu);
    case DType::bf16:
      return bitcast(f32, bits << 16u);
    default:
      return bits;
  }
}

// Converts the value of a store to bits; the bits above the element are zero.
Value encode(DType element, Value value) {
  switch (element) {
    case DType::i8:
      return bitcast(u32, value) & 0xffu;
    case DType::u8:
      return value & 0xffu;
    case DType::i16:
      return bitcast(u32, value) & 0xffffu;
    case DType::u16:
      return value & 0xffffu;
    case DType::f16:
      return half_bits(value);
    case DType::bf16:
      return bfloat_bits(value);
    default:
      return value;
  }
}

enum class Form {
  own,       // the device stores the element natively
  bits16,    // a 16-bit float stored as u16
  packed,    // two or four elements per word of a buffer
  unpacked,  // one element per word of a shared or private array
};

Form form_of(const ir::Memory& memory, const ir::Capabilities& caps) {
  const size_t bytes = dtype_bytes(memory.element);
  if (bytes > 2) return Form::own;
  const bool buffer = memory.space == ir::Space::buffer;
  const bool integers =
      buffer ? (bytes == 1 ? caps.storage_8 : caps.storage_16) : caps.narrow_arrays;
  if (memory.element == f16 && caps.storage_f16 && (buffer || caps.narrow_arrays)) return Form::own;
  if (memory.element == bf16 && caps.storage_bf16 && (buffer || caps.narrow_arrays))
    return Form::own;
  if (!integers) return buffer ? Form::packed : Form::unpacked;
  return is_float(memory.element) ? Form::bits16 : Form::own;
}

class LowerStorage : public Rewriter {
 public:
  explicit LowerStorage(const ir::Capabilities& capabilities) : caps_(capabilities) {}

 private:
  void prepare(ir::Kernel& kernel) override {
    const std::vector<bool> as_words = read_as_words();
    for (ir::Memory& memory : kernel.memories) {
      const Form form = as_words[forms_.size()] ? Form::packed : form_of(memory, caps_);
      forms_.push_back(form);
      elements_.push_back(memory.element);
      if (form == Form::bits16) memory.element = u16;
      if (form == Form::packed || form == Form::unpacked) memory.element = u32;
    }
    ir::walk(source().body, [&](const Inst& inst) {
      if (inst.op != Op::store || forms_[inst.object] != Form::packed) return;
      ir::Memory& memory = kernel.memories[inst.object];
      memory.access = ir::Access::read_write;  // atomics merge partial words
      if (!whole_words(inst)) memory.atomic = true;
    });
  }

  // Buffers of f16 that a kernel only reads, by words. If a buffer has a single element type and
  // cannot be reinterpreted (WGSL), an f16 buffer needs two loads per word and cannot load four
  // words at once.
  std::vector<bool> read_as_words() const {
    std::vector<bool> found(source().memories.size());
    if (!caps_.raw_atomic_buffers) return found;
    ir::walk(source().body, [&](const Inst& inst) {
      if (inst.op != Op::load_words) return;
      const ir::Memory& memory = source().memories[inst.object];
      found[inst.object] = memory.space == ir::Space::buffer && memory.element == f16 &&
                           memory.access == ir::Access::read;
    });
    return found;
  }

  bool whole_words(const Inst& store) const {
    return source().values[store.args[1]].lanes * dtype_bytes(elements_[store.object]) >= 4;
  }

  bool rewrite(const Inst& inst) override {
    if (!caps_.storage_f16 && inst.op == Op::pack_f16) {
      const Value x = arg(inst, 0);
      bind(inst.result, half_bits(x[0]) | (half_bits(x[1]) << 16u));
      return true;
    }
    if (!caps_.storage_f16 && inst.op == Op::unpack_f16) {
      const Value x = arg(inst, 0);
      bind(inst.result, vec(float_of_half(x & 0xffffu), float_of_half(x >> 16u)));
      return true;
    }
    if ((inst.op != Op::load && inst.op != Op::store) || forms_[inst.object] == Form::own)
      return false;
    const Form form = forms_[inst.object];
    if (inst.op == Op::load)
      bind(inst.result, form == Form::packed ? load_packed(inst) : load_bits(inst));
    else if (form == Form::packed)
      store_packed(inst);
    else
      store_bits(inst);
    return true;
  }

  Value load_bits(const Inst& inst) {
    const Array memory(inst.object);
    const Value bits = inst.args.size() > 1
                           ? memory.load_if(arg(inst, 1), arg(inst, 0), inst.type.lanes)
                           : memory.load(arg(inst, 0), inst.type.lanes);
    std::vector<Value> parts;
    for (uint32_t i = 0; i < inst.type.lanes; ++i)
      parts.push_back(decode(elements_[inst.object], bits[i]));
    return joined(parts);
  }

  void store_bits(const Inst& inst) {
    const Array memory(inst.object);
    const Value value = arg(inst, 1);
    std::vector<Value> parts;
    for (uint32_t i = 0; i < value.type().lanes; ++i)
      parts.push_back(encode(elements_[inst.object], value[i]));
    if (inst.args.size() > 2)
      memory.store_if(arg(inst, 2), arg(inst, 0), joined(parts));
    else
      memory.store(arg(inst, 0), joined(parts));
  }

  Value load_packed(const Inst& inst) {
    const Array memory(inst.object);
    const DType element = elements_[inst.object];
    const uint32_t per_word = static_cast<uint32_t>(4 / dtype_bytes(element)),
                   width = 32 / per_word;
    const Value index = arg(inst, 0);
    std::vector<Value> parts;
    std::optional<Value> word;
    for (uint32_t i = 0; i < inst.type.lanes; ++i) {
      if (i % per_word == 0 || !word) {
        const Value at = (index + i) / per_word;
        word = inst.args.size() > 1 ? memory.load_if(arg(inst, 1), at) : memory.load(at);
      }
      const Value bits = *word >> ((index + i) % per_word * width);
      parts.push_back(element == f16 && caps_.storage_f16 ? unpack_f16(bits)[0]
                                                          : decode(element, bits));
    }
    return joined(parts);
  }

  void store_packed(const Inst& inst) {
    if (inst.args.size() > 2)
      if_(arg(inst, 2), [&] { store_words_of(inst); });
    else
      store_words_of(inst);
  }

  void store_words_of(const Inst& inst) {
    const Array memory(inst.object);
    const DType element = elements_[inst.object];
    const uint32_t per_word = static_cast<uint32_t>(4 / dtype_bytes(element)),
                   width = 32 / per_word;
    const Value index = arg(inst, 0), value = arg(inst, 1);
    const uint32_t lanes = value.type().lanes;
    if (whole_words(inst)) {
      for (uint32_t first = 0; first < lanes; first += per_word) {
        Value word = encode(element, value[first]);
        for (uint32_t i = 1; i < per_word; ++i)
          word = word | (encode(element, value[first + i]) << (i * width));
        memory.store((index + first) / per_word, word);
      }
      return;
    }
    for (uint32_t i = 0; i < lanes; ++i) {
      const Value at = (index + i) / per_word, shift = (index + i) % per_word * width;
      const Value mask = constant(u32, width == 8 ? 0xffu : 0xffffu) << shift;
      memory.atomic(AtomicOp::bit_and, at, ~mask);
      memory.atomic(AtomicOp::bit_or, at, encode(element, value[i]) << shift);
    }
  }

  const ir::Capabilities& caps_;
  std::vector<Form> forms_;
  std::vector<DType> elements_;
};

}  // namespace

std::optional<DType> stored_element(const ir::Memory& memory,
                                    const ir::Capabilities& capabilities) {
  switch (form_of(memory, capabilities)) {
    case Form::own:
      return memory.element;
    case Form::bits16:
      return u16;
    default:
      return std::nullopt;
  }
}

ir::Kernel lower_storage(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  return LowerStorage(capabilities).run(kernel);
}

}  // namespace prism::lower_detail
