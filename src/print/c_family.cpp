// Statements of printed text: the function around a kernel, its blocks, and the naming of values.
//
// A value used once in its own block is inlined; others get a name. A pending value that reads
// memory or a variable is emitted before anything that could change what it reads.
#include "print/c_family.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include <fmt/format.h>

#include "ir/bindings.h"
#include "prism/error.h"

namespace prism {

using ir::Block;
using ir::kNone;
using ir::Op;

namespace {

constexpr size_t kLongestInline = 90;  // characters of an expression without a name

size_t leaf_slot(Op op, uint32_t axis) {
  switch (op) {
    case Op::group_id:
      return axis;
    case Op::group_count:
      return 3 + axis;
    case Op::local_id:
      return 6;
    case Op::subgroup_id:
      return 7;
    default:
      return 8;
  }
}

const char* leaf_hint(size_t slot) {
  static constexpr const char* kHints[] = {"group_x",  "group_y",  "group_z",
                                           "groups_x", "groups_y", "groups_z",
                                           "local_id", "subgroup", "lane"};
  return kHints[slot];
}

bool is_leaf(Op op) {
  return op == Op::group_id || op == Op::group_count || op == Op::local_id ||
         op == Op::subgroup_id || op == Op::subgroup_lane;
}

bool is_simple(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
}

}  // namespace

std::string bare(const std::string& text) {
  if (text.empty() || text.front() != '(' || text.back() != ')') return text;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(')
      ++depth;
    else if (text[i] == ')' && --depth == 0 && i + 1 < text.size())
      return text;
  }
  return text.substr(1, text.size() - 2);
}

CFamily::CFamily(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                 const CTable& table)
    : kernel_(kernel), capabilities_(capabilities), table_(table), slots_(kernel.values.size()) {
  entry_ = "kernel_" + legal_identifier(kernel.name);
  for (const ir::Memory& memory : kernel.memories)
    memory_names_.push_back(names_.unique(memory.name));
  for (const ir::Param& p : kernel.params) param_names_.push_back(names_.unique(p.name));
  for (const ir::Variable& variable : kernel.variables)
    variable_names_.push_back(names_.unique(variable.name));
  for (const ir::Fragment& fragment : kernel.fragments)
    fragment_names_.push_back(names_.unique(fragment.name));
}

std::string CFamily::function() {
  count_uses();
  out_ = signature() + " {\n";
  depth_ = 1;
  const std::string shared = shared_memory();
  if (!shared.empty()) out_ += shared;
  for (size_t i = 0; i < kernel_.memories.size(); ++i) {
    const ir::Memory& memory = kernel_.memories[i];
    if (memory.space != ir::Space::local) continue;
    line(array(memory, memory_names_[i]) + ";");
  }
  const std::string opening = prologue();
  if (!opening.empty()) line(opening);
  declare_leaves();
  block(kernel_.body);
  out_ += "}\n";
  return std::move(out_);
}

std::string CFamily::array(const ir::Memory& memory, const std::string& name) const {
  return fmt::format("{} {}[{}]", stored_type(memory), name, std::max<uint64_t>(memory.length, 1));
}

std::string CFamily::constant(Type type, const std::string& name, const std::string& text) const {
  return fmt::format("const {} {} = {};", value_type(type), name, text);
}

std::string CFamily::variable(Type type, const std::string& name, const std::string& text) const {
  return fmt::format("{} {} = {}", value_type(type), name, text);
}

std::string CFamily::buffer_argument(uint32_t index) const {
  const ir::Memory& memory = kernel_.memories[index];
  return fmt::format("{}{}{}*{} {}", table_.global_space,
                     memory.access == ir::Access::read ? "const " : "", stored_type(memory),
                     restricted(memory) ? table_.restrict_word : "", memory_names_[index]);
}

std::string CFamily::param_argument(size_t index) const {
  return value_type({kernel_.params[index].type, 1}) + " " + param_names_[index];
}

std::string CFamily::arguments() const {
  std::vector<std::string> all;
  for (uint32_t i : ir::bindings(kernel_)) all.push_back(buffer_argument(i));
  for (size_t i = 0; i < kernel_.params.size(); ++i) all.push_back(param_argument(i));
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string CFamily::typed_atomic(const Inst& inst, const char* space, const std::string& pointer,
                                  const std::vector<std::string>& args) const {
  return fmt::format(
      "prism_atomic_{}_{}_{}({}, {})", ir::atomic_op_name(static_cast<ir::AtomicOp>(inst.bits)),
      dtype_name(kernel_.memories[inst.object].element), space, pointer, fmt::join(args, ", "));
}

std::string CFamily::shared_memory() {
  std::string text;
  for (size_t i = 0; i < kernel_.memories.size(); ++i)
    if (kernel_.memories[i].space == ir::Space::shared)
      text += "  " + shared_array(kernel_.memories[i], memory_names_[i]) + "\n";
  return text;
}

void CFamily::count_uses() {
  const size_t count = kernel_.values.size();
  uses_.assign(count, 0);
  dead_.assign(count, false);
  used_in_place_.assign(count, false);
  std::vector<uint32_t> defined_in(count, kNone);
  std::vector<const Inst*> order;
  uint32_t blocks = 0;
  const std::function<void(const Block&)> visit = [&](const Block& block) {
    const uint32_t id = blocks++;
    for (const Inst& inst : block.body) {
      order.push_back(&inst);
      for (Value arg : inst.args) {
        ++uses_[arg];
        used_in_place_[arg] = uses_[arg] == 1 && defined_in[arg] == id;
      }
      if (inst.result != kNone) defined_in[inst.result] = id;
      for (const Block& inner : inst.blocks) visit(inner);
    }
  };
  visit(kernel_.body);
  // An operand used only by unused values is unused as well.
  for (auto inst = order.rbegin(); inst != order.rend(); ++inst) {
    const bool pure =
        (*inst)->result != kNone && (*inst)->op != Op::atomic && (*inst)->op != Op::raw;
    if (!pure || uses_[(*inst)->result] != 0) continue;
    dead_[(*inst)->result] = true;
    for (Value arg : (*inst)->args) --uses_[arg];
  }
}

std::string CFamily::leaf(Op op, uint32_t axis) {
  switch (op) {
    case Op::group_id:
      return fmt::format("prism_group.{}", "xyz"[axis]);
    case Op::group_count:
      return fmt::format("prism_groups.{}", "xyz"[axis]);
    case Op::local_id:
      return "prism_local";
    case Op::subgroup_id:
      return fmt::format("prism_local / {}u", kernel_.subgroup_size);
    default:
      return "prism_lane";
  }
}

void CFamily::declare_leaves() {
  ir::walk(kernel_.body, [&](const Inst& inst) {
    if (!is_leaf(inst.op) || dead_[inst.result]) return;
    const uint32_t axis = inst.object == kNone ? 0 : inst.object;
    std::string& name = leaves_[leaf_slot(inst.op, axis)];
    if (!name.empty()) return;
    name = names_.unique(leaf_hint(leaf_slot(inst.op, axis)));
    line(constant({DType::u32, 1}, name, leaf(inst.op, axis)));
  });
}

void CFamily::line(const std::string& text) {
  if (!text.empty()) out_.append(static_cast<size_t>(depth_) * 2, ' ');
  out_ += text + "\n";
}

void CFamily::open(const std::string& text) {
  line(text.empty() ? "{" : text + " {");
  ++depth_;
}

void CFamily::close(const std::string& end) {
  --depth_;
  line(end);
}

std::string CFamily::use(Value value) {
  Slot& slot = slots_[value];
  if (slot.pending) reads_ = reads_ || slot.reads;
  slot.pending = false;
  return slot.text;
}

std::string CFamily::atom(Value value) {
  if (slots_[value].pending && !is_simple(slots_[value].text)) write_down(value, "t");
  return use(value);
}

void CFamily::write_down(Value value, const std::string& hint) {
  const std::string name = names_.unique(hint);
  line(constant(type_of(value), name, bare(slots_[value].text)));
  slots_[value] = {name, false, false};
}

void CFamily::define(Value value, const std::string& text, const std::string& hint,
                     bool inline_allowed) {
  slots_[value] = {text, true, reads_};
  if (inline_allowed && used_in_place_[value] && uses_[value] == 1 &&
      text.size() <= kLongestInline) {
    if (reads_) pending_reads_.push_back(value);
    return;
  }
  write_down(value, hint);
}

void CFamily::flush() {
  for (Value value : pending_reads_)
    if (slots_[value].pending) write_down(value, "t");
  pending_reads_.clear();
}

void CFamily::block(const Block& block) {
  const size_t outer = pending_reads_.size();
  for (const Inst& inst : block.body) instruction(inst);
  if (pending_reads_.size() > outer) pending_reads_.resize(outer);
}

std::string CFamily::yielded(const Block& block, const Inst* owner) {
  const size_t outer = pending_reads_.size();
  std::string text;
  for (const Inst& inst : block.body) {
    if (inst.op == Op::yield)
      text = owner ? decision(inst.args[0], *owner) : use(inst.args[0]);
    else
      instruction(inst);
  }
  if (pending_reads_.size() > outer) pending_reads_.resize(outer);
  return text;
}

void CFamily::instruction(const Inst& inst) {
  reads_ = false;
  if (inst.result != kNone && dead_[inst.result]) return;
  if (is_leaf(inst.op)) {
    slots_[inst.result].text = leaves_[leaf_slot(inst.op, inst.object == kNone ? 0 : inst.object)];
    return;
  }
  switch (inst.op) {
    case Op::constant:
      slots_[inst.result].text = literal(inst.type.element, inst.bits);
      return;
    case Op::param:
      slots_[inst.result].text = param(inst.object);
      return;
    case Op::read:
      reads_ = true;
      // A vector read is inlined as its variable's name, which may be repeated.
      define(inst.result, variable_names_[inst.object], kernel_.variables[inst.object].name);
      return;
    case Op::load:
    case Op::load_words:
      load(inst);
      return;
    default:
      break;
  }
  if (inst.result != kNone && inst.op != Op::atomic)
    expression(inst);
  else
    statement(inst);
}

void CFamily::statement(const Inst& inst) {
  switch (inst.op) {
    case Op::declare: {
      const std::string value = bare(use(inst.args[0]));
      line(variable(kernel_.variables[inst.object].type, variable_names_[inst.object], value) +
           ";");
      return;
    }
    case Op::assign: {
      const std::string value = bare(use(inst.args[0]));
      flush();
      line(fmt::format("{} = {};", variable_names_[inst.object], value));
      return;
    }
    case Op::store:
    case Op::store_words:
      store(inst);
      return;
    case Op::atomic: {
      std::vector<std::string> args;
      for (size_t i = 1; i < inst.args.size(); ++i) args.push_back(bare(use(inst.args[i])));
      const std::string address =
          fmt::format("&{}[{}]", memory_names_[inst.object], bare(use(inst.args[0])));
      flush();
      const std::string call = atomic(inst, address, args);
      if (inst.result != kNone && uses_[inst.result] > 0)
        define(inst.result, call, "old", false);
      else if (!is_simple(call))
        line(call + ";");
      return;
    }
    case Op::barrier:
      flush();
      line(barrier());
      return;
    case Op::device_fence:
      if (device_fence().empty()) cannot(inst);
      flush();
      line(device_fence());
      return;
    case Op::if_:
      if_statement(inst);
      return;
    case Op::for_:
      for_statement(inst);
      return;
    case Op::while_:
      while_statement(inst);
      return;
    case Op::break_:
      line("break;");
      return;
    case Op::comment: {
      std::string text = inst.text;
      std::replace(text.begin(), text.end(), '\n', ' ');
      // A backslash at the end would continue the comment on the next line.
      while (!text.empty() && text.back() == '\\') text.pop_back();
      line("// " + text);
      return;
    }
    case Op::raw:
      raw_statement(inst);
      return;
    default:
      // wait_previous and launch_next have no effect if launches do not overlap.
      if (!special(inst) && inst.op != Op::wait_previous && inst.op != Op::launch_next)
        cannot(inst);
      return;
  }
}

void CFamily::if_statement(const Inst& inst) {
  const std::string condition = bare(decision(inst.args[0], inst));
  flush();
  open(fmt::format("if ({})", condition));
  block(inst.blocks[0]);
  if (inst.blocks.size() > 1 && !inst.blocks[1].body.empty()) {
    close("} else {");
    ++depth_;
    block(inst.blocks[1]);
  }
  close();
}

void CFamily::for_statement(const Inst& inst) {
  const std::string start = bare(decision(inst.args[0], inst));
  // Evaluates the bounds once, before the loop.
  const auto bound = [&](Value value) {
    if (slots_[value].pending && slots_[value].reads) write_down(value, "t");
    return decision(value, inst);
  };
  const std::string end = bound(inst.args[1]);
  const std::string step = bound(inst.args[2]);
  flush();
  const Value index = inst.blocks[0].params[0];
  const std::string name = names_.unique("i");
  if (inst.bits == 1 && !unroll().empty()) line(unroll());
  open(fmt::format("for ({}; {} < {}; {})", variable(type_of(index), name, start), name, end,
                   step == "1u" || step == "1" ? name + "++" : name + " += " + bare(step)));
  set_value(index, name);
  block(inst.blocks[0]);
  close();
}

void CFamily::while_statement(const Inst& inst) {
  flush();
  std::string before;
  std::swap(before, out_);
  ++depth_;
  const std::string condition = yielded(inst.blocks[0], &inst);
  --depth_;
  std::swap(before, out_);
  if (before.empty()) {
    open(fmt::format("while ({})", bare(condition)));
  } else {
    open("while (true)");
    out_ += before;
    line(fmt::format("if (!{}) {{ break; }}",
                     condition.front() == '(' ? condition : "(" + condition + ")"));
  }
  block(inst.blocks[1]);
  close();
}

void CFamily::raw_statement(const Inst& inst) {
  std::string text = inst.text;
  const auto replace = [&](const std::string& mark, const std::string& with) {
    for (size_t at = text.find(mark); at != std::string::npos;
         at = text.find(mark, at + with.size()))
      text.replace(at, mark.size(), with);
  };
  for (size_t i = 0; i < inst.args.size(); ++i)
    replace(fmt::format("{{{}}}", i), atom(inst.args[i]));
  if (inst.object != kNone) replace("{r}", variable_names_[inst.object]);
  flush();
  line(text);
}

void CFamily::cannot(const Inst& inst) const {
  throw Error(
      ErrorCode::kNotSupported,
      fmt::format(
          "printing kernel {} as {}: {} ({}) has no form there; was the kernel lowered with the "
          "capabilities it is printed with?",
          kernel_.name, capabilities_.dialect, ir::op_name(inst.op),
          ir::location_text(inst.where)));
}

PrintedKernel print_alone(CFamily& printer) {
  PrintedKernel printed;
  const std::string function = printer.function();
  printed.entry = printer.entry();
  printed.text = used_prelude(printer.prelude(), function) + "\n" + function;
  printed.params_as_block = printer.params_as_block();
  return printed;
}

}  // namespace prism
