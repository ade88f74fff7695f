// The block stack and the per-thread current builder.
#include "dsl/builder.h"

#include <utility>

#include "prism/error.h"

namespace prism::dsl {
namespace {
thread_local Builder* current_builder = nullptr;
}

Builder::Builder(ir::Kernel kernel) : kernel_(std::move(kernel)), previous_(current_builder) {
  stack_.emplace_back();
  current_builder = this;
}

Builder::~Builder() { current_builder = previous_; }

Builder& Builder::current() {
  if (!current_builder)
    throw Error(ErrorCode::kInvalidKernel,
                "kernel language: a value was made outside of a kernel; write it inside "
                "kernel(\"name\", ...)");
  return *current_builder;
}

ir::Value Builder::new_value(ir::Type type) {
  kernel_.values.push_back(type);
  return static_cast<ir::Value>(kernel_.values.size() - 1);
}

ir::Value Builder::append(ir::Inst inst) {
  if (inst.type.lanes != 0 && inst.result == ir::kNone) inst.result = new_value(inst.type);
  if (inst.where.line)
    last_location = inst.where;
  else
    inst.where = last_location;
  const ir::Value result = inst.result;
  if (inst.op == ir::Op::constant && is_int(inst.type.element))
    constants_.emplace(result, inst.bits);
  stack_.back().body.push_back(std::move(inst));
  return result;
}

ir::Value Builder::append(ir::Op op, ir::Type type, std::vector<ir::Value> args,
                          ir::Location where) {
  ir::Inst inst;
  inst.op = op;
  inst.type = type;
  inst.args = std::move(args);
  inst.where = where;
  return append(std::move(inst));
}

const ir::Inst* Builder::last() const {
  return stack_.back().body.empty() ? nullptr : &stack_.back().body.back();
}

ir::Inst Builder::take_last() {
  ir::Inst inst = std::move(stack_.back().body.back());
  stack_.back().body.pop_back();
  return inst;
}

void Builder::amend_last(const std::function<void(ir::Inst&)>& change) {
  change(stack_.back().body.back());
}

std::optional<uint64_t> Builder::known_constant(ir::Value value) const {
  const auto found = constants_.find(value);
  if (found == constants_.end()) return std::nullopt;
  return found->second;
}

void Builder::begin_block() { stack_.emplace_back(); }

ir::Block Builder::end_block() {
  ir::Block block = std::move(stack_.back());
  stack_.pop_back();
  return block;
}

ir::Kernel Builder::finish() {
  kernel_.body = end_block();
  return std::move(kernel_);
}

void Builder::fail(const ir::Location& where, const std::string& message) const {
  throw Error(ErrorCode::kInvalidKernel,
              "kernel " + kernel_.name + " (" + ir::location_text(where) + "): " + message);
}

}  // namespace prism::dsl
