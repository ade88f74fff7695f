// Emitter: converts one lowered kernel to a SPIR-V module, instruction by instruction.
//
// Integers are SPIR-V integers without a sign: the instruction determines signedness. i32 and u32
// are therefore one type, and a bitcast between them is a no-op.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "print/spirv/spirv_module.h"
#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism::spirv {

class Emitter {
 public:
  Emitter(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
  Words run();

 private:
  // --- types and names (spirv.cpp)
  Id type_id(ir::Type type);
  Id scalar_id(DType element);
  Id value(ir::Value v) const { return values_[v]; }
  const ir::Type& type_of(ir::Value v) const { return kernel_.values[v]; }
  [[noreturn]] void fail(const ir::Inst& inst, const std::string& what) const;
  bool has(uint32_t feature) const { return (capabilities_.dialect_level & feature) != 0; }
  void float_controls();
  void declare_params();
  void declare_variables();

  // --- values (spirv_values.cpp): the id of the result, 0 if the op belongs to another group
  Id leaf(const ir::Inst& inst);
  Id arithmetic(const ir::Inst& inst);
  Id math(const ir::Inst& inst);
  Id bits(const ir::Inst& inst);
  Id comparison(const ir::Inst& inst);
  Id builtin(BuiltIn builtin);  // a u32
  Id builtin_axis(BuiltIn builtin, uint32_t axis);
  Id uncontracted(Code code, Id type, const Words& operands);
  Id lane_by_lane(const ir::Inst& inst, Code code);
  Id splat(Id scalar, ir::Type type);
  Id compare(ir::Op op, ir::Type operands, Id a, Id b);
  Id select(Id condition, ir::Type condition_type, ir::Type type, Id if_true, Id if_false);

  // --- bit-exact arithmetic (spirv_exact.cpp)
  struct Pair {
    Id high = 0, low = 0;
  };
  Id fma(const ir::Inst& inst);
  Pair two_sum(Id a, Id b, Id type);
  Pair two_product(Id a, Id b, ir::Type type);
  Id odd_sum(Id a, Id b, ir::Type type);
  void note_opaque(const ir::Inst& inst);
  Id hidden(ir::Value v);
  Id with_launch_zero(Id id, ir::Type type);

  // --- conversions (spirv_conversions.cpp)
  Id conversion(const ir::Inst& inst);
  Id convert(Id from, ir::Type from_type, ir::Type to_type);
  Id pack_f16(Id value);
  Id pack_8(Id value);
  Id unpack_8(Id word, bool is_signed);
  Id dot4(const ir::Inst& inst, bool is_signed);

  // --- memory (spirv_memory.cpp)
  // The representation of a memory's elements: the scalar type, its bytes, and whether a narrow
  // type is stored in 32 bits.
  struct Storage {
    Id scalar = 0;
    uint32_t bytes = 4;
    bool wide = false;
  };
  Storage storage_of(uint32_t memory);
  void find_atomics();
  void declare_arrays();
  void alias_views();
  Id buffer_view(uint32_t memory, Id scalar, uint32_t bytes, uint32_t lanes);
  Id element_pointer(uint32_t memory, Id index, uint32_t lanes);
  Id word_pointer(uint32_t memory, Id index, uint32_t lanes);
  Id load_from(uint32_t memory, Id pointer, Id type);
  void store_to(uint32_t memory, Id pointer, Id object);
  Id from_storage(uint32_t memory, Id stored, uint32_t lanes);
  Id to_storage(uint32_t memory, Id value, uint32_t lanes);
  Id load_elements(uint32_t memory, Id index, uint32_t lanes);
  void store_elements(uint32_t memory, Id index, Id value, uint32_t lanes);
  Id load_words(uint32_t memory, Id index, uint32_t lanes, uint32_t alignment);
  void store_words(uint32_t memory, Id index, Id value, uint32_t lanes, uint32_t alignment);
  bool memory_op(const ir::Inst& inst);
  Id atomic(const ir::Inst& inst);
  Id offset_by(Id index, uint32_t offset);
  // Loads if the predicate holds, else gives zero without reading.
  Id guarded_load(Id predicate, Id type, const std::function<Id()>& load);
  void guarded(Id predicate, const std::function<void()>& work);

  // --- across lanes and control flow (spirv_control.cpp)
  bool control(const ir::Inst& inst);
  Id across_lanes(const ir::Inst& inst);
  void block(const ir::Block& block);
  void if_(const ir::Inst& inst);
  void for_(const ir::Inst& inst);
  void while_(const ir::Inst& inst);
  void barrier();
  void device_fence();
  void branch(Id to);

  // --- fragments (spirv_fragments.cpp)
  bool fragment_op(const ir::Inst& inst);
  Id fragment_type(const ir::Fragment& fragment, DType element);
  Id component_id(DType element);
  void declare_fragments();

  void instruction(const ir::Inst& inst);

  const ir::Kernel& kernel_;
  const ir::Capabilities& capabilities_;
  Module module_;
  std::vector<Id> values_;
  bool fences_ = false;       // groups see each other's writes
  std::vector<bool> opaque_;  // values the driver cannot analyse
  Id launch_zero_ = 0;        // a u32 zero that the driver cannot know
  std::vector<Id> variables_;
  std::vector<Id> fragments_;
  std::vector<Id> arrays_;            // shared and private arrays by memory index
  std::vector<bool> through_bits_;    // f32 memories declared as their bits
  std::vector<uint32_t> binding_of_;  // the Vulkan binding of each buffer
  std::map<std::tuple<uint32_t, Id, uint32_t>, Id> views_;  // (memory, scalar, lanes) to variable
  Id params_ = 0;
  std::vector<Id> break_targets_;
  bool ended_ = false;  // the current SPIR-V block has its terminator
  Id yielded_ = 0;
};

}  // namespace prism::spirv
