// Memory in the C family: widening loads, narrowing stores, vectors and words through pointer
// casts.
#include <algorithm>

#include <fmt/format.h>

#include "print/c_family.h"
#include "print/quads.h"

namespace prism {

using ir::Memory;
using ir::Op;
using ir::Space;

namespace {
constexpr const char* kLanes[] = {".x", ".y", ".z", ".w"};

std::string plus(const std::string& index, uint32_t offset) {
  return offset == 0 ? index : fmt::format("{} + {}u", index, offset);
}

// The integer type with the bits of a stored element: 16-bit floats are stored as bit patterns.
DType pattern(DType stored) {
  if (stored == DType::f16 || stored == DType::bf16) return DType::u16;
  return stored == DType::b1 ? DType::u32 : stored;
}

std::string suffix(const std::string& index) { return index == "0u" ? "" : " + " + index; }
}  // namespace

std::string CFamily::space(const Memory& memory) const {
  switch (memory.space) {
    case Space::buffer:
      return table_.global_space;
    case Space::shared:
      return table_.shared_space;
    default:
      return table_.local_space;
  }
}

std::string CFamily::widen(DType stored, const std::string& text) const {
  switch (stored) {
    case DType::b1:
      return fmt::format("({} != 0u)", text);
    case DType::f16:
      return fmt::format("prism_f32_from_f16({})", text);
    case DType::bf16:
      return fmt::format("prism_f32_from_bf16({})", text);
    default:
      break;
  }
  if (widened(stored) == stored) return text;
  return fmt::format("({}){}", table_.values[static_cast<size_t>(widened(stored))], text);
}

std::string CFamily::narrow(DType stored, const std::string& text) const {
  switch (stored) {
    case DType::b1:
      return fmt::format("({} ? 1u : 0u)", text);
    case DType::f16:
      return fmt::format("prism_f16_from_f32({})", bare(text));
    case DType::bf16:
      return fmt::format("prism_bf16_from_f32({})", bare(text));
    default:
      break;
  }
  if (widened(stored) == stored) return bare(text);
  return fmt::format("({}){}", table_.stored[static_cast<size_t>(stored)], text);
}

std::string CFamily::load_scalar(const Memory& memory, const std::string& name,
                                 const std::string& index) {
  return widen(memory.element, fmt::format("{}[{}]", name, index));
}

std::string CFamily::element(uint32_t memory, const std::string& index) {
  const std::string& name = memory_names_[memory];
  if (!quads_.empty() && quads_[memory])
    return fmt::format("{0}[({1}) >> 2u][({1}) & 3u]", name, index);
  return load_scalar(kernel_.memories[memory], name, index);
}

void CFamily::store_element(uint32_t memory, const std::string& index, const std::string& value) {
  line(fmt::format("{}[{}] = {};", memory_names_[memory], index,
                   narrow(kernel_.memories[memory].element, value)));
}

std::string CFamily::word(uint32_t memory, const std::string& index) {
  return fmt::format("*(({}const {}*){}{})", space(kernel_.memories[memory]),
                     table_.word ? table_.word : value_type({DType::u32, 1}), memory_names_[memory],
                     suffix(index));
}

void CFamily::store_word(uint32_t memory, const std::string& index, const std::string& value) {
  line(fmt::format("*(({}{}*){}{}) = {};", space(kernel_.memories[memory]),
                   table_.word ? table_.word : value_type({DType::u32, 1}), memory_names_[memory],
                   suffix(index), value));
}

// A private array stays in registers only if its address is never taken.
bool CFamily::apart(const Inst& inst) const {
  const Memory& memory = kernel_.memories[inst.object];
  const bool loads = inst.op == Op::load || inst.op == Op::load_words;
  if ((loads ? inst.type : type_of(inst.args[1])).lanes == 1) return true;
  const bool words = inst.op == Op::load_words || inst.op == Op::store_words;
  return !words && (memory.space == Space::local || memory.element == DType::b1);
}

std::string CFamily::quad(const Inst& inst, const std::string& index) const {
  if (quads_.empty() || !quads_[inst.object] || !is_quad(kernel_, inst)) return {};
  return fmt::format("{}[({}) >> 2u]", memory_names_[inst.object], index);
}

std::string CFamily::guarded(const Inst& inst, const std::string& predicate,
                             std::vector<std::string> parts) {
  for (std::string& part : parts)
    part = fmt::format("({} ? {} : {})", predicate, part, literal(inst.type.element, 0));
  return parts.size() == 1 ? parts[0] : make_vector(inst.type, parts);
}

std::string CFamily::pointer(uint32_t memory, const std::string& type, const std::string& index,
                             bool writes) const {
  return fmt::format("({}{}{}*)(&{}[{}])", space(kernel_.memories[memory]), writes ? "" : "const ",
                     type, memory_names_[memory], index);
}

void CFamily::load(const Inst& inst) {
  if (apart(inst))
    load_apart(inst);
  else if (inst.op == Op::load_words)
    load_words(inst);
  else
    load_vector(inst);
}

void CFamily::load_apart(const Inst& inst) {
  const bool words = inst.op == Op::load_words, one = inst.type.lanes == 1;
  std::string index = one ? use(inst.args[0]) : atom(inst.args[0]);
  if (!words) index = bare(index);
  const std::string predicate = inst.args.size() < 2 ? ""
                                : one                ? use(inst.args[1])
                                                     : atom(inst.args[1]);
  std::vector<std::string> parts;
  if (const std::string place = quad(inst, index); !place.empty()) {
    const Type stored{kernel_.memories[inst.object].element, inst.type.lanes};
    parts.push_back(bitcast(inst.type, stored, place));
  } else {
    for (uint32_t i = 0; i < inst.type.lanes; ++i)
      parts.push_back(words ? word(inst.object, plus(index, i))
                            : element(inst.object, plus(index, i)));
  }
  const std::string text = !predicate.empty()  ? guarded(inst, predicate, parts)
                           : parts.size() == 1 ? parts[0]
                                               : make_vector(inst.type, parts);
  reads_ = true;
  define(inst.result, text, memory_names_[inst.object] + (words ? "_word" : "_value"), one);
}

void CFamily::load_vector(const Inst& inst) {
  const Memory& memory = kernel_.memories[inst.object];
  const uint32_t lanes = inst.type.lanes;
  const Type raw{pattern(memory.element), static_cast<uint8_t>(lanes)};
  const std::string predicate = inst.args.size() > 1 ? bare(use(inst.args[1])) : "";
  const std::string hint = memory_names_[inst.object] + "_value";
  std::vector<std::string> parts(lanes, literal(inst.type.element, 0));
  const std::string source =
      "*" + pointer(inst.object, vector_type(raw), bare(use(inst.args[0])), false);
  std::string name = names_.unique(hint);
  if (predicate.empty()) {
    line(fmt::format("const {} {} = {};", vector_type(raw), name, source));
  } else {
    const std::string zero = memory.element == DType::f32 || memory.element == DType::f64
                                 ? literal(memory.element, 0)
                                 : "0";
    line(fmt::format("{} {} = {};", vector_type(raw), name,
                     make_vector(raw, std::vector<std::string>(lanes, zero))));
    line(fmt::format("if ({}) {} = {};", predicate, name, source));
  }
  if (widened(memory.element) == memory.element) {
    set_value(inst.result, name);
    return;
  }
  for (uint32_t i = 0; i < lanes; ++i) parts[i] = widen(memory.element, name + kLanes[i]);
  define(inst.result, make_vector(inst.type, parts), hint, false);
}

std::string CFamily::load_vector_of_words(const Memory& memory, uint32_t width,
                                          const std::string& address) {
  return fmt::format("*({}const {}*){}", space(memory),
                     vector_type({DType::u32, static_cast<uint8_t>(width)}), address);
}

void CFamily::load_words(const Inst& inst) {
  const Memory& memory = kernel_.memories[inst.object];
  const uint32_t lanes = inst.type.lanes;
  // Alignment is a power of two; lower alignment means more, narrower loads.
  const uint32_t width =
      std::min<uint32_t>(lanes, std::max<uint32_t>(1, static_cast<uint32_t>(inst.bits)));
  const std::string predicate = inst.args.size() > 1 ? atom(inst.args[1]) : "";
  const std::string index = lanes == width ? use(inst.args[0]) : atom(inst.args[0]);
  const std::string word = table_.word ? table_.word : value_type({DType::u32, 1});
  const std::string from = space(memory);
  const std::string base = fmt::format("({}const {}*){}", from, word, memory_names_[inst.object]);
  const std::string name = names_.unique(memory_names_[inst.object] + "_words");
  const Type whole{DType::u32, static_cast<uint8_t>(lanes)};
  const auto source = [&](uint32_t at) {
    const std::string address = fmt::format("({}{})", base, suffix(plus(index, at)));
    return width == 1 ? "*" + address : load_vector_of_words(memory, width, address);
  };
  if (!predicate.empty()) {
    line(fmt::format("{} {} = {};", vector_type(whole), name,
                     make_vector(whole, std::vector<std::string>(lanes, "0u"))));
    open(fmt::format("if ({})", predicate));
  } else if (width == lanes) {
    line(fmt::format("const {} {} = {};", vector_type(whole), name, source(0)));
  } else {
    line(fmt::format("{} {};", vector_type(whole), name));
  }
  if (width == lanes) {
    if (!predicate.empty()) line(fmt::format("{} = {};", name, source(0)));
  } else {
    for (uint32_t at = 0; at < lanes; at += width) {
      if (width == 1) {
        line(fmt::format("{}{} = {};", name, kLanes[at], source(at)));
        continue;
      }
      const std::string half = names_.unique("pair");
      line(fmt::format("const {} {} = {};", vector_type({DType::u32, 2}), half, source(at)));
      line(fmt::format("{0}{1} = {2}.x; {0}{3} = {2}.y;", name, kLanes[at], half, kLanes[at + 1]));
    }
  }
  if (!predicate.empty()) close();
  set_value(inst.result, name);
}

void CFamily::store_apart(const Inst& inst) {
  const bool words = inst.op == Op::store_words;
  const uint32_t lanes = type_of(inst.args[1]).lanes;
  const std::string value = lanes > 1 ? atom(inst.args[1]) : use(inst.args[1]);
  std::string index = lanes > 1 ? atom(inst.args[0]) : use(inst.args[0]);
  if (!words) index = bare(index);
  const std::string predicate = inst.args.size() > 2 ? bare(use(inst.args[2])) : "";
  flush();
  if (!predicate.empty()) open(fmt::format("if ({})", predicate));
  const Type type = type_of(inst.args[1]),
             stored{kernel_.memories[inst.object].element, type.lanes};
  const std::string place = quad(inst, index);
  if (!place.empty()) line(fmt::format("{} = {};", place, bitcast(stored, type, value)));
  for (uint32_t i = 0; i < lanes && place.empty(); ++i) {
    const std::string part = lanes > 1 ? value + kLanes[i] : value;
    words ? store_word(inst.object, plus(index, i), bare(part))
          : store_element(inst.object, plus(index, i), part);
  }
  if (!predicate.empty()) close();
}

void CFamily::store(const Inst& inst) {
  if (apart(inst)) return store_apart(inst);
  if (inst.op == Op::store_words) return store_words(inst);
  const Memory& memory = kernel_.memories[inst.object];
  const Type type = type_of(inst.args[1]);
  const Type raw{pattern(memory.element), type.lanes};
  const std::string value = atom(inst.args[1]), index = bare(use(inst.args[0]));
  const std::string guard =
      inst.args.size() > 2 ? fmt::format("if ({}) ", bare(use(inst.args[2]))) : "";
  flush();
  std::vector<std::string> parts;
  for (uint32_t i = 0; i < type.lanes; ++i)
    parts.push_back(narrow(memory.element, value + kLanes[i]));
  const std::string whole = raw == type ? value : make_vector(raw, parts);
  line(fmt::format("{}*{} = {};", guard, pointer(inst.object, vector_type(raw), index, true),
                   whole));
}

void CFamily::store_words(const Inst& inst) {
  const Memory& memory = kernel_.memories[inst.object];
  const uint32_t lanes = type_of(inst.args[1]).lanes;
  const uint32_t width =
      std::min<uint32_t>(lanes, std::max<uint32_t>(1, static_cast<uint32_t>(inst.bits)));
  const std::string value = atom(inst.args[1]);
  const std::string index = width == lanes ? use(inst.args[0]) : atom(inst.args[0]);
  const std::string predicate = inst.args.size() > 2 ? bare(use(inst.args[2])) : "";
  flush();
  const std::string to = space(memory);
  const std::string word = table_.word ? table_.word : value_type({DType::u32, 1});
  if (!predicate.empty()) open(fmt::format("if ({})", predicate));
  for (uint32_t at = 0; at < lanes; at += width) {
    const std::string address =
        fmt::format("(({}{}*){}{})", to, word, memory_names_[inst.object], suffix(plus(index, at)));
    const Type part{DType::u32, static_cast<uint8_t>(width)};
    if (width == 1) {
      line(fmt::format("*{} = {};", address, value + kLanes[at]));
    } else if (width == lanes) {
      line(fmt::format("*({}{}*){} = {};", to, vector_type(part), address, value));
    } else {
      line(fmt::format("*({}{}*){} = {};", to, vector_type(part), address,
                       make_vector(part, {value + kLanes[at], value + kLanes[at + 1]})));
    }
  }
  if (!predicate.empty()) close();
}

}  // namespace prism
