// Builder: collects instructions into blocks and checks the types of each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism::dsl {

// One kernel under construction. The handles of kernel.h append to this thread's current builder.
class Builder {
 public:
  explicit Builder(ir::Kernel kernel);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  static Builder& current();  // throws kInvalidKernel outside of kernel(...)

  ir::Kernel& kernel() { return kernel_; }
  const ir::Type& type_of(ir::Value value) const { return kernel_.values.at(value); }
  ir::Value new_value(ir::Type type);

  // Appends an instruction; assigns it a result if its type is not void.
  ir::Value append(ir::Inst inst);
  ir::Value append(ir::Op op, ir::Type type, std::vector<ir::Value> args, ir::Location where);

  // The last instruction of the open block, or null.
  const ir::Inst* last() const;
  ir::Inst take_last();  // removes it
  // Modifies the last appended instruction.
  void amend_last(const std::function<void(ir::Inst&)>& change);
  // The value of an integer constant of this kernel.
  std::optional<uint64_t> known_constant(ir::Value value) const;

  void begin_block();
  ir::Block end_block();

  ir::Kernel finish();  // closes the outermost block

  // Throws kInvalidKernel: "kernel add (file.cpp:12): message".
  [[noreturn]] void fail(const ir::Location& where, const std::string& message) const;

  // The most recent location, for handles that cannot record their own.
  ir::Location last_location;

 private:
  ir::Kernel kernel_;
  std::vector<ir::Block> stack_;
  std::unordered_map<ir::Value, uint64_t> constants_;
  Builder* previous_;
};

}  // namespace prism::dsl
