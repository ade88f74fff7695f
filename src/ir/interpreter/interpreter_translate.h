// Translator: turns a kernel into the interpreter's steps.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/interpreter/interpreter.h"
#include "ir/interpreter/interpreter_analysis.h"
#include "ir/interpreter/interpreter_ops.h"
#include "ir/interpreter/interpreter_program.h"

namespace prism::ir::vm {

std::unique_ptr<Program> translate(const Kernel& kernel, const InterpretOptions& options);

class Translator {
 public:
  Translator(Program& program, const InterpretOptions& options);
  void translate();

 private:
  using Slots = std::array<uint32_t, 4>;

  struct Slot {
    SlotKind kind;
    uint32_t first = kNone, last = 0;  // first and last step that use it
    bool kept = false;                 // filled before the group starts: its storage is not shared
    std::optional<uint64_t> constant;
    uint32_t offset = 0;
  };
  // A section of control flow under one mask.
  struct Region {
    uint32_t mask = kNone;
    std::vector<uint32_t> leaves;  // steps that jump to its end
  };
  struct Loop {
    uint32_t mask = kNone;  // of its body
    bool varying = false;
    std::vector<uint32_t> leaves;
  };
  struct LoopRange {
    uint32_t begin, end;
  };

  [[noreturn]] void fail(const Inst& inst, const std::string& message) const;

  // --- slots
  uint32_t new_slot(SlotKind kind);
  uint32_t new_mask();
  uint32_t constant_slot(uint64_t bits, uint8_t bytes, bool plane);
  uint32_t input_slot(uint32_t& place, bool plane);
  bool is_uniform(uint32_t slot) const { return slots_[slot].kind.uniform; }
  uint32_t as_plane(uint32_t slot);
  // The slot of the result's element: the variable it is computed in, or a new slot.
  uint32_t result_slot(const Inst& inst, uint32_t element, bool uniform, bool elementwise);
  void place_slots();

  // --- steps
  Step& emit(const Inst& inst, Run run, const std::vector<uint32_t>& args);
  uint32_t here() const { return static_cast<uint32_t>(program_.steps.size()); }
  void aim(uint32_t step) { program_.steps[step].jump = here(); }
  void aim(std::vector<uint32_t>& steps);
  Run need(const Inst& inst, Run run) const;
  bool takes_part_fully() const { return region_->mask == kNone; }

  // --- instructions
  void block(const Block& block);
  void instruction(const Inst& inst);
  void leaf(const Inst& inst);
  void unary(const Inst& inst, Run (*find)(Op, DType, bool));
  void binary(const Inst& inst);
  Op without_division(Op op, DType type, uint32_t& divisor);
  void fma(const Inst& inst);
  void select(const Inst& inst);
  void cast(const Inst& inst);
  void bits(const Inst& inst);
  void bitcast(const Inst& inst);
  void assign(const Inst& inst);
  void across(const Inst& inst);
  void load(const Inst& inst);
  void store(const Inst& inst);
  void atomic(const Inst& inst);
  void async_copy(const Inst& inst);
  void fragment(const Inst& inst);
  void fragment_map(const Inst& inst);
  void if_else(const Inst& inst);
  void for_loop(const Inst& inst);
  void while_loop(const Inst& inst);
  void leave_loop(const Inst& inst);
  // After an instruction in which lanes may leave the loop: continue with the remaining lanes.
  void drop_those_who_left(const Inst& inst);
  void inner(const Block& body, uint32_t mask);
  uint32_t predicate_mask(const Inst& inst, Value predicate);

  // --- checked mode
  bool checked() const { return program_.checked; }
  void check_operands(const Inst& inst);
  void check_whole_group(const Inst& inst);
  void check_access(const Inst& inst, uint32_t memory, uint32_t index, uint32_t elements,
                    uint32_t mask, uint64_t kind);

  Program& program_;
  const Kernel& kernel_;
  Analysis analysis_;
  std::vector<Slot> slots_;
  std::vector<Slots> values_;
  std::vector<Slots> variables_;
  std::vector<LoopRange> loops_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants_;
  std::vector<std::pair<uint32_t, uint32_t>>
      planes_;  // uniform slot and its plane, innermost block last
  Region* region_ = nullptr;
  Loop* loop_ = nullptr;
};

}  // namespace prism::ir::vm
