// WGSL: loads, stores and atomics. A buffer used atomically is atomic in every access.
#include <fmt/format.h>

#include "print/wgsl_printer.h"

namespace prism {

std::string WgslPrinter::element_type(const ir::Memory& memory) const {
  switch (memory.element) {
    case DType::u32:
    case DType::i32:
    case DType::f32:
      break;
    case DType::f16:
      if (memory.space == ir::Space::buffer && capabilities_.storage_f16) return "f16";
      [[fallthrough]];
    default:
      cannot(fmt::format("an array of {}", dtype_name(memory.element)));
  }
  const std::string type = wgsl_type({memory.element, 1});
  return memory.atomic ? fmt::format("atomic<{}>", type) : type;
}

std::string WgslPrinter::load_one(uint32_t memory, const std::string& index) const {
  const ir::Memory& m = kernel_.memories[memory];
  const std::string place = fmt::format("{}[{}]", memory_names_[memory], index);
  if (m.atomic) return fmt::format("atomicLoad(&{})", place);
  return m.element == DType::f16 ? fmt::format("f32({})", place) : place;
}

std::string WgslPrinter::store_one(uint32_t memory, const std::string& index,
                                   const std::string& value) const {
  const ir::Memory& m = kernel_.memories[memory];
  const std::string place = fmt::format("{}[{}]", memory_names_[memory], index);
  if (m.atomic) return fmt::format("atomicStore(&{}, {});", place, value);
  return fmt::format("{} = {};", place,
                     m.element == DType::f16 ? fmt::format("f16({})", value) : value);
}

std::string WgslPrinter::word_one(uint32_t memory, const std::string& word) const {
  const std::string& name = memory_names_[memory];
  switch (kernel_.memories[memory].element) {
    case DType::u32:
      return load_one(memory, word);
    case DType::f16:
      // Through f32, which holds every f16: not every compiler casts between a word and two halves.
      return fmt::format(
          "pack2x16float(vec2<f32>(f32({0}[({1}) * 2u]), f32({0}[({1}) * 2u + 1u])))", name, word);
    default:
      return fmt::format("bitcast<u32>({})", load_one(memory, word));
  }
}

void WgslPrinter::store_word(uint32_t memory, const std::string& word, const std::string& value) {
  const DType element = kernel_.memories[memory].element;
  if (element == DType::f16) {
    const std::string pair = new_name("pair");
    line(fmt::format("let {} = unpack2x16float({});", pair, value));
    line(fmt::format("{0}[({1}) * 2u] = f16({2}.x);", memory_names_[memory], word, pair));
    return line(
        fmt::format("{0}[({1}) * 2u + 1u] = f16({2}.y);", memory_names_[memory], word, pair));
  }
  const std::string type = wgsl_type({element, 1});
  line(store_one(memory, word,
                 element == DType::u32 ? value : fmt::format("bitcast<{}>({})", type, value)));
}

void WgslPrinter::load(const Inst& inst) {
  const bool words = inst.op == Op::load_words;
  if (inst.type.lanes > 1) atom(inst.args[0]);
  const auto one = [&](uint32_t lane) {
    const std::string index =
        lane == 0 ? use(inst.args[0]) : fmt::format("{} + {}u", use(inst.args[0]), lane);
    return words ? word_one(inst.object, index) : load_one(inst.object, index);
  };
  std::string text;
  for (uint32_t lane = 0; lane < inst.type.lanes; ++lane) text += (lane ? ", " : "") + one(lane);
  const std::string type = wgsl_type(inst.type);
  if (inst.type.lanes > 1) text = fmt::format("{}({})", type, text);
  if (inst.args.size() < 2) return define(inst, text, false);
  texts_[inst.result] = new_name("v");
  // Said outright: not every compiler clears a variable each time a loop comes by.
  line(fmt::format("var {} = {}();", texts_[inst.result], type));
  line(fmt::format("if ({}) {{ {} = {}; }}", use(inst.args[1]), texts_[inst.result], text));
}

void WgslPrinter::store(const Inst& inst) {
  const bool predicated = inst.args.size() > 2;
  if (predicated) {
    line(fmt::format("if ({}) {{", use(inst.args[2])));
    ++depth_;
  }
  const uint32_t lanes = type_of(inst.args[1]).lanes;
  if (lanes > 1) atom(inst.args[0]);
  const std::string value = lanes > 1 ? atom(inst.args[1]) : use(inst.args[1]);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const std::string index =
        lane == 0 ? use(inst.args[0]) : fmt::format("{} + {}u", use(inst.args[0]), lane);
    const std::string part = lanes == 1 ? value : fmt::format("{}[{}]", value, lane);
    if (inst.op == Op::store_words)
      store_word(inst.object, index, part);
    else
      line(store_one(inst.object, index, part));
  }
  if (predicated) {
    --depth_;
    line("}");
  }
}

void WgslPrinter::atomic(const Inst& inst) {
  const std::string place = fmt::format("&{}[{}]", memory_names_[inst.object], use(inst.args[0]));
  const auto op = static_cast<ir::AtomicOp>(inst.bits);
  const auto call = [&](const char* name) {
    define(inst, fmt::format("{}({}, {})", name, place, use(inst.args[1])), false);
  };
  switch (op) {
    case ir::AtomicOp::add:
      return call("atomicAdd");
    case ir::AtomicOp::min:
      return call("atomicMin");
    case ir::AtomicOp::max:
      return call("atomicMax");
    case ir::AtomicOp::bit_and:
      return call("atomicAnd");
    case ir::AtomicOp::bit_or:
      return call("atomicOr");
    case ir::AtomicOp::bit_xor:
      return call("atomicXor");
    case ir::AtomicOp::exchange:
      return call("atomicExchange");
    case ir::AtomicOp::compare_exchange:
      break;
  }
  // WGSL's exchange may fail for no reason; ours fails only where the value differs, so it is tried
  // again.
  const std::string old = new_name("old"), tried = new_name("tried");
  texts_[inst.result] = old;
  line(fmt::format("var {}: {};", old, wgsl_type(inst.type)));
  line("loop {");
  ++depth_;
  line(fmt::format("let {} = atomicCompareExchangeWeak({}, {}, {});", tried, place,
                   use(inst.args[2]), use(inst.args[1])));
  line(fmt::format("{} = {}.old_value;", old, tried));
  line(fmt::format("if ({0}.exchanged || {0}.old_value != {1}) {{ break; }}", tried,
                   use(inst.args[2])));
  --depth_;
  line("}");
}

}  // namespace prism
