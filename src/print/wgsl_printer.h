// Lowered IR to WGSL. It is no child of the C family: types follow names, nothing converts by
// itself, memory has no pointers, and the language checks for itself that barriers stand in uniform
// flow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/capabilities.h"
#include "ir/kernel.h"
#include "print/printer.h"

namespace prism {

class WgslPrinter {
 public:
  WgslPrinter(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
  PrintedKernel print();

 private:
  using Op = ir::Op;
  using Inst = ir::Inst;
  using Type = ir::Type;
  using Value = ir::Value;

  // --- wgsl.cpp: the text around the body, and statements
  void count_uses(const ir::Block& block, uint32_t block_number);
  std::string declarations(bool zero) const;
  std::string entry_point(const std::string& body) const;
  void block(const ir::Block& block);
  void statement(const Inst& inst);
  void if_statement(const Inst& inst);
  void for_statement(const Inst& inst);
  void while_statement(const Inst& inst);
  void raw_statement(const Inst& inst);
  // The text of a value every lane agrees on, in a form WGSL can see to be so.
  std::string agreed(Value value);
  void line(const std::string& text);
  void define(const Inst& inst, const std::string& expression, bool pure);
  std::string new_name(const char* stem);
  [[noreturn]] void cannot(const std::string& what) const;

  // --- wgsl_memory.cpp
  std::string element_type(const ir::Memory& memory) const;
  std::string load_one(uint32_t memory, const std::string& index) const;
  std::string store_one(uint32_t memory, const std::string& index, const std::string& value) const;
  std::string word_one(uint32_t memory, const std::string& word) const;
  void store_word(uint32_t memory, const std::string& word, const std::string& value);
  void load(const Inst& inst);
  void store(const Inst& inst);
  void atomic(const Inst& inst);

  // --- wgsl_expressions.cpp
  std::string expression(const Inst& inst);
  std::vector<std::string> arguments(const Inst& inst) const;
  std::string per_lane(const Inst& inst, const char* function);
  std::string shift_count(Value count) const;
  std::string fused(const Inst& inst, std::vector<std::string> args) const;
  std::string subgroup(const Inst& inst, const std::vector<std::string>& args) const;
  void subgroup_scan(const Inst& inst);
  std::string identity(ir::ReduceOp op, Type type) const;
  std::string literal(DType type, uint64_t bits) const;
  std::string hidden(DType type, uint64_t bits) const;
  std::string use(Value value) const { return texts_[value]; }
  std::string atom(Value value);  // fit to stand several times
  const Type& type_of(Value value) const { return kernel_.values[value]; }

  const ir::Kernel& kernel_;
  const ir::Capabilities& capabilities_;
  std::vector<std::string> texts_;                  // what each value is written as
  std::vector<std::optional<uint64_t>> constants_;  // the bits of values that are literals
  std::vector<const Inst*> makers_;                 // the instruction each value comes from
  std::vector<bool> uniform_;                       // as WGSL's own analysis sees it
  std::vector<uint32_t> uses_, made_in_,
      used_in_;  // how often a value is used; the blocks it is made and used in
  std::vector<std::string> memory_names_, variable_names_, param_names_;
  uint32_t blocks_ = 0, names_ = 0;
  bool agrees_ = false;  // a shared word for agreed() is needed
  int depth_ = 1;
  std::string out_;
};

// "vec4<f32>", "u32", "bool".
std::string wgsl_type(ir::Type type);

// The prelude's functions that a text calls.
std::string wgsl_prelude(const std::string& text);

}  // namespace prism
