// The traversal shared by all passes.
#include "lower/rewriter.h"

namespace prism::lower_detail {

ir::Kernel Rewriter::run(const ir::Kernel& kernel) {
  source_ = &kernel;
  map_.assign(kernel.values.size(), ir::kNone);
  ir::Kernel empty = kernel;
  empty.body = {};
  empty.values.clear();
  prepare(empty);
  dsl::Builder builder(std::move(empty));
  builder.last_location = kernel.where;
  emit_body(kernel.body);
  return builder.finish();
}

void Rewriter::emit(const ir::Block& block) {
  for (const ir::Inst& inst : block.body) {
    if (inst.where.line) dsl::Builder::current().last_location = inst.where;
    if (!rewrite(inst)) copy(inst);
  }
}

ir::Block Rewriter::emit_nested(const ir::Block& block) {
  dsl::Builder& builder = dsl::Builder::current();
  builder.begin_block();
  std::vector<ir::Value> params;
  for (ir::Value old : block.params) {
    params.push_back(builder.new_value(source_->values[old]));
    map_[old] = params.back();
  }
  emit(block);
  ir::Block written = builder.end_block();
  written.params = std::move(params);
  return written;
}

void Rewriter::copy(const ir::Inst& inst) {
  dsl::Builder& builder = dsl::Builder::current();
  ir::Inst made = inst;
  made.result = ir::kNone;
  for (ir::Value& value : made.args) value = map_.at(value);
  made.blocks.clear();
  for (const ir::Block& block : inst.blocks) made.blocks.push_back(emit_nested(block));
  const ir::Value result = builder.append(std::move(made));
  if (inst.result != ir::kNone) map_[inst.result] = result;
}

}  // namespace prism::lower_detail
