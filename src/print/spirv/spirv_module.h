// Module: a SPIR-V module under construction, with its sections and deduplicated types and
// constants.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "print/spirv/spirv_words.h"

namespace prism::spirv {

using Id = uint32_t;
using Words = std::vector<uint32_t>;

class Module {
 public:
  Id new_id() { return next_id_++; }

  void require(Capability capability) { capabilities_.insert(static_cast<uint32_t>(capability)); }
  void require_extension(std::string_view name) { extensions_.insert(std::string(name)); }
  void use_vulkan_memory_model();  // and SPIR-V 1.6, which cooperative matrices need
  bool vulkan_memory_model() const { return vulkan_memory_model_; }

  Id void_type() { return declare(Code::TypeVoid, {}); }
  Id bool_type() { return declare(Code::TypeBool, {}); }
  Id int_type(uint32_t bits, bool is_signed = false) {
    return declare(Code::TypeInt, {bits, is_signed ? 1u : 0u});
  }
  Id float_type(uint32_t bits) { return declare(Code::TypeFloat, {bits}); }
  Id vector_type(Id element, uint32_t lanes) { return declare(Code::TypeVector, {element, lanes}); }
  Id array_type(Id element, uint32_t length) {
    return declare(Code::TypeArray, {element, constant_u32(length)});
  }
  Id pointer_type(StorageClass storage, Id to);
  // A distinct struct with its own decorations.
  Id new_struct(const Words& members);
  // struct { element array[]; }, laid out for a storage buffer.
  Id buffer_type(Id element, uint32_t stride);

  Id constant(Id type, uint64_t bits, uint32_t width);
  Id constant_u32(uint32_t value) { return constant(int_type(32), value, 32); }
  Id constant_bool(bool value);
  Id zero(Id type) { return declare_typed(Code::ConstantNull, type, {}); }
  // A type by its instruction; equal operands give the same id.
  Id declare(Code code, Words operands);

  // A variable outside the function.
  Id global_variable(StorageClass storage, Id type);
  // A builtin input; adds it to the entry point's interface.
  Id input_variable(BuiltIn builtin, Id type);
  // A variable of the function, placed at its start wherever it is requested.
  Id function_variable(Id type);

  void name(Id id, std::string_view text);
  void decorate(Id id, Decoration decoration, const Words& operands = {});
  void decorate_member(Id type, uint32_t member, Decoration decoration, const Words& operands);
  void execution_mode(ExecutionMode mode, const Words& operands);

  // Instructions of the function's body.
  Id emit(Code code, Id type, const Words& operands);
  void emit_void(Code code, const Words& operands);
  Id glsl(Glsl instruction, Id type, const Words& operands);
  void label(Id id);
  Id current_label() const { return current_label_; }

  Words finish(std::string_view entry);

 private:
  Id declare_typed(Code code, Id type, Words operands);

  Id next_id_ = 1;
  std::set<uint32_t> capabilities_;
  std::set<std::string> extensions_;
  bool vulkan_memory_model_ = false;
  Id glsl_ = 0;
  Id main_ = 0;
  std::map<Words, Id> declared_;
  std::map<uint32_t, Id> inputs_;
  std::vector<Id> input_ids_, global_ids_;
  Words modes_, names_, decorations_, globals_, function_variables_, body_;
  Id current_label_ = 0;
};

}  // namespace prism::spirv
