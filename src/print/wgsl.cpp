// WGSL: declarations, the entry point, and statements.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/bindings.h"
#include "ir/verify.h"
#include "print/wgsl_printer.h"

namespace prism {
namespace {

using ir::Op;

// An index after each name keeps clear of WGSL's hundred reserved words and of other names.
std::string named(const std::string& wanted, size_t index) {
  std::string name;
  for (char c : wanted) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) name = "x" + name;
  return name + (name.back() == '_' ? "" : "_") + std::to_string(index);
}

bool needs_whole_group(const ir::Block& block) {
  bool found = false;
  ir::walk(block, [&](const ir::Inst& inst) { found |= inst.op == Op::barrier; });
  return found;
}

// Values that may be written where they are used: they neither read nor write anything.
bool is_pure(Op op) {
  switch (op) {
    case Op::read:
    case Op::load:
    case Op::load_words:
    case Op::atomic:
    case Op::subgroup_reduce:
    case Op::subgroup_scan:
    case Op::subgroup_shuffle:
    case Op::subgroup_shuffle_xor:
      return false;
    default:
      return true;
  }
}

// Longer expressions get a name, so that a line stays readable.
constexpr size_t kLongestInline = 60;

}  // namespace

WgslPrinter::WgslPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities)
    : kernel_(kernel),
      capabilities_(capabilities),
      texts_(kernel.values.size()),
      constants_(kernel.values.size()),
      makers_(kernel.values.size(), nullptr),
      uniform_(ir::uniform_values(kernel)),
      uses_(kernel.values.size(), 0),
      made_in_(kernel.values.size(), 0),
      used_in_(kernel.values.size(), 0) {
  for (size_t i = 0; i < kernel.memories.size(); ++i)
    memory_names_.push_back(named(kernel.memories[i].name, i));
  for (size_t i = 0; i < kernel.variables.size(); ++i)
    variable_names_.push_back(named(kernel.variables[i].name, i + kernel.memories.size()));
  for (size_t i = 0; i < kernel.params.size(); ++i)
    param_names_.push_back(named(kernel.params[i].name, i));
  count_uses(kernel.body, ++blocks_);
}

void WgslPrinter::count_uses(const ir::Block& block, uint32_t block_number) {
  for (const Inst& inst : block.body) {
    for (Value arg : inst.args) {
      ++uses_[arg];
      used_in_[arg] = block_number;
    }
    if (inst.result != ir::kNone) {
      made_in_[inst.result] = block_number;
      makers_[inst.result] = &inst;
    }
    // A loop evaluates its operands and a condition block once a round: they count as blocks of
    // their own.
    if (inst.op == Op::for_)
      for (Value arg : inst.args) uses_[arg] += 1;
    for (const ir::Block& inner : inst.blocks) count_uses(inner, ++blocks_);
  }
}

void WgslPrinter::cannot(const std::string& what) const {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("kernel {}: WGSL cannot say {}", kernel_.name, what));
}

void WgslPrinter::line(const std::string& text) {
  out_ += std::string(static_cast<size_t>(depth_) * 2, ' ') + text + "\n";
}

std::string WgslPrinter::new_name(const char* stem) { return fmt::format("{}{}", stem, names_++); }

void WgslPrinter::define(const Inst& inst, const std::string& expression, bool pure) {
  const Value value = inst.result;
  if (pure && uses_[value] == 1 && used_in_[value] == made_in_[value] &&
      expression.size() <= kLongestInline) {
    texts_[value] = expression;
    return;
  }
  texts_[value] = new_name("v");
  line(fmt::format("let {} = {};", texts_[value], expression));
}

std::string WgslPrinter::atom(Value value) {
  const std::string& text = texts_[value];
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
  if (!std::all_of(text.begin(), text.end(), plain)) {
    const std::string name = new_name("v");
    line(fmt::format("let {} = {};", name, text));
    texts_[value] = name;
  }
  return texts_[value];
}

// Every lane of the group has the same value here, but it came through memory that lanes share,
// which WGSL takes for varying; one lane hands it to all in the way WGSL knows.
std::string WgslPrinter::agreed(Value value) {
  if (uniform_[value]) return use(value);
  agrees_ = true;
  const DType type = type_of(value).element;
  const std::string word = type == DType::b1    ? fmt::format("select(0u, 1u, {})", use(value))
                           : type == DType::u32 ? use(value)
                                                : fmt::format("bitcast<u32>({})", use(value));
  line(fmt::format("if (prism_local == 0u) {{ prism_agreed = {}; }}", word));
  const std::string name = new_name("agreed");
  line(fmt::format("let {} = workgroupUniformLoad(&prism_agreed);", name));
  if (type == DType::b1) return fmt::format("({} != 0u)", name);
  return type == DType::u32 ? name
                            : fmt::format("bitcast<{}>({})", wgsl_type(type_of(value)), name);
}

void WgslPrinter::block(const ir::Block& block) {
  ++depth_;
  for (const Inst& inst : block.body) statement(inst);
  --depth_;
}

void WgslPrinter::statement(const Inst& inst) {
  switch (inst.op) {
    case Op::constant:
      texts_[inst.result] = literal(inst.type.element, inst.bits);
      constants_[inst.result] = inst.bits;
      return;
    case Op::comment: {
      std::string text = inst.text;
      std::replace(text.begin(), text.end(), '\n', ' ');
      return line("// " + text);
    }
    case Op::declare:
      return line(fmt::format("var {}: {} = {};", variable_names_[inst.object],
                              wgsl_type(kernel_.variables[inst.object].type), use(inst.args[0])));
    case Op::assign:
      return line(fmt::format("{} = {};", variable_names_[inst.object], use(inst.args[0])));
    case Op::load:
    case Op::load_words:
      return load(inst);
    case Op::store:
    case Op::store_words:
      return store(inst);
    case Op::atomic:
      return atomic(inst);
    case Op::barrier: {
      line("workgroupBarrier();");
      const bool writes = std::any_of(
          kernel_.memories.begin(), kernel_.memories.end(), [](const ir::Memory& memory) {
            return memory.space == ir::Space::buffer && memory.access == ir::Access::read_write;
          });
      if (writes) line("storageBarrier();");
      return;
    }
    case Op::if_:
      return if_statement(inst);
    case Op::for_:
      return for_statement(inst);
    case Op::while_:
      return while_statement(inst);
    case Op::break_:
      return line("break;");
    case Op::raw:
      return raw_statement(inst);
    case Op::subgroup_scan:
      return subgroup_scan(inst);
    case Op::wait_previous:
    case Op::launch_next:
      return;  // launches are ordered
    default:
      break;
  }
  if (inst.result == ir::kNone) cannot(ir::op_name(inst.op));
  // Vectors of literals get a name too: operations on literals alone are computed when the text is
  // compiled.
  define(inst, expression(inst), is_pure(inst.op) && inst.op != Op::make_vector);
}

void WgslPrinter::if_statement(const Inst& inst) {
  const bool whole = needs_whole_group(inst.blocks[0]) ||
                     (inst.blocks.size() > 1 && needs_whole_group(inst.blocks[1]));
  line(fmt::format("if ({}) {{", whole ? agreed(inst.args[0]) : use(inst.args[0])));
  block(inst.blocks[0]);
  if (inst.blocks.size() > 1 && !inst.blocks[1].body.empty()) {
    line("} else {");
    block(inst.blocks[1]);
  }
  line("}");
}

void WgslPrinter::for_statement(const Inst& inst) {
  const bool whole = needs_whole_group(inst.blocks[0]);
  std::vector<std::string> bounds;
  for (Value value : inst.args) bounds.push_back(whole ? agreed(value) : use(value));
  const Value index = inst.blocks[0].params[0];
  const std::string name = new_name("i");
  texts_[index] = name;
  line(fmt::format("for (var {0}: {1} = {2}; {0} < {3}; {0} += {4}) {{", name,
                   wgsl_type(type_of(index)), bounds[0], bounds[1], bounds[2]));
  block(inst.blocks[0]);
  line("}");
}

void WgslPrinter::while_statement(const Inst& inst) {
  const bool whole = needs_whole_group(inst.blocks[0]) || needs_whole_group(inst.blocks[1]);
  line("loop {");
  ++depth_;
  const ir::Block& condition = inst.blocks[0];
  for (size_t i = 0; i + 1 < condition.body.size(); ++i) statement(condition.body[i]);
  const Value yielded = condition.body.back().args[0];
  line(fmt::format("if (!({})) {{ break; }}", whole ? agreed(yielded) : use(yielded)));
  --depth_;
  block(inst.blocks[1]);
  line("}");
}

void WgslPrinter::raw_statement(const Inst& inst) {
  std::string text;
  for (size_t i = 0; i < inst.text.size(); ++i) {
    const size_t end = inst.text[i] == '{' ? inst.text.find('}', i) : std::string::npos;
    const std::string inside = end == std::string::npos ? "" : inst.text.substr(i + 1, end - i - 1);
    const bool number =
        !inside.empty() &&
        std::all_of(inside.begin(), inside.end(), [](unsigned char c) { return std::isdigit(c); });
    if (inside == "r")
      text += variable_names_.at(inst.object);
    else if (number && std::stoul(inside) < inst.args.size())
      text += use(inst.args[std::stoul(inside)]);
    else {
      text += inst.text[i];
      continue;
    }
    i = end;
  }
  line(text);
}

std::string WgslPrinter::declarations(bool zero) const {
  std::string text;
  uint32_t binding = 0;
  const std::vector<uint32_t> order = ir::bindings(kernel_);
  for (uint32_t i : order) {
    const ir::Memory& memory = kernel_.memories[i];
    const bool written = ir::is_written(memory);
    text += fmt::format("@group(0) @binding({}) var<storage, {}> {}: array<{}>;\n", binding++,
                        written ? "read_write" : "read", memory_names_[i], element_type(memory));
  }
  if (!kernel_.params.empty()) {
    std::string members;
    for (size_t i = 0; i < kernel_.params.size(); ++i)
      members +=
          fmt::format("  {}: {},\n", param_names_[i], wgsl_type({kernel_.params[i].type, 1}));
    text +=
        fmt::format("struct Params {{\n{}}}\n@group(0) @binding({}) var<uniform> params: Params;\n",
                    members, binding);
  }
  for (size_t i = 0; i < kernel_.memories.size(); ++i) {
    const ir::Memory& memory = kernel_.memories[i];
    if (memory.space == ir::Space::shared)
      text += fmt::format("var<workgroup> {}: array<{}, {}>;\n", memory_names_[i],
                          element_type(memory), memory.length);
  }
  if (agrees_) text += "var<workgroup> prism_agreed: u32;\n";
  // Zero in every lane, and no compiler can know it: no buffer has 2^31 elements.
  if (zero) {
    const std::string length =
        order.empty() ? "0u" : fmt::format("arrayLength(&{})", memory_names_[order[0]]);
    text += fmt::format("fn prism_zero() -> u32 {{ return {} >> 31u; }}\n", length);
  }
  return text;
}

std::string WgslPrinter::entry_point(const std::string& body) const {
  std::string text = fmt::format("\n@compute @workgroup_size({})\nfn {}(", kernel_.group_size,
                                 named(kernel_.name, 0));
  text +=
      "@builtin(local_invocation_index) prism_local: u32, @builtin(workgroup_id) prism_group: "
      "vec3<u32>,\n    "
      "@builtin(num_workgroups) prism_groups: vec3<u32>";
  if (kernel_.subgroup_size > 0) text += ", @builtin(subgroup_invocation_id) prism_lane: u32";
  text += ") {\n";
  for (size_t i = 0; i < kernel_.memories.size(); ++i) {
    const ir::Memory& memory = kernel_.memories[i];
    if (memory.space == ir::Space::local)
      text += fmt::format("  var {}: array<{}, {}>;\n", memory_names_[i], element_type(memory),
                          memory.length);
  }
  return text + body + "}\n";
}

PrintedKernel WgslPrinter::print() {
  --depth_;
  block(kernel_.body);
  const std::string body = entry_point(out_);
  PrintedKernel printed;
  printed.entry = named(kernel_.name, 0);
  printed.params_as_block = true;
  std::string head;
  if (capabilities_.math_f16 || capabilities_.storage_f16) head += "enable f16;\n";
  if (kernel_.subgroup_size > 0) {
    if (capabilities_.dialect_level != kWgslSubgroupsUnasked) head += "enable subgroups;\n";
    head += "diagnostic(off, subgroup_uniformity);\n";
  }
  if (body.find("dot4I8Packed") != std::string::npos ||
      body.find("dot4U8Packed") != std::string::npos)
    head += "requires packed_4x8_integer_dot_product;\n";
  const std::string functions = wgsl_prelude(body) + body;
  printed.text =
      head + declarations(functions.find("prism_zero()") != std::string::npos) + functions;
  return printed;
}

PrintedKernel print_wgsl(const ir::Kernel& lowered, const ir::Capabilities& capabilities) {
  return WgslPrinter(lowered, capabilities).print();
}

}  // namespace prism
