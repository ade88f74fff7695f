// The interpreter's form of a kernel: a flat list of steps over planes, and the frame a group runs
// in.
//
// A plane holds one scalar per lane, padded to a multiple of kLanePad so that loops need no
// remainder. A uniform value is stored once. Planes are byte offsets into a frame, so that many
// threads can share a program, each with its own frame.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism::ir::vm {

inline constexpr uint32_t kLanePad = 16;
inline constexpr uint32_t kMaxArgs = 10;

struct Step;
struct Frame;
// Executes one step and returns the next.
using Run = const Step* (*)(const Step*, Frame&);

// Arguments and mask are slot numbers during translation, and byte offsets into the frame
// afterwards.
struct Step {
  Run run = nullptr;
  std::array<uint32_t, kMaxArgs> args{};
  uint8_t arg_count = 0;
  uint8_t lanes = 1;           // elements of a vector
  bool contiguous = false;     // the index of lane i is the index of lane 0 plus i
  bool zero_inactive = false;  // a load gives 0 where its predicate is false
  uint16_t uniform_args = 0;   // bit i: args[i] is stored once, not in a plane
  uint32_t mask = kNone;       // kNone: all lanes
  uint32_t jump = 0;           // index of the target step
  uint32_t object = kNone;
  uint32_t object2 = kNone;
  uint64_t bits = 0;
  const Inst* inst = nullptr;

  bool is_uniform(uint32_t arg) const { return (uniform_args >> arg) & 1u; }
};

// The kind of a slot, independent of its offset.
struct SlotKind {
  uint8_t bytes = 4;  // per element
  bool uniform = false;
  bool mask = false;  // a plane of 0 and 1, followed by its count and end
};

struct Constant {
  uint32_t offset = 0;
  uint64_t bits = 0;
  SlotKind kind;
};

// Slots that the runner fills before a group starts.
struct Inputs {
  std::vector<uint32_t> params;
  std::array<uint32_t, 3> group_id = {kNone, kNone, kNone};
  std::array<uint32_t, 3> group_count = {kNone, kNone, kNone};
  uint32_t local_id = kNone;
  uint32_t subgroup_id = kNone;
  uint32_t subgroup_lane = kNone;
};

struct Program {
  Kernel kernel;  // owned: steps point to its instructions
  uint32_t lanes = 0;
  uint32_t padded = 0;
  uint32_t subgroup = 32;
  bool checked = false;
  std::vector<Step> steps;  // the last one stops
  std::vector<Constant> constants;
  Inputs inputs;
  uint64_t frame_bytes = 0;
  std::vector<uint32_t> buffer_order;  // memory index of each buffer of the caller
};

struct MemoryView {
  std::byte* data = nullptr;
  uint64_t length = 0;  // elements
  uint64_t words = 0;   // whole words of 32 bits
};

class Checks;

struct AlignedFree {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{64}); }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedFree>;
AlignedBytes allocate_aligned(uint64_t bytes);

struct Frame {
  const Program* program = nullptr;
  const Step* steps = nullptr;
  std::byte* data = nullptr;
  uint32_t lanes = 0;
  uint32_t padded = 0;
  uint32_t subgroup = 32;
  std::vector<MemoryView> memories;
  std::vector<std::vector<uint32_t>>
      fragments;  // elements as 32-bit words, one matrix per subgroup
  std::array<uint32_t, 3> group = {0, 0, 0};
  Checks* checks = nullptr;

  template <class T>
  T* at(uint32_t offset) const {
    return reinterpret_cast<T*>(data + offset);
  }
};

// The active lanes of a step. A prefix needs no test of the mask.
struct Active {
  const uint32_t* mask = nullptr;
  uint32_t count = 0;
  uint32_t end = 0;  // one past the last active lane
  bool prefix() const { return count == end; }
  bool has(uint32_t lane) const { return mask ? mask[lane] != 0 : lane < end; }
};

inline Active active_lanes(const Step& step, const Frame& frame) {
  if (step.mask == kNone) return {nullptr, frame.lanes, frame.lanes};
  const uint32_t* mask = frame.at<uint32_t>(step.mask);
  return {mask, mask[frame.padded], mask[frame.padded + 1]};
}

// Throws kInvalidKernel: "kernel add (file.cpp:12): message".
[[noreturn]] void fail(const Frame& frame, const Step& step, const std::string& message);
// Finds the first lane whose index is out of bounds and throws with lane, index and limit.
[[noreturn]] void fail_bounds(const Frame& frame, const Step& step, uint32_t memory,
                              const uint32_t* index, uint32_t index_stride, uint32_t elements,
                              uint64_t limit, const char* unit);

}  // namespace prism::ir::vm
