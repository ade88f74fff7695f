// Names of IR elements and the text form of a kernel.
#include "prism/kernel_ir.h"

#include <bit>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "prism/capabilities.h"

namespace prism::ir {

std::string type_name(Type type) {
  if (type.lanes == 0) return "void";
  std::string name = dtype_name(type.element);
  return type.lanes == 1 ? name : name + "x" + std::to_string(type.lanes);
}

const char* op_name(Op op) {
  static constexpr const char* kNames[] = {"constant",
                                           "param",
                                           "group_id",
                                           "group_count",
                                           "local_id",
                                           "subgroup_size",
                                           "subgroup_id",
                                           "subgroup_lane",
                                           "add",
                                           "sub",
                                           "mul",
                                           "div",
                                           "div_trunc",
                                           "rem_trunc",
                                           "div_floor",
                                           "mod_floor",
                                           "div_plain",
                                           "mul_high",
                                           "fma",
                                           "neg",
                                           "abs",
                                           "min",
                                           "max",
                                           "floor",
                                           "ceil",
                                           "trunc",
                                           "round_even",
                                           "sqrt",
                                           "rsqrt",
                                           "exp",
                                           "exp2",
                                           "log",
                                           "log2",
                                           "sin",
                                           "cos",
                                           "tanh",
                                           "bit_and",
                                           "bit_or",
                                           "bit_xor",
                                           "bit_not",
                                           "shl",
                                           "shr",
                                           "shl_plain",
                                           "shr_plain",
                                           "extract_bits",
                                           "insert_bits",
                                           "popcount",
                                           "count_leading_zeros",
                                           "eq",
                                           "ne",
                                           "lt",
                                           "le",
                                           "gt",
                                           "ge",
                                           "select",
                                           "cast",
                                           "cast_plain",
                                           "bitcast",
                                           "pack_f16",
                                           "unpack_f16",
                                           "pack_8",
                                           "unpack_i8",
                                           "unpack_u8",
                                           "dot4_i8",
                                           "dot4_u8",
                                           "make_vector",
                                           "extract",
                                           "declare",
                                           "read",
                                           "assign",
                                           "load",
                                           "store",
                                           "load_words",
                                           "store_words",
                                           "atomic",
                                           "async_copy",
                                           "async_commit",
                                           "async_wait",
                                           "barrier",
                                           "device_fence",
                                           "subgroup_reduce",
                                           "subgroup_scan",
                                           "subgroup_shuffle",
                                           "subgroup_shuffle_xor",
                                           "group_reduce",
                                           "fragment_fill",
                                           "fragment_load",
                                           "fragment_store",
                                           "fragment_multiply",
                                           "fragment_map",
                                           "fragment_row_reduce",
                                           "fragment_make",
                                           "fragment_convert",
                                           "if",
                                           "for",
                                           "while",
                                           "break",
                                           "yield",
                                           "wait_previous",
                                           "launch_next",
                                           "comment",
                                           "raw"};
  static_assert(std::size(kNames) == kOpCount);
  return kNames[static_cast<size_t>(op)];
}

const char* reduce_op_name(ReduceOp op) {
  static constexpr const char* kNames[] = {"add", "min", "max", "and", "or", "xor"};
  return kNames[static_cast<size_t>(op)];
}

const char* atomic_op_name(AtomicOp op) {
  static constexpr const char* kNames[] = {"add", "min", "max",      "and",
                                           "or",  "xor", "exchange", "compare_exchange"};
  return kNames[static_cast<size_t>(op)];
}

std::string location_text(const Location& where) {
  std::string_view file = where.file;
  if (auto slash = file.find_last_of("/\\"); slash != std::string_view::npos)
    file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, where.line);
}

std::vector<uint32_t> Kernel::buffers() const {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < memories.size(); ++i) {
    if (memories[i].space != Space::buffer || memories[i].piece != 0) continue;
    if (memories[i].binding >= result.size()) result.resize(memories[i].binding + 1, kNone);
    result[memories[i].binding] = i;
  }
  return result;
}

uint64_t Kernel::shared_bytes() const {
  uint64_t total = 0;
  for (const Memory& memory : memories)
    if (memory.space == Space::shared)
      total += (memory.length * dtype_bytes(memory.element) + 15) / 16 * 16;
  return total;
}

namespace {

std::string constant_text(const Inst& inst) {
  const uint64_t bits = inst.bits;
  switch (inst.type.element) {
    case DType::b1:
      return bits ? "true" : "false";
    case DType::f32:
      return fmt::format("{} (0x{:08x})", std::bit_cast<float>(static_cast<uint32_t>(bits)), bits);
    case DType::f64:
      return fmt::format("{} (0x{:016x})", std::bit_cast<double>(bits), bits);
    case DType::f16:
      return fmt::format("{} (0x{:04x})", f32_from_f16(static_cast<uint16_t>(bits)), bits);
    case DType::i32:
      return std::to_string(static_cast<int32_t>(bits));
    case DType::i64:
      return std::to_string(static_cast<int64_t>(bits));
    default:
      return std::to_string(bits);
  }
}

class TextWriter {
 public:
  explicit TextWriter(const Kernel& kernel) : kernel_(kernel) {}

  std::string write() {
    out_ += fmt::format("kernel {} group {} subgroup {} required {}{}\n", kernel_.name,
                        kernel_.group_size, kernel_.subgroup_size, kernel_.required_subgroup_size,
                        kernel_.folded ? " folded" : "");
    for (const Param& p : kernel_.params)
      out_ += fmt::format("  param {} {}\n", dtype_name(p.type), p.name);
    for (const Memory& m : kernel_.memories) write_memory(m);
    for (const Variable& v : kernel_.variables)
      out_ += fmt::format("  variable {} {}\n", type_name(v.type), v.name);
    for (const Fragment& f : kernel_.fragments) {
      static constexpr const char* kRoles[] = {"a", "b", "accumulator"};
      out_ += fmt::format("  fragment {} {} {} {}x{}x{}\n", kRoles[static_cast<size_t>(f.role)],
                          dtype_name(f.element), f.name, f.m, f.n, f.k);
    }
    write_block(kernel_.body, 1);
    return std::move(out_);
  }

 private:
  void write_memory(const Memory& m) {
    static constexpr const char* kAccess[] = {"in", "out", "inout"};
    if (m.space == Space::buffer)
      out_ +=
          fmt::format("  buffer {} {} {} binding {} piece {}{}{}\n",
                      kAccess[static_cast<size_t>(m.access)], dtype_name(m.element), m.name,
                      m.binding, m.piece, m.constant ? " constant" : "", m.atomic ? " atomic" : "");
    else
      out_ += fmt::format("  {} {} {}[{}]{}\n", m.space == Space::shared ? "shared" : "local",
                          dtype_name(m.element), m.name, m.length, m.atomic ? " atomic" : "");
  }

  std::string object_text(const Inst& inst) {
    switch (inst.op) {
      case Op::param:
        return " " + kernel_.params[inst.object].name;
      case Op::declare:
      case Op::read:
      case Op::assign:
      case Op::raw:
        return inst.object == kNone ? "" : " " + kernel_.variables[inst.object].name;
      case Op::load:
      case Op::store:
      case Op::load_words:
      case Op::store_words:
      case Op::atomic:
        return " " + kernel_.memories[inst.object].name;
      case Op::async_copy:
        return " " + kernel_.memories[inst.object].name + " " + kernel_.memories[inst.object2].name;
      case Op::fragment_fill:
      case Op::fragment_load:
      case Op::fragment_store:
      case Op::fragment_multiply:
      case Op::fragment_map:
      case Op::fragment_row_reduce:
      case Op::fragment_make:
      case Op::fragment_convert: {
        std::string text = " " + kernel_.fragments[inst.object].name;
        for (uint32_t f : inst.objects) text += " " + kernel_.fragments[f].name;
        if (inst.object2 != kNone) text += " " + kernel_.memories[inst.object2].name;
        return text;
      }
      default:
        return inst.object == kNone ? "" : fmt::format(" #{}", inst.object);
    }
  }

  void write_block(const Block& block, int depth) {
    for (const Inst& inst : block.body) write_inst(inst, depth);
  }

  void write_inst(const Inst& inst, int depth) {
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    if (inst.result != kNone) out_ += fmt::format("%{}: {} = ", inst.result, type_name(inst.type));
    out_ += op_name(inst.op);
    if (inst.op == Op::constant) {
      out_ += " " + constant_text(inst);
    } else {
      out_ += object_text(inst);
      for (Value arg : inst.args) out_ += fmt::format(" %{}", arg);
      if (inst.op == Op::atomic)
        out_ += fmt::format(" {}", atomic_op_name(static_cast<AtomicOp>(inst.bits)));
      else if (inst.op == Op::subgroup_reduce || inst.op == Op::subgroup_scan ||
               inst.op == Op::group_reduce || inst.op == Op::fragment_row_reduce)
        out_ += fmt::format(" {}", reduce_op_name(static_cast<ReduceOp>(inst.bits)));
      else if (inst.bits)
        out_ += fmt::format(" [{}]", inst.bits);
      if (!inst.text2.empty()) out_ += " " + inst.text2;
      if (!inst.text.empty()) out_ += " \"" + inst.text + "\"";
    }
    for (const Block& block : inst.blocks) {
      out_ += " {";
      for (Value param : block.params) out_ += fmt::format(" %{}", param);
      out_ += "\n";
      write_block(block, depth + 1);
      out_.append(static_cast<size_t>(depth) * 2, ' ');
      out_ += "}";
    }
    out_ += "\n";
  }

  const Kernel& kernel_;
  std::string out_;
};

}  // namespace

std::string to_text(const Kernel& kernel) { return TextWriter(kernel).write(); }

std::string Capabilities::key() const {
  std::string text = fmt::format(
      "{}:{} s{}{}{}{}{} m{}{}{}{} d{}a{}c{}l{}e{} g{} n{} sh{} b{}x{} r{} y{} f", dialect,
      dialect_level, storage_8, storage_16, storage_f16, storage_bf16, narrow_arrays, math_f16,
      math_i64, math_f64, precise_math, dot4, float_atomics, async_copy, dependent_launch,
      device_fence, subgroup_size, max_group_size, shared_bytes, max_buffers, max_binding_bytes,
      raw_atomic_buffers, fragment_layout);
  for (const FragmentShape& f : fragments)
    text += fmt::format("{}{}{}x{}x{},", dtype_name(f.operand), dtype_name(f.accumulator), f.m, f.n,
                        f.k);
  return text;
}

}  // namespace prism::ir
