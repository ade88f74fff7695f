// Rewriter: copies a kernel instruction by instruction and lets a pass emit replacements in the
// kernel language.
#pragma once

#include <vector>

#include "dsl/builder.h"
#include "prism/kernel.h"
#include "prism/kernel_ir.h"

namespace prism::lower_detail {

// A pass overrides rewrite(): it either emits a replacement with dsl functions, binds the result
// and returns true, or returns false to have the instruction copied.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  ir::Kernel run(const ir::Kernel& kernel);

 protected:
  virtual bool rewrite(const ir::Inst& inst) = 0;
  // Modifies memories, variables and so on of the copy before any instruction is emitted.
  virtual void prepare(ir::Kernel&) {}
  // Emits the whole body; a pass may wrap it.
  virtual void emit_body(const ir::Block& body) { emit(body); }

  void emit(const ir::Block& block);              // in place
  ir::Block emit_nested(const ir::Block& block);  // as a block of its own, params included
  void copy(const ir::Inst& inst);

  dsl::Value now(ir::Value old) const { return dsl::Value(map_.at(old)); }
  dsl::Value arg(const ir::Inst& inst, size_t i) const { return now(inst.args[i]); }
  void bind(ir::Value old, dsl::Value value) { map_[old] = value.id(); }
  const ir::Kernel& source() const { return *source_; }
  ir::Kernel& target() { return dsl::Builder::current().kernel(); }

 private:
  const ir::Kernel* source_ = nullptr;
  std::vector<ir::Value> map_;
};

}  // namespace prism::lower_detail
