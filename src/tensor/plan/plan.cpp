// Runs plans: steps in order, as native kernels on the CPU and as launches elsewhere, recorded from
// the second run on.
#include "tensor/plan/plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "prism/error.h"
#include "runtime/fallback.h"
#include "tensor/cpu_pool.h"
#include "tensor/plan/device_fallback.h"
#include "tensor/plan/expected.h"
#include "tensor/plan/planner.h"
#include "tensor/plan/trace.h"
#include "tensor/relayout.h"

namespace prism {

namespace {

std::string shapes_of(const PlanStep& step) {
  std::string text;
  for (const DeviceView& view : step.inputs)
    text +=
        fmt::format("{}{}{}", text.empty() ? "" : ", ", view.type.name(), view.layout.shape.text());
  for (const DeviceView& view : step.outputs)
    text += fmt::format(" -> {}{}", view.type.name(), view.layout.shape.text());
  return text;
}

// Names the launches of a step if it has several or calls a vendor library.
std::string launches_of(const PlanStep& step) {
  if (step.launches.empty() || (step.launches.size() == 1 && !step.launches[0].product)) return "";
  std::string text;
  for (const PlannedLaunch& launch : step.launches) {
    text += text.empty() ? " by " : ", ";
    text += launch.product ? "the vendor library's matmul" : launch.program.kernel().name;
  }
  return text;
}

}  // namespace

// Consecutive launches on one device, recorded once.
struct Plan::Segment {
  uint32_t first = 0, last = 0;  // steps [first, last)
  CommandGraph recording;        // none for host steps and copies
};

uint64_t PlanStep::bytes() const {
  uint64_t sum = 0;
  for (const auto& views : {inputs, outputs})
    for (const DeviceView& view : views)
      sum += static_cast<uint64_t>(view.elements()) / view.type.block_elements() *
             view.type.block_bytes();
  return sum;
}

Plan::Plan(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
           const PlanOptions& options) {
  reuse_memory_ = options.reuse_memory;
  shared_ = options.arenas;
  Planner(*this, outputs, inputs, options).make();
  place();
  if (options.allocate) allocate();
}

bool Plan::changes_in_place() const { return std::ranges::any_of(slots_, &PlanSlot::in_place); }

bool Plan::is_outdated() const {
  return std::ranges::any_of(slots_, [](const PlanSlot& s) { return s.device.is_given_up(); });
}

void Plan::run_and_sync(std::span<const std::shared_ptr<Storage>> inputs) {
  if (changes_in_place()) {
    try {
      return run(inputs);
    } catch (const DeviceFailure& failure) {
      throw Error(
          failure.code(),
          fmt::format("{}; tensors that this plan changes in place may be half updated, so it "
                      "is not run again on another device; restore these tensors first",
                      failure.what()));
    }
  }
  run(inputs);
  std::vector<Device> waited;
  for (const PlanStep& step : steps_) {
    if (step.kind != PlanStep::Kind::launches || !may_fall_back(step.device)) continue;
    if (std::ranges::count(waited, step.device)) continue;
    watching(step.device, [&] { step.device.queue().wait(); });
    waited.push_back(step.device);
  }
}

Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;

const std::shared_ptr<Storage>& Plan::output(size_t i) const {
  return slots_[output_slots_[i]].storage;
}

void Plan::release_output(size_t i) {
  std::shared_ptr<Storage>& mine = slots_[output_slots_[i]].storage;
  if (mine.use_count() == 1 || slots_[output_slots_[i]].in_place) return;
  auto fresh = allocate_storage(mine->device, mine->bytes);
  if (!mine->is_host()) {
    // Recorded launches refer to this buffer, so the plan keeps it and the holder gets the copy.
    watching(mine->device,
             [&] { mine->device.queue().copy(fresh->buffer, mine->buffer, mine->bytes); });
    std::swap(fresh->buffer, mine->buffer);
    std::swap(fresh->pool_bytes, mine->pool_bytes);
  }
  mine = std::move(fresh);
}

void Plan::back_to(const Mark& mark) {
  steps_.resize(mark.steps);
  // Keep the slots: those with storage may be used again. Temporaries that no step writes take no
  // memory.
  for (size_t s = mark.slots; s < slots_.size(); ++s)
    if (!slots_[s].storage) slots_[s].bytes = slots_[s].kept = slots_[s].zero = 0;
}

const Plan::Arena& Plan::arena_of(const PlanSlot& slot) const {
  return *std::ranges::find(arenas_, slot.device, &Arena::device);
}

uint64_t Plan::arena_bytes(const Device& device) const {
  for (const Arena& arena : arenas_)
    if (arena.device == device) return arena.bytes;
  return 0;
}

void Plan::use_shared_arenas() {
  if (!shared_) return;
  for (Arena& arena : arenas_) {
    const std::shared_ptr<Storage>& now = shared_->storage(arena.device);
    if (now == arena.storage) continue;
    if (!segments_.empty() && !arena.device.info().is_cpu)
      watching(arena.device, [&] { arena.device.queue().wait(); });
    segments_.clear();  // recorded launches refer to the old memory
    arena.storage = now;
  }
}

std::byte* Plan::host_address(uint32_t s) {
  const PlanSlot& slot = slots_[s];
  if (slot.storage) return slot.storage->host.get();
  return arena_of(slot).storage->host.get() + slot.offset;
}

BufferRange Plan::device_range(uint32_t s, uint64_t offset) const {
  const PlanSlot& slot = slots_[s];
  if (slot.storage) return {slot.storage->buffer, offset, 0};
  const Arena& arena = arena_of(slot);
  const uint64_t bytes = std::max<uint64_t>(4, (slot.bytes + 3) / 4 * 4);
  return {arena.storage->buffer, slot.offset + offset, bytes - offset};
}

void Plan::run_step(const PlanStep& step) {
  switch (step.kind) {
    case PlanStep::Kind::host: {
      const auto host_view = [&](const DeviceView& view) {
        return HostView{host_address(view.slot), view.type, view.layout};
      };
      std::vector<HostView> inputs, outputs;
      for (const DeviceView& view : step.inputs) inputs.push_back(host_view(view));
      for (const DeviceView& view : step.outputs) outputs.push_back(host_view(view));
      step.op->run_cpu({inputs, outputs, cpu_pool()});
      break;
    }
    case PlanStep::Kind::launches:
      watching(step.device, [&] {
        for (const PlannedLaunch& launch : step.launches) {
          std::vector<BufferRange> buffers;
          for (size_t i = 0; i < launch.slots.size(); ++i)
            buffers.push_back(device_range(launch.slots[i], launch.offsets[i]));
          Queue& queue = step.device.queue();
          if (launch.product)
            queue.product(*launch.product, buffers[0], buffers[1], buffers[2]);
          else
            queue.launch(launch.program, launch.groups, std::span<const BufferRange>(buffers),
                         launch.params);
        }
      });
      break;
    case PlanStep::Kind::copy: {
      const DeviceView &from = step.inputs[0], &to = step.outputs[0];
      // Copies go through the host, where either end may be already.
      const auto part = [&](const PlanSlot& slot) -> std::pair<const Storage*, uint64_t> {
        if (slot.storage) return {slot.storage.get(), 0};
        return {arena_of(slot).storage.get(), slot.offset};
      };
      const auto [source, source_offset] = part(slots_[from.slot]);
      const auto [target, target_offset] = part(slots_[to.slot]);
      transfer(*source, source_offset, from, *target, target_offset);
      if (slots_[from.slot].storage && slots_[to.slot].storage)
        keep_origin(*slots_[to.slot].storage, slots_[from.slot].storage, from.type, from.layout);
      break;
    }
  }
}

void Plan::run(std::span<const std::shared_ptr<Storage>> inputs) {
  if (!allocated_) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "run: this plan was made to estimate memory and has none; plan with allocate = true");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    PlanSlot& slot = slots_[input_slots_[i]];
    if (slot.device.info().is_cpu) {
      slot.storage = inputs[i];
    } else if (inputs[i] != slot.storage) {
      watching(slot.device, [&] {
        slot.device.queue().copy(slot.storage->buffer, inputs[i]->buffer, slot.bytes);
      });
    }
  }
  for (PlanSlot& slot : slots_) {
    if (!slot.in_place || !slot.storage) continue;
    if (slot.storage->constant)
      throw Error(ErrorCode::kInvalidArgument,
                  "run: a tensor to be changed in place is in constant memory, such as a mapped "
                  "file; change a copy of it");
    ++slot.storage->changes;
    slot.storage->origin.reset();
  }
  ++runs_;
  use_shared_arenas();
  // A failed run may leave these slots nonzero.
  if (!std::exchange(zeroed_, false)) zero_slots();
  run_steps();
  zeroed_ = true;
}

void Plan::run_steps() {
  // Keep the pool's threads spinning between the host steps of this plan.
  std::optional<ThreadPool::Busy> awake;
  if (std::ranges::count(steps_, PlanStep::Kind::host, &PlanStep::kind) > 1)
    awake.emplace(cpu_pool());
  if (tracing()) {
    for (const PlanStep& step : steps_) {
      const double start = trace_now();
      const double ms = timed(step);
      trace_step(step.device.id(), step.name, start, ms * 1e3, step.bytes(), shapes_of(step));
    }
    return;
  }
  if (runs_ == 1) {  // a single run is not worth recording
    for (const PlanStep& step : steps_) run_step(step);
    return;
  }
  if (segments_.empty()) {
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      const bool same = !segments_.empty() && steps_[s].kind == PlanStep::Kind::launches &&
                        steps_[s - 1].kind == PlanStep::Kind::launches &&
                        steps_[s].device == steps_[s - 1].device;
      if (!same) segments_.push_back({s, s, {}});
      segments_.back().last = s + 1;
    }
    for (Segment& segment : segments_) {
      if (steps_[segment.first].kind != PlanStep::Kind::launches) continue;
      const Device& device = steps_[segment.first].device;
      segment.recording = watching(device, [&] {
        return device.queue().record([&] {
          for (uint32_t s = segment.first; s < segment.last; ++s) run_step(steps_[s]);
        });
      });
    }
  }
  for (const Segment& segment : segments_) {
    if (segment.recording) {
      const Device& device = steps_[segment.first].device;
      watching(device, [&] { device.queue().replay(segment.recording); });
    } else {
      for (uint32_t s = segment.first; s < segment.last; ++s) run_step(steps_[s]);
    }
  }
}

// Runs one step and waits for it; returns device time for launches, wall time otherwise, in ms.
double Plan::timed(const PlanStep& step) {
  if (step.kind == PlanStep::Kind::launches) {
    return watching(step.device, [&] {
      Queue& queue = step.device.queue();
      const Event start = queue.record_event();
      run_step(step);
      return queue.record_event().ms_since(start);
    });
  }
  const auto start = std::chrono::steady_clock::now();
  run_step(step);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void Plan::measure() {
  run();  // warm-up
  for (PlanStep& step : steps_) step.measured_ms = timed(step);
}

std::vector<std::vector<uint32_t>> Plan::dependencies() const {
  // The bytes of an arena or storage that a slot occupies.
  struct Range {
    const void* memory;
    uint64_t begin, end;
  };
  const auto range_of = [&](uint32_t s) {
    const PlanSlot& slot = slots_[s];
    if (slot.storage) return Range{slot.storage.get(), 0, UINT64_MAX};
    return Range{arena_of(slot).storage.get(), slot.offset, slot.offset + slot.bytes};
  };
  const auto meets = [&](const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    for (const uint32_t x : a) {
      for (const uint32_t y : b) {
        const Range r = range_of(x), q = range_of(y);
        if (r.memory == q.memory && r.begin < q.end && q.begin < r.end) return true;
      }
    }
    return false;
  };
  std::vector<std::vector<uint32_t>> before(steps_.size());
  for (uint32_t s = 0; s < steps_.size(); ++s) {
    for (uint32_t t = 0; t < s; ++t) {
      if (meets(steps_[s].reads, steps_[t].writes) || meets(steps_[s].writes, steps_[t].writes) ||
          meets(steps_[s].writes, steps_[t].reads))
        before[s].push_back(t);
    }
  }
  return before;
}

void Plan::run_in_order(std::span<const uint32_t> order, bool poison_dead_ranges) {
  zero_slots();
  std::vector<uint32_t> readers(slots_.size(), 0);
  for (const PlanStep& step : steps_)
    for (const uint32_t s : step.reads) ++readers[s];
  for (const uint32_t index : order) {
    const PlanStep& step = steps_[index];
    run_step(step);
    if (!poison_dead_ranges) continue;
    for (const uint32_t s : step.reads) {
      const PlanSlot& slot = slots_[s];
      if (--readers[s] != 0 || !slot.is_temporary()) continue;
      // Skip memory that an output of this step has taken over.
      if (std::ranges::any_of(step.writes, [&](uint32_t w) {
            return slots_[w].is_temporary() && slots_[w].device == slot.device &&
                   slots_[w].offset < slot.offset + slot.bytes &&
                   slot.offset < slots_[w].offset + slots_[w].bytes;
          }))
        continue;
      const std::vector<std::byte> poison(slot.bytes, std::byte{0xCD});
      write_storage(*arena_of(slot).storage, slot.offset, poison);
    }
  }
}

std::string Plan::explain() const {
  std::string text;
  std::vector<Device> not_measured;
  for (const PlanStep& step : steps_) {
    const std::string attributes = step.op ? step.op->attributes() : "";
    text += fmt::format("{:<10} {:<18} {}{}{} {} bytes", step.device.id(), step.name,
                        shapes_of(step), attributes.empty() ? "" : " (" + attributes + ")",
                        launches_of(step), step.bytes());
    if (const auto expected = expected_seconds(step))
      text += fmt::format(", expected {} ms", number_text(*expected * 1e3));
    else if (!std::ranges::count(not_measured, step.device))
      not_measured.push_back(step.device);
    if (step.measured_ms >= 0) {
      text +=
          fmt::format(", measured {} ms, {:.1f} GB/s", number_text(step.measured_ms),
                      static_cast<double>(step.bytes()) / std::max(step.measured_ms, 1e-6) * 1e-6);
    }
    text += '\n';
  }
  for (const PlanMemory& each : memory()) {
    text +=
        fmt::format("{}: {} bytes of temporaries, {} of outputs, {} allocated before\n",
                    each.device.id(), each.temporaries, each.outputs + each.inputs, each.present);
  }
  for (const PlanStep& step : steps_)
    if (!step.reason.empty())
      text += fmt::format("{} runs on {}: {}\n", step.name, step.device.id(), step.reason);
  for (const std::string& note : notes_) text += note + '\n';
  for (const Device& device : not_measured)
    text += fmt::format("no expected times for {}: `prism calibrate --device {}` measures it\n",
                        device.id(), device.id());
  return text;
}

}  // namespace prism
