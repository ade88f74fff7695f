// A plan: the work that gives some tensors their values, made ready for devices: launches in order,
// temporaries placed in one arena a device, copies between devices explicit. Run many times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/compile.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"
#include "tensor/storage.h"

namespace prism {

// Memory that steps read and write.
struct PlanSlot {
  Device device;
  uint64_t bytes = 0;
  std::shared_ptr<Storage>
      storage;            // of values that are there before or stay after; else the arena's
  bool in_place = false;  // changed by a step, for a holder outside: never replaced
  bool kept = false;      // made by the plan, and stays after it
  bool zero = false;      // zero between runs: memory of the plan's own
  uint64_t offset = 0;    // in the arena
  uint32_t first_step = UINT32_MAX, last_step = 0;  // written by, last read by: temporaries only
  bool is_temporary() const { return !storage && !kept && !zero; }
};

// One op at work on one device, or a copy between devices.
struct PlanStep {
  enum class Kind { launches, host, copy } kind = Kind::host;
  Device device;
  Device from;                   // of copies
  std::shared_ptr<const Op> op;  // null for copies
  std::string name;              // of the op, or "copy to cuda:0"
  std::vector<DeviceView> inputs, outputs;
  std::vector<PlannedLaunch> launches;
  std::vector<uint32_t> reads, writes;  // slots, scratch among the writes
  std::string reason;                   // why it is not on the device that was asked for
  double measured_ms = -1;              // by measure()
  uint64_t bytes() const;               // read and written, each operand once
};

// Memory for the temporaries of plans that never run at the same time: as much on each device as
// the neediest of them takes.
class SharedArenas {
 public:
  // Of at least so many bytes. Grown memory is new memory: plans take it up at their next run.
  const std::shared_ptr<Storage>& reserve(const Device& device, uint64_t bytes);
  const std::shared_ptr<Storage>& storage(const Device& device) { return reserve(device, 0); }
  uint64_t bytes(const Device& device) const;

 private:
  std::vector<std::shared_ptr<Storage>> storages_;
};

struct PlanOptions {
  bool fuse = true;
  bool reuse_memory = true;  // false: no two temporaries share memory (for tests)
  std::shared_ptr<SharedArenas> arenas = nullptr;  // null: an arena of the plan's own
  bool allocate = true;  // false: a plan to ask for its needs, which cannot run
};

class Plan {
 public:
  // The work from values that are there to these tensors. Slots of inputs are bound by run().
  Plan(std::span<const Tensor> outputs, std::span<const Tensor> inputs = {},
       const PlanOptions& options = {});
  ~Plan();
  Plan(Plan&&) noexcept;

  // Runs on the storages given for the inputs (kept from the last time when empty). Does not wait
  // for devices. Outputs are in output().
  void run(std::span<const std::shared_ptr<Storage>> inputs = {});
  const std::shared_ptr<Storage>& output(size_t i) const;
  // Values that somebody still holds from the last run stay theirs: the next run writes elsewhere.
  void release_output(size_t i);

  const std::vector<PlanStep>& steps() const { return steps_; }
  const std::vector<PlanSlot>& slots() const { return slots_; }
  uint64_t arena_bytes(const Device& device) const;
  // Takes up arenas that another plan has made larger and lets the old ones go. run() does so too.
  void use_shared_arenas();
  std::vector<PlanMemory> memory() const;  // one a device, known before it runs
  // Whether it changes memory that was there before: it cannot be done again from the start.
  bool changes_in_place() const;
  // Whether a device of it was given up since: the work is to be planned anew.
  bool is_outdated() const;
  // Runs, and waits for devices that work may leave: they fail while it can still be done
  // elsewhere, as DeviceFailure. What changed memory in place is never begun again: a plain Error.
  void run_and_sync(std::span<const std::shared_ptr<Storage>> inputs = {});
  // Runs step by step, waiting for each, and keeps the times for explain().
  void measure();
  // A line a step: op, device, shapes, bytes, the time it should take and the time it took; then
  // the memory, every op that went elsewhere and why, and which devices were never measured.
  std::string explain() const;
  // The steps that must have run before each: the order of memory uses. For tests.
  std::vector<std::vector<uint32_t>> dependencies() const;
  void run_in_order(std::span<const uint32_t> order, bool poison_dead_ranges);

 private:
  friend class Planner;
  struct Arena {
    Device device;
    std::shared_ptr<Storage> storage;
    uint64_t bytes = 0;
  };
  struct Segment;  // consecutive steps of one device, recorded

  // For taking back what was planned since.
  struct Mark {
    size_t slots = 0, steps = 0;
  };
  Mark mark() const { return {slots_.size(), steps_.size()}; }
  void back_to(const Mark& mark);

  void run_steps();
  void run_step(const PlanStep& step);
  double timed(const PlanStep& step);
  std::byte* host_address(uint32_t slot);
  BufferRange device_range(uint32_t slot, uint64_t offset) const;
  const Arena& arena_of(const PlanSlot& slot) const;  // of a temporary
  void place();
  void allocate();
  void zero_slots();

  std::vector<PlanSlot> slots_;
  std::vector<PlanStep> steps_;
  std::vector<Arena> arenas_;
  std::vector<uint32_t> output_slots_, input_slots_;
  std::vector<Segment> segments_;
  std::shared_ptr<SharedArenas> shared_;
  bool reuse_memory_ = true, allocated_ = false;
  bool zeroed_ = false;  // slots that are zero between runs are so now
  uint64_t runs_ = 0;
};

}  // namespace prism
