// The shadow state of checked mode: initialised memory, accesses since the last barrier, and async
// copies in flight.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/interpreter/interpreter_program.h"

namespace prism::ir::vm {

enum AccessKind : uint64_t { kReads, kWrites, kReadsWords, kWritesWords, kAtomic, kCopiesAhead };

Run find_access_check();    // (index); object: memory, object2: elements, bits: AccessKind
Run find_group_check();     // the whole group must be here; updates the state for barrier,
                            // async_commit and async_wait
Run find_fragment_check();  // operands as in the IR

// Null if every operand is valid. Scalars only; operands as in the IR.
Run find_operand_check(const Inst& inst);

class Checks {
 public:
  explicit Checks(const Program& program);
  void begin_group();

  // Records that an agent touched one element. Agents are lanes and, numbered above them, the
  // fragments of subgroups.
  void touch(const Frame& frame, const Step& step, uint32_t memory, uint64_t element,
             uint32_t agent, AccessKind kind);
  void barrier() { ++epoch_; }
  void commit() { ++committed_; }
  void wait(uint64_t still_under_way);
  std::vector<bool> filled;  // fragments that have been filled

 private:
  struct Cell {
    uint64_t initialised = 0;                     // the group that initialised it
    uint64_t written = 0, read = 0, changed = 0;  // epochs of the last write, read and atomic
    uint32_t writer = 0, reader = 0, changer = 0;
    uint64_t batch = 0;  // the async copy in flight into it; 0: none
  };
  struct Copy {
    Cell* cell;
    uint32_t agent;
  };

  [[noreturn]] void race(const Frame& frame, const Step& step, uint32_t memory, uint64_t element,
                         uint32_t agent, const char* does, uint32_t other, const char* did) const;
  std::string agent_name(uint32_t agent) const;

  const Program& program_;
  std::vector<std::vector<Cell>> cells_;  // one per shared memory
  std::vector<std::vector<uint64_t>>
      own_;  // private arrays: the group that initialised each element
  std::vector<Copy> under_way_;
  uint64_t epoch_ = 0;
  uint64_t group_ = 0;
  uint64_t committed_ = 0;
};

}  // namespace prism::ir::vm
