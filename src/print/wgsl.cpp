// Prints WGSL: types follow names, there are no implicit conversions, operations take whole
// vectors, memory has no pointers, and the language verifies that barriers are in uniform control
// flow.
#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "ir/bindings.h"
#include "ir/verify.h"
#include "print/c_family.h"
#include "print/quads.h"
#include "prism/error.h"

namespace prism {

using ir::Memory;
using ir::Op;
using ir::Space;

namespace {

constexpr CTable kTable = {
    {"bool", "i32", "u32", "i32", "u32", "i32", "u32", "i64", "u64", "f16", "f32", "f32", "f64"},
    {"", "", "", "", "", "i32", "u32", "", "", "f16", "", "f32", ""}};  // empty: no such arrays

// The form of operations that are neither an operator nor a function with C's name; {0} etc. are
// the arguments, {t} the type.
constexpr std::pair<Op, const char*> kForms[] = {
    {Op::abs, "abs({0})"},
    {Op::round_even, "round({0})"},
    {Op::rsqrt, "inverseSqrt({0})"},
    {Op::extract_bits, "extractBits({0}, {1}, {2})"},
    {Op::insert_bits, "insertBits({0}, {1}, {2}, {3})"},
    {Op::popcount, "countOneBits({0})"},
    {Op::count_leading_zeros, "countLeadingZeros({0})"},
    {Op::pack_f16, "pack2x16float({0})"},
    {Op::unpack_f16, "unpack2x16float({0})"},
    {Op::dot4_i8, "(dot4I8Packed({0}, {1}) + {2})"},
    {Op::dot4_u8, "(dot4U8Packed({0}, {1}) + {2})"},
    {Op::select, "select({2}, {1}, {0})"},
    {Op::cast, "{t}({0})"},
    {Op::cast_plain, "{t}({0})"},
    {Op::subgroup_shuffle, "subgroupShuffle({0}, {1})"},
    {Op::subgroup_shuffle_xor, "subgroupShuffleXor({0}, {bits}u)"}};

// Name suffixes of atomics and cross-lane operations, by AtomicOp and ReduceOp.
constexpr const char* kAcross[] = {"Add", "Min", "Max", "And", "Or", "Xor", "Exchange"};

uint32_t f32_bits(uint64_t f16_bits) {
  return std::bit_cast<uint32_t>(f32_from_f16(static_cast<uint16_t>(f16_bits)));
}

class WgslPrinter final : public CFamily {
 public:
  WgslPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
      : CFamily(kernel, capabilities, kTable),
        uniform_(ir::uniform_values(kernel)),
        makers_(kernel.values.size(), nullptr) {
    quads_ = quad_buffers(kernel);
    ir::walk(kernel.body, [&](const Inst& inst) {
      if (inst.result != ir::kNone) makers_[inst.result] = &inst;
    });
  }

  bool params_as_block() const override { return true; }

  std::vector<PreludeItem> prelude() const override {
    const std::vector<uint32_t> order = ir::bindings(kernel_);
    const std::string length =
        order.empty() ? "0u" : fmt::format("arrayLength(&{})", memory_names_[order[0]]);
    const bool asked = capabilities_.dialect_level != kWgslSubgroupsUnasked;
    return {{"f16", "enable f16;"},
            {"subgroup_invocation_id", fmt::format("{}diagnostic(off, subgroup_uniformity);",
                                                   asked ? "enable subgroups;\n" : "")},
            {"dot4I8Packed dot4U8Packed", "requires packed_4x8_integer_dot_product;"},
            {"prism_agreed", "var<workgroup> prism_agreed: u32;"},
            // Zero in every lane, but unknown to the compiler: no buffer has 2^31 elements. An
            // expression that uses it is not constant, so WGSL does not evaluate it at compile time
            // and reject infinities and overflowing literals.
            {"prism_zero", fmt::format("fn prism_zero() -> u32 {{ return {} >> 31u; }}", length)}};
  }

 private:
  std::string signature() override {
    std::string text;
    uint32_t binding = 0;
    for (uint32_t i : ir::bindings(kernel_))
      text += fmt::format("@group(0) @binding({}) var<storage, {}> {}: array<{}>;\n", binding++,
                          ir::is_written(kernel_.memories[i]) ? "read_write" : "read",
                          memory_names_[i], element_type(kernel_.memories[i]));
    if (!kernel_.params.empty()) {
      text += "struct prism_block {\n";
      for (size_t i = 0; i < kernel_.params.size(); ++i)
        text +=
            fmt::format("  {}: {},\n", param_names_[i], value_type({kernel_.params[i].type, 1}));
      text += fmt::format("}}\n@group(0) @binding({}) var<uniform> prism_params: prism_block;\n",
                          binding);
    }
    for (size_t i = 0; i < kernel_.memories.size(); ++i)
      if (kernel_.memories[i].space == Space::shared)
        text += array(kernel_.memories[i], memory_names_[i]) + ";\n";
    text += fmt::format("\n@compute @workgroup_size({})\nfn {}(", kernel_.group_size, entry());
    text +=
        "@builtin(local_invocation_index) prism_local: u32,\n    "
        "@builtin(workgroup_id) prism_group: vec3<u32>, "
        "@builtin(num_workgroups) prism_groups: vec3<u32>";
    if (kernel_.subgroup_size > 0) text += ", @builtin(subgroup_invocation_id) prism_lane: u32";
    return text + ")";
  }

  std::string element_type(const Memory& memory) const {
    const std::string type = stored_type(memory);
    if (type.empty())
      throw Error(ErrorCode::kNotSupported, fmt::format("kernel {}: WGSL has no array of {}",
                                                        kernel_.name, dtype_name(memory.element)));
    if (quads_[static_cast<size_t>(&memory - kernel_.memories.data())])
      return fmt::format("vec4<{}>", type);
    return memory.atomic ? fmt::format("atomic<{}>", type) : type;
  }

  std::string shared_memory() override { return {}; }  // declared before the function
  std::string array(const Memory& memory, const std::string& name) const override {
    return fmt::format("var{} {}: array<{}, {}>",
                       memory.space == Space::shared ? "<workgroup>" : "", name,
                       element_type(memory), memory.length);
  }
  std::string constant(Type, const std::string& name, const std::string& text) const override {
    return fmt::format("let {} = {};", name, text);
  }
  std::string variable(Type type, const std::string& name, const std::string& text) const override {
    return fmt::format("var {}: {} = {}", name, value_type(type), text);
  }
  std::string vector_type(Type type) const override {
    return fmt::format("vec{}<{}>", type.lanes, kTable.values[static_cast<size_t>(type.element)]);
  }
  std::string make_vector(Type type, const std::vector<std::string>& lanes) const override {
    return fmt::format("{}({})", vector_type(type), fmt::join(lanes, ", "));
  }
  std::string unroll() const override { return {}; }
  std::string param(uint32_t index) const override { return "prism_params." + param_names_[index]; }

  std::string barrier() override {
    const bool writes = std::ranges::any_of(kernel_.memories, [](const Memory& memory) {
      return memory.space == Space::buffer && memory.access == ir::Access::read_write;
    });
    return writes ? "workgroupBarrier(); storageBarrier();" : "workgroupBarrier();";
  }

  // In group-uniform control flow every lane has the same value, but if it comes from shared
  // memory, WGSL considers it varying: one lane broadcasts it in a way WGSL recognises as uniform.
  std::string decision(Value value, const Inst& inst) override {
    bool together = false;
    for (const ir::Block& block : inst.blocks)
      ir::walk(block, [&](const Inst& inner) { together |= inner.op == Op::barrier; });
    if (!together || uniform_[value]) return use(value);
    const Type type = type_of(value), words{DType::u32, 1};
    const bool truth = type.element == DType::b1;
    line(fmt::format(
        "if (prism_local == 0u) {{ prism_agreed = {}; }}",
        truth ? fmt::format("select(0u, 1u, {})", use(value)) : bitcast(words, type, use(value))));
    const std::string name = names_.unique("agreed");
    line(constant(words, name, "workgroupUniformLoad(&prism_agreed)"));
    return truth ? name + " != 0u" : bitcast(type, words, name);
  }

  // --- memory: a buffer used atomically is atomic in every access
  bool apart(const Inst&) const override { return true; }

  std::string load_scalar(const Memory& memory, const std::string& name,
                          const std::string& index) override {
    if (memory.atomic) return fmt::format("atomicLoad(&{}[{}])", name, index);
    return memory.element == DType::f16 ? fmt::format("f32({}[{}])", name, index)
                                        : fmt::format("{}[{}]", name, index);
  }

  void store_element(uint32_t memory, const std::string& index, const std::string& value) override {
    const Memory& m = kernel_.memories[memory];
    const std::string place = fmt::format("{}[{}]", memory_names_[memory], index);
    if (m.atomic) return line(fmt::format("atomicStore(&{}, {});", place, bare(value)));
    line(m.element == DType::f16 ? fmt::format("{} = f16({});", place, bare(value))
                                 : fmt::format("{} = {};", place, bare(value)));
  }

  std::string word(uint32_t memory, const std::string& index) override {
    const Memory& m = kernel_.memories[memory];
    if (m.element == DType::f16)
      return bitcast({DType::u32, 1}, {DType::f16, 2},
                     fmt::format("vec2<f16>({0}[({1}) * 2u], {0}[({1}) * 2u + 1u])",
                                 memory_names_[memory], index));
    return bitcast({DType::u32, 1}, {m.element, 1}, element(memory, index));
  }

  void store_word(uint32_t memory, const std::string& index, const std::string& value) override {
    const DType type = kernel_.memories[memory].element;
    if (type != DType::f16)
      return store_element(memory, index, bitcast({type, 1}, {DType::u32, 1}, value));
    const std::string pair = names_.unique("pair");
    line(constant({DType::f32, 2}, pair, fmt::format("unpack2x16float({})", value)));
    store_element(memory, fmt::format("({}) * 2u", index), pair + ".x");
    store_element(memory, fmt::format("({}) * 2u + 1u", index), pair + ".y");
  }

  std::string guarded(const Inst& inst, const std::string& predicate,
                      std::vector<std::string> parts) override {
    const std::string name = names_.unique("loaded"), type = value_type(inst.type);
    // Explicit: not every compiler clears a variable in each iteration of a loop.
    line(fmt::format("var {} = {}();", name, type));
    line(fmt::format("if ({}) {{ {} = {}({}); }}", bare(predicate), name, type,
                     fmt::join(parts, ", ")));
    return name;
  }

  std::string atomic(const Inst& inst, const std::string& pointer,
                     const std::vector<std::string>& args) override {
    if (static_cast<ir::AtomicOp>(inst.bits) != ir::AtomicOp::compare_exchange)
      return fmt::format("atomic{}({}, {})", kAcross[inst.bits], pointer, args[0]);
    // WGSL's exchange may fail spuriously; ours fails only if the value differs, so it retries.
    const std::string old = names_.unique("old"), tried = names_.unique("tried");
    line(variable(inst.type, old, literal(inst.type.element, 0)) + ";");
    open("loop");
    line(fmt::format("let {} = atomicCompareExchangeWeak({}, {}, {});", tried, pointer, args[1],
                     args[0]));
    line(fmt::format("{} = {}.old_value;", old, tried));
    line(fmt::format("if ({0}.exchanged || {1} != {2}) {{ break; }}", tried, old, args[1]));
    close();
    return old;
  }

  // --- values
  std::string bitcast(Type to, Type from, const std::string& text) override {
    if (to == from) return text;
    // Through f32, which represents every f16: not every compiler casts between a word and two
    // halves.
    if (from == Type{DType::f16, 2} && to == Type{DType::u32, 1})
      return fmt::format("pack2x16float(vec2<f32>({}))", text);
    if (from == Type{DType::u32, 1} && to == Type{DType::f16, 2})
      return fmt::format("vec2<f16>(unpack2x16float({}))", text);
    return fmt::format("bitcast<{}>({})", value_type(to), text);
  }

  std::string literal(DType type, uint64_t bits) override {
    const auto word = static_cast<uint32_t>(bits);
    const float value = std::bit_cast<float>(word);
    switch (type) {
      case DType::i32:
        // The smallest integer has no literal: it would be a negated number that is too large.
        return word == 0x80000000u ? hidden(type, bits)
                                   : fmt::format("{}i", static_cast<int32_t>(word));
      case DType::f16:
        return fmt::format("f16({})", literal(DType::f32, f32_bits(bits)));
      case DType::f32:
        // Infinities have no literal either; a compiler may merge the constants of both zeros; and
        // subnormal and very large numbers do not survive everywhere as decimals.
        return word == 0 || (std::isnormal(value) && std::fabs(value) <= 3.4e38f)
                   ? fmt::format("{}f", value)
                   : hidden(type, bits);
      default:
        return CFamily::literal(type, bits);
    }
  }

  // A literal hidden from the compiler: operations on literals alone would be evaluated, and
  // perhaps rejected, at compile time.
  std::string hidden(DType type, uint64_t bits) {
    if (type == DType::f16) return fmt::format("f16({})", hidden(DType::f32, f32_bits(bits)));
    const std::string word = fmt::format("(0x{:08x}u ^ prism_zero())", static_cast<uint32_t>(bits));
    return type == DType::b1 ? fmt::format("({} != 0u)", word)
                             : bitcast({type, 1}, {DType::u32, 1}, word);
  }

  void expression(const Inst& inst) override {
    if (inst.op == Op::extract || inst.op == Op::make_vector) return CFamily::expression(inst);
    const bool literals = std::ranges::all_of(
        inst.args, [&](Value arg) { return makers_[arg] && makers_[arg]->op == Op::constant; });
    const bool repeats = inst.op == Op::min || inst.op == Op::max;
    std::vector<std::string> args;
    for (Value arg : inst.args)
      args.push_back(literals  ? hidden(type_of(arg).element, makers_[arg]->bits)
                     : repeats ? atom(arg)
                               : use(arg));
    const DType argument = type_of(inst.args[0]).element;
    // All lanes take part in cross-lane operations, so they must not be inlined into conditional
    // code.
    define(inst.result, operation(inst, inst.type.element, argument, args), "t",
           !is_subgroup(inst.op));
  }

  std::string operation(const Inst& inst, DType, DType of,
                        const std::vector<std::string>& args) override {
    const auto form = [&](const char* text) {
      const auto arg = [&](size_t i) { return i < args.size() ? args[i] : std::string(); };
      return fmt::format(fmt::runtime(text), arg(0), arg(1), arg(2), arg(3),
                         fmt::arg("t", value_type(inst.type)), fmt::arg("bits", inst.bits));
    };
    switch (inst.op) {
      case Op::bit_xor:
        if (of == DType::b1) return form("({0} != {1})");
        break;
      case Op::bit_not:
        return form(of == DType::b1 ? "(!{0})" : "(~{0})");
      case Op::neg:
        return form(is_unsigned_int(of) ? "({t}(0u) - {0})" : "(-{0})");
      // WGSL's min and max leave the result for NaN undefined.
      case Op::min:
        return form(is_float(of) ? "select({0}, {1}, {1} < {0})" : "min({0}, {1})");
      case Op::max:
        return form(is_float(of) ? "select({0}, {1}, {0} < {1})" : "max({0}, {1})");
      case Op::shl_plain:
      case Op::shr_plain:
        if (of == DType::u32) break;  // a shift count is always unsigned
        return fmt::format("({} {} {}({}))", args[0], operator_text(inst.op),
                           value_type({DType::u32, inst.type.lanes}), args[1]);
      case Op::bitcast:
        return bitcast(inst.type, type_of(inst.args[0]), args[0]);
      case Op::fma:
        return fused(inst, args);
      case Op::subgroup_reduce:
        return fmt::format("subgroup{}({})", kAcross[inst.bits], args[0]);
      default:
        break;
    }
    for (const auto& [op, text] : kForms)
      if (op == inst.op) return form(text);
    if (const char* sign = operator_text(inst.op))
      return fmt::format("({} {} {})", args[0], sign, args[1]);
    if (const char* name = math_name(inst.op)) return fmt::format("{}({})", name, args[0]);
    cannot(inst);
  }

  // Drivers may rewrite n*a + (n*b + x) as n*(a+b) + x, which undoes an argument reduction with a
  // constant in several parts. WGSL cannot forbid it, so the inner sum passes through bits that are
  // opaque to them.
  std::string fused(const Inst& inst, std::vector<std::string> args) {
    const Inst* inner = makers_[inst.args[2]];
    const auto shares = [&](Value value) {
      return value == inner->args[0] || value == inner->args[1];
    };
    if (inner && inner->op == Op::fma && inst.type.element == DType::f32 &&
        (shares(inst.args[0]) || shares(inst.args[1]))) {
      const Type words{DType::u32, inst.type.lanes};
      args[2] = bitcast(inst.type, words,
                        fmt::format("{} ^ {}(prism_zero())", bitcast(words, inst.type, args[2]),
                                    value_type(words)));
    }
    return fmt::format("fma({})", fmt::join(args, ", "));
  }

  const std::vector<bool> uniform_;  // according to WGSL's own analysis
  std::vector<const Inst*> makers_;  // the instruction that defines each value
};

}  // namespace

std::unique_ptr<CFamily> make_wgsl_printer(const ir::Kernel& kernel,
                                           const ir::Capabilities& capabilities) {
  return std::make_unique<WgslPrinter>(kernel, capabilities);
}

}  // namespace prism
