// The public interface of the interpreter: frames and the loop over groups.
#include "ir/interpreter/interpreter.h"

#include <algorithm>
#include <mutex>
#include <new>

#include <fmt/format.h>

#include "ir/interpreter/interpreter_checks.h"
#include "ir/interpreter/interpreter_translate.h"
#include "prism/error.h"

namespace prism::ir {
namespace vm {

AlignedBytes allocate_aligned(uint64_t bytes) {
  return AlignedBytes(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})));
}

void fail(const Frame& frame, const Step& step, const std::string& message) {
  const Kernel& kernel = frame.program->kernel;
  throw Error(ErrorCode::kInvalidKernel,
              fmt::format("kernel {} ({}), group ({}, {}, {}): {}", kernel.name,
                          location_text(step.inst->where), frame.group[0], frame.group[1],
                          frame.group[2], message));
}

void fail_bounds(const Frame& frame, const Step& step, uint32_t memory, const uint32_t* index,
                 uint32_t index_stride, uint32_t elements, uint64_t limit, const char* unit) {
  const Active active = active_lanes(step, frame);
  uint32_t lane = 0;
  while (lane + 1 < active.end &&
         !(active.has(lane) && uint64_t{index[lane * index_stride]} + elements > limit))
    ++lane;
  fail(frame, step,
       fmt::format("{} in lane {}: index {}{}, but {} has {} {}", op_name(step.inst->op), lane,
                   index[lane * index_stride],
                   elements > 1
                       ? fmt::format(" to {}", uint64_t{index[lane * index_stride]} + elements - 1)
                       : "",
                   frame.program->kernel.memories[memory].name, limit, unit));
}

namespace {

// A frame with its memory. Frames are reused between runs: constants and lane numbers are written
// once.
struct OwnedFrame {
  Frame frame;
  AlignedBytes data;
  AlignedBytes arrays;  // shared memory and the lanes' private arrays
  std::unique_ptr<Checks> checks;

  explicit OwnedFrame(const Program& program) {
    const Kernel& kernel = program.kernel;
    data = allocate_aligned(program.frame_bytes);
    std::fill_n(data.get(), program.frame_bytes, std::byte{0});
    frame.program = &program;
    frame.steps = program.steps.data();
    frame.data = data.get();
    frame.lanes = program.lanes;
    frame.padded = program.padded;
    frame.subgroup = program.subgroup;
    place_arrays(program);
    for (const Fragment& fragment : kernel.fragments)
      frame.fragments.emplace_back(size_t{fragment.rows()} * fragment.columns() *
                                   ((program.lanes + program.subgroup - 1) / program.subgroup));
    if (program.checked) {
      checks = std::make_unique<Checks>(program);
      frame.checks = checks.get();
    }
    for (const Constant& constant : program.constants) fill(constant);
    const Inputs& inputs = program.inputs;
    for (uint32_t i = 0; i < program.padded; ++i) {
      if (inputs.local_id != kNone) frame.at<uint32_t>(inputs.local_id)[i] = i;
      if (inputs.subgroup_id != kNone)
        frame.at<uint32_t>(inputs.subgroup_id)[i] = i / program.subgroup;
      if (inputs.subgroup_lane != kNone)
        frame.at<uint32_t>(inputs.subgroup_lane)[i] = i % program.subgroup;
    }
  }

  void place_arrays(const Program& program) {
    const std::vector<Memory>& memories = program.kernel.memories;
    frame.memories.resize(memories.size());
    std::vector<uint64_t> places(memories.size());
    uint64_t end = 0;
    for (size_t i = 0; i < memories.size(); ++i) {
      if (memories[i].space == Space::buffer) continue;
      places[i] = end;
      const uint64_t copies = memories[i].space == Space::local ? program.padded : 1;
      end = (end + memories[i].length * dtype_bytes(memories[i].element) * copies + 63) / 64 * 64;
    }
    arrays = allocate_aligned(end + 64);
    std::fill_n(arrays.get(), end, std::byte{0});
    for (size_t i = 0; i < memories.size(); ++i)
      if (memories[i].space != Space::buffer)
        frame.memories[i] = {arrays.get() + places[i], memories[i].length, 0};
  }

  void fill(const Constant& constant) {
    const uint32_t count = constant.kind.uniform ? 1 : frame.padded;
    if (constant.kind.bytes == 8)
      std::fill_n(frame.at<uint64_t>(constant.offset), count, constant.bits);
    else
      std::fill_n(frame.at<uint32_t>(constant.offset), count, static_cast<uint32_t>(constant.bits));
  }

  void bind(std::array<uint32_t, 3> groups, std::span<const HostBuffer> buffers,
            std::span<const uint32_t> params) {
    const Program& program = *frame.program;
    for (size_t i = 0; i < program.buffer_order.size(); ++i) {
      const uint32_t index = program.buffer_order[i];
      const uint64_t size = dtype_bytes(program.kernel.memories[index].element);
      frame.memories[index] = {buffers[i].data, buffers[i].bytes / size, buffers[i].bytes / 4};
    }
    for (size_t i = 0; i < params.size() && i < program.inputs.params.size(); ++i)
      set(program.inputs.params[i], params[i]);
    for (size_t axis = 0; axis < 3; ++axis) set(program.inputs.group_count[axis], groups[axis]);
  }

  void set(uint32_t offset, uint32_t value) {
    if (offset != kNone) *frame.at<uint32_t>(offset) = value;
  }

  void run_group(std::array<uint32_t, 3> group) {
    frame.group = group;
    for (size_t axis = 0; axis < 3; ++axis) set(frame.program->inputs.group_id[axis], group[axis]);
    if (checks) checks->begin_group();
    for (const Step* step = frame.steps; step; step = step->run(step, frame)) {
    }
  }
};

void check_arguments(const Program& program, std::span<const HostBuffer> buffers,
                     std::span<const uint32_t> params) {
  const Kernel& kernel = program.kernel;
  if (buffers.size() != program.buffer_order.size())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("kernel {}: got {} buffers, needs {}", kernel.name, buffers.size(),
                            program.buffer_order.size()));
  if (params.size() != kernel.params.size())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("kernel {}: got {} parameters, needs {}", kernel.name, params.size(),
                            kernel.params.size()));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Memory& memory = kernel.memories[program.buffer_order[i]];
    const size_t alignment = std::max<size_t>(4, dtype_bytes(memory.element));
    if (reinterpret_cast<uintptr_t>(buffers[i].data) % alignment)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("kernel {}: buffer {} does not begin at a multiple of {} bytes",
                              kernel.name, memory.name, alignment));
  }
}

}  // namespace
}  // namespace vm

struct Interpreter::Impl {
  std::unique_ptr<vm::Program> program;
  std::mutex mutex;
  std::vector<std::unique_ptr<vm::OwnedFrame>> idle;  // frames not in use by any thread

  std::unique_ptr<vm::OwnedFrame> take() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto frame = std::move(idle.back());
        idle.pop_back();
        return frame;
      }
    }
    return std::make_unique<vm::OwnedFrame>(*program);
  }
  void give_back(std::unique_ptr<vm::OwnedFrame> frame) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(frame));
  }
};

Interpreter::Interpreter(const Kernel& kernel, const InterpretOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->program = vm::translate(kernel, options);
}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;

void Interpreter::run_groups(std::array<uint32_t, 3> groups, uint64_t first, uint64_t last,
                             std::span<const HostBuffer> buffers,
                             std::span<const uint32_t> params) const {
  vm::check_arguments(*impl_->program, buffers, params);
  // If a group throws, the frame is dropped.
  std::unique_ptr<vm::OwnedFrame> frame = impl_->take();
  frame->bind(groups, buffers, params);
  for (uint64_t i = first; i < last; ++i) {
    const uint64_t row = i / groups[0];
    frame->run_group({static_cast<uint32_t>(i % groups[0]), static_cast<uint32_t>(row % groups[1]),
                      static_cast<uint32_t>(row / groups[1])});
  }
  impl_->give_back(std::move(frame));
}

void interpret(const Kernel& kernel, std::array<uint32_t, 3> groups,
               std::span<const HostBuffer> buffers, std::span<const uint32_t> params,
               const InterpretOptions& options) {
  const Interpreter interpreter(kernel, options);
  interpreter.run_groups(groups, 0, uint64_t{groups[0]} * groups[1] * groups[2], buffers, params);
}

}  // namespace prism::ir
