// Prints fragment instructions as loops over a lane's registers.
#include "print/fragment_printer.h"

#include <fmt/format.h>

#include "print/alignment.h"

namespace prism {

using ir::Fragment;
using ir::FragmentRole;
using ir::Memory;
using ir::Op;

namespace {

constexpr const char* kUnroll = "#pragma unroll";

uint32_t per_word(const Fragment& f) { return static_cast<uint32_t>(4 / dtype_bytes(f.element)); }

}  // namespace

FragmentPrinter::FragmentPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                                 const CTable& table, FragmentRegisters registers)
    : CFamily(kernel, capabilities, table), registers_(registers) {
  if (!kernel.fragments.empty()) multiples_ = known_multiples(kernel);
}

std::string FragmentPrinter::prologue() {
  std::string text;
  for (size_t i = 0; i < kernel_.fragments.size(); ++i) {
    const Fragment& f = kernel_.fragments[i];
    const bool accumulates = f.role == FragmentRole::accumulator;
    const char* type = !accumulates ? "unsigned" : f.element == DType::f32 ? "float" : "int";
    text += fmt::format("{}{} {}[{}];", text.empty() ? "" : "\n  ", type, fragment_names_[i],
                        accumulates ? registers_.sums : registers_.words);
  }
  return text;
}

std::string FragmentPrinter::over_sums(uint32_t step) const {
  return fmt::format("for (unsigned prism_e = 0u; prism_e < {}u; {})", registers_.sums,
                     step == 1 ? "++prism_e" : fmt::format("prism_e += {}u", step));
}

std::string FragmentPrinter::over_words() const {
  return fmt::format("for (unsigned prism_r = 0u; prism_r < {}u; ++prism_r)", registers_.words);
}

bool FragmentPrinter::is_aligned(const Inst& inst, uint32_t elements) const {
  return multiples_[inst.args[0]] >= elements && multiples_[inst.args[1]] >= elements;
}

// The index of an element; the instruction's bits select row-major or column-major.
std::string FragmentPrinter::place(const Inst& inst, const std::string& row,
                                   const std::string& column, const std::string& index,
                                   const std::string& stride) const {
  const bool column_major = inst.bits == 1;
  return fmt::format("{} + {} * {} + {}", index, column_major ? column : row, stride,
                     column_major ? row : column);
}

std::string FragmentPrinter::first_k(const char* name, uint32_t k) const {
  return fmt::format("{}<{}>(prism_r)", name, k);
}

std::string FragmentPrinter::operand_place(const Inst& inst, uint32_t i, const std::string& index,
                                           const std::string& stride) const {
  const Fragment& f = kernel_.fragments[inst.object];
  const bool is_a = f.role == FragmentRole::a;
  std::string outer = is_a ? "prism_a_row(prism_r)" : "prism_b_column(prism_r)";
  std::string k = first_k(is_a ? "prism_a_k" : "prism_b_k", f.k);
  std::string& moving = !is_a && registers_.b_along_n ? outer : k;
  if (i > 0) moving = fmt::format("({} + {}u)", moving, i);
  return place(inst, is_a ? outer : k, is_a ? k : outer, index, stride);
}

bool FragmentPrinter::fragment(const Inst& inst) {
  if (inst.op < Op::fragment_fill || inst.op > Op::fragment_convert) return false;
  const Fragment& f = kernel_.fragments[inst.object];
  const std::string& name = fragment_names_[inst.object];
  const bool accumulates = f.role == FragmentRole::accumulator;
  switch (inst.op) {
    case Op::fragment_fill:
      fill(inst);
      return true;
    case Op::fragment_load:
      accumulates ? load_accumulator(inst) : load_operand(inst);
      return true;
    case Op::fragment_store:
      accumulates ? store_accumulator(inst) : store_operand(inst);
      return true;
    case Op::fragment_multiply:
      line(fmt::format("prism_multiply_{}({}, {}, {});",
                       dtype_name(kernel_.fragments[inst.objects[0]].element), name,
                       fragment_names_[inst.objects[0]], fragment_names_[inst.objects[1]]));
      return true;
    case Op::fragment_map:
      map(inst);
      return true;
    case Op::fragment_make:
      make(inst);
      return true;
    case Op::fragment_row_reduce:
      line(fmt::format("prism_row_reduce_{}({}, {});",
                       ir::reduce_op_name(static_cast<ir::ReduceOp>(inst.bits)), name,
                       fragment_names_[inst.objects[0]]));
      return true;
    default:
      if (f.element == DType::i8 || accumulates) return false;
      line(fmt::format("prism_convert_{}_{}({}, {});", f.role == FragmentRole::a ? "a" : "b",
                       dtype_name(f.element), name, fragment_names_[inst.objects[0]]));
      return true;
  }
}

void FragmentPrinter::fill(const Inst& inst) {
  const Fragment& f = kernel_.fragments[inst.object];
  std::string value = atom(inst.args[0]);
  if (f.role != FragmentRole::accumulator) {
    if (f.element == DType::i8)
      value = fmt::format("((unsigned){} & 255u) * 0x01010101u", value);
    else
      value = fmt::format("prism_pack_{0}({1}, {1})", dtype_name(f.element), value);
  }
  line(fmt::format("prism_fill({}, {});", fragment_names_[inst.object], value));
}

void FragmentPrinter::load_accumulator(const Inst& inst) {
  const std::string index = atom(inst.args[0]), stride = atom(inst.args[1]);
  line(kUnroll);
  line(over_sums());
  line(fmt::format("  {}[prism_e] = {};", fragment_names_[inst.object],
                   element(inst.object2, place(inst, "prism_fragment_row(prism_e)",
                                               "prism_fragment_column(prism_e)", index, stride))));
}

void FragmentPrinter::store_accumulator(const Inst& inst) {
  const std::string index = atom(inst.args[0]), stride = atom(inst.args[1]);
  const Memory& memory = kernel_.memories[inst.object2];
  const std::string& name = fragment_names_[inst.object];
  flush();
  line(kUnroll);
  const bool pairs = registers_.pairs && inst.bits == 0 && is_aligned(inst, 2);
  const std::string at =
      place(inst, "prism_fragment_row(prism_e)", "prism_fragment_column(prism_e)", index, stride);
  // One lane holds two adjacent columns: half as many, wider stores.
  if (pairs && (memory.element == DType::f32 || memory.element == DType::i32)) {
    const std::string type = vector_type({memory.element, 2});
    line(over_sums(2));
    line(fmt::format(
        "  *{} = {};", pointer(inst.object2, type, at, true),
        make_vector({memory.element, 2}, {name + "[prism_e]", name + "[prism_e + 1u]"})));
  } else if (pairs && memory.element == DType::f16) {
    line(over_sums(2));
    line(fmt::format("  *{} = prism_pack_f16({}[prism_e], {}[prism_e + 1u]);",
                     pointer(inst.object2, "unsigned", at, true), name, name));
  } else {
    line(over_sums());
    line(fmt::format("  {}[{}] = {};", memory_names_[inst.object2], at,
                     narrow(memory.element, name + "[prism_e]")));
  }
}

void FragmentPrinter::load_operand(const Inst& inst) {
  const std::string index = atom(inst.args[0]), stride = atom(inst.args[1]);
  if (load_at_once(inst, index, stride)) return;
  const Fragment& f = kernel_.fragments[inst.object];
  const Memory& memory = kernel_.memories[inst.object2];
  const uint32_t count = per_word(f);
  // Whether a word's elements are also adjacent in memory.
  const bool along_row = f.role == FragmentRole::a || registers_.b_along_n;
  const bool together = along_row == (inst.bits == 0);
  line(kUnroll);
  line(over_words());
  const std::string to = "  " + fragment_names_[inst.object] + "[prism_r] = ";
  if (together && memory.element == f.element && is_aligned(inst, count)) {
    line(to + "*" +
         pointer(inst.object2, "unsigned", operand_place(inst, 0, index, stride), false) + ";");
    return;
  }
  std::string word;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string at = operand_place(inst, i, index, stride);
    const std::string stored = memory.element == f.element
                                   ? fmt::format("{}[{}]", memory_names_[inst.object2], at)
                                   : narrow(f.element, element(inst.object2, at));
    const std::string part =
        f.element == DType::i8 ? "(unsigned)(unsigned char)" + stored : "(unsigned)" + stored;
    word += i == 0 ? part : fmt::format(" | ({} << {})", part, i * 32 / count);
  }
  line(to + word + ";");
}

void FragmentPrinter::store_operand(const Inst& inst) {
  const std::string index = atom(inst.args[0]), stride = atom(inst.args[1]);
  const Fragment& f = kernel_.fragments[inst.object];
  const Memory& memory = kernel_.memories[inst.object2];
  const uint32_t count = per_word(f);
  const std::string stored_type = f.element == DType::i8 ? "signed char" : "unsigned short";
  flush();
  line(kUnroll);
  open(over_words());
  for (uint32_t i = 0; i < count; ++i) {
    const std::string at = operand_place(inst, i, index, stride);
    const std::string bits = fmt::format("({})({}[prism_r] >> {})", stored_type,
                                         fragment_names_[inst.object], i * 32 / count);
    if (memory.element == f.element)
      line(fmt::format("{}[{}] = {};", memory_names_[inst.object2], at, bits));
    else
      store_element(inst.object2, at, widen(f.element, bits));
  }
  close();
}

void FragmentPrinter::make(const Inst& inst) {
  const ir::Block& body = inst.blocks[0];
  flush();
  line(kUnroll);
  open(over_words());
  set_value(body.params[0], "prism_a_row(prism_r)");
  set_value(body.params[1], first_k("prism_a_k", kernel_.fragments[inst.object].k));
  const std::string value = yielded(body);
  line(fmt::format("{}[prism_r] = {};", fragment_names_[inst.object], bare(value)));
  close();
}

void FragmentPrinter::map(const Inst& inst) {
  const ir::Block& body = inst.blocks[0];
  flush();
  line(kUnroll);
  open(over_sums());
  const size_t sources = inst.objects.size();
  for (size_t i = 0; i < sources; ++i)
    set_value(body.params[i], fragment_names_[inst.objects[i]] + "[prism_e]");
  for (size_t i = sources; i < body.params.size(); ++i)
    set_value(body.params[i],
              i == sources ? "prism_fragment_row(prism_e)" : "prism_fragment_column(prism_e)");
  const std::string value = yielded(body);
  line(fmt::format("{}[prism_e] = {};", fragment_names_[inst.object], bare(value)));
  close();
}

}  // namespace prism
