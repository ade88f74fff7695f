// A plan: the launches, host kernels and copies that compute a set of tensors, with temporaries
// placed in one arena per device. A plan can run many times.
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
      storage;            // preallocated or kept values; null for temporaries, which use the arena
  bool in_place = false;  // written in place for an outside holder: never replaced
  bool aliased = false;   // of two tensors, so neither may be overwritten by its last reader
  bool kept = false;      // output of the plan: outlives a run
  bool zero = false;      // zero between runs; the plan owns the memory
  uint64_t offset = 0;    // in the arena
  uint32_t first_step = UINT32_MAX, last_step = 0;  // first write, last read: temporaries only
  bool is_temporary() const { return !storage && !kept && !zero; }
};

// One op on one device, or a copy between devices.
struct PlanStep {
  enum class Kind { launches, host, copy } kind = Kind::host;
  Device device;
  Device from;                   // source of a copy
  std::shared_ptr<const Op> op;  // null for copies
  std::string name;              // of the op, or "copy to cuda:0"
  std::vector<DeviceView> inputs, outputs;
  std::vector<PlannedLaunch> launches;
  std::vector<uint32_t> reads, writes;  // slots; scratch counts as written
  std::string reason;                   // why it does not run on the requested device
  double measured_ms = -1;              // by measure()
  uint64_t bytes() const;               // read and written, each operand counted once
};

// Arenas shared by plans that never run at the same time: on each device as large as the largest
// plan needs.
class SharedArenas {
 public:
  // Returns an arena of at least `bytes`. Growing allocates new memory; plans switch to it at their
  // next run.
  const std::shared_ptr<Storage>& reserve(const Device& device, uint64_t bytes);
  const std::shared_ptr<Storage>& storage(const Device& device) { return reserve(device, 0); }
  uint64_t bytes(const Device& device) const;

 private:
  std::vector<std::shared_ptr<Storage>> storages_;
};

struct PlanOptions {
  bool fuse = true;
  bool reuse_memory = true;  // false: no two temporaries share memory (for tests)
  std::shared_ptr<SharedArenas> arenas = nullptr;  // null: the plan has its own arena
  bool allocate = true;  // false: for estimates only; such a plan cannot run
  // Where results take more bytes than this at once, those that are cheap are made again for a use
  // that is so many ops later, instead of kept. Per operation of the plan's products, so many bytes
  // more may be read and written: about 4% of their time on a large GPU.
  uint64_t remake_above = uint64_t{256} << 20;
  size_t remake_distance = 32;
  double remake_traffic = 2.6e-4;
};

class Plan {
 public:
  // Plans the work from values already computed to `outputs`. run() binds the slots of `inputs`.
  Plan(std::span<const Tensor> outputs, std::span<const Tensor> inputs = {},
       const PlanOptions& options = {});
  ~Plan();
  Plan(Plan&&) noexcept;

  // Runs on the storages given for the inputs (empty: those of the last run). Does not wait for
  // devices. Results are in output().
  void run(std::span<const std::shared_ptr<Storage>> inputs = {});
  const std::shared_ptr<Storage>& output(size_t i) const;
  // Detaches output i if someone still holds it from the last run, so that the next run does not
  // overwrite it.
  void release_output(size_t i);

  const std::vector<PlanStep>& steps() const { return steps_; }
  const std::vector<PlanSlot>& slots() const { return slots_; }
  uint64_t arena_bytes(const Device& device) const;
  // Switches to arenas that another plan has grown and releases the old ones. run() calls this.
  void use_shared_arenas();
  std::vector<PlanMemory> memory() const;  // one entry per device, known before running
  // Whether it writes memory that outlives the plan in place; such a plan cannot be restarted.
  bool changes_in_place() const;
  // Whether one of its devices was given up, so that the work has to be planned again.
  bool is_outdated() const;
  // Runs, and waits for devices that have a fallback, so that a failure is raised as DeviceFailure
  // while the work can still be redone elsewhere. A plan that changes memory in place cannot be
  // redone: its failures are a plain Error.
  void run_and_sync(std::span<const std::shared_ptr<Storage>> inputs = {});
  // Runs step by step, waits for each and records the times for explain().
  void measure();
  // One line per step: op, device, shapes, bytes, expected and measured time; then the memory,
  // every op that runs on another device and why, and the devices without calibration.
  std::string explain() const;
  // For each step, the earlier steps it must follow because they use the same memory. For tests.
  std::vector<std::vector<uint32_t>> dependencies() const;
  void run_in_order(std::span<const uint32_t> order, bool poison_dead_ranges);

 private:
  friend class Planner;
  struct Arena {
    Device device;
    std::shared_ptr<Storage> storage;
    uint64_t bytes = 0;
  };
  struct Segment;  // consecutive steps on one device, recorded

  // A point to roll back to while planning.
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
  std::vector<std::string> notes_;  // of NotedOps, for explain()
  std::vector<Segment> segments_;
  std::shared_ptr<SharedArenas> shared_;
  bool reuse_memory_ = true, allocated_ = false;
  bool zeroed_ = false;  // whether the zero slots are zero now
  uint64_t runs_ = 0;
};

}  // namespace prism
