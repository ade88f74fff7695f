// Memory of plans: placing temporaries in arenas by lifetime, allocating, and reporting sizes.
#include <algorithm>

#include "prism/error.h"
#include "tensor/plan/plan.h"

namespace prism {

// Places temporaries first-fit by lifetime, the largest first.
void Plan::place() {
  std::vector<uint32_t> order;
  for (uint32_t s = 0; s < slots_.size(); ++s)
    if (slots_[s].is_temporary()) order.push_back(s);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](uint32_t s) { return slots_[s].bytes; });
  std::vector<uint32_t> placed;
  for (const uint32_t s : order) {
    PlanSlot& slot = slots_[s];
    std::vector<const PlanSlot*> in_the_way;
    for (const uint32_t p : placed) {
      const PlanSlot& other = slots_[p];
      const bool alive_together = !reuse_memory_ || (other.first_step <= slot.last_step &&
                                                     slot.first_step <= other.last_step);
      if (other.device == slot.device && alive_together) in_the_way.push_back(&other);
    }
    std::ranges::sort(in_the_way, {}, &PlanSlot::offset);
    uint64_t offset = 0;
    for (const PlanSlot* other : in_the_way) {
      if (offset + slot.bytes <= other->offset) break;
      offset = std::max(offset, (other->offset + other->bytes + kRangeAlignment - 1) /
                                    kRangeAlignment * kRangeAlignment);
    }
    slot.offset = offset;
    placed.push_back(s);
    auto arena = std::ranges::find(arenas_, slot.device, &Arena::device);
    if (arena == arenas_.end()) arena = arenas_.insert(arenas_.end(), Arena{slot.device, {}, 0});
    arena->bytes = std::max(arena->bytes, offset + slot.bytes);
  }
  // Launches bind even an empty tensor, so it gets one word that nothing else overlaps.
  for (const PlanStep& step : steps_) {
    for (const uint32_t s : step.reads) {
      PlanSlot& slot = slots_[s];
      if (!slot.is_temporary() || slot.bytes != 0 || slot.device.info().is_cpu) continue;
      Arena& arena = *std::ranges::find(arenas_, slot.device, &Arena::device);
      slot.offset = (arena.bytes + kRangeAlignment - 1) / kRangeAlignment * kRangeAlignment;
      arena.bytes = slot.offset + 4;
    }
  }
}

void Plan::allocate() {
  allocated_ = true;
  for (PlanSlot& slot : slots_) {
    if (slot.kept || slot.zero) slot.storage = allocate_storage(slot.device, slot.bytes);
    if (slot.storage && !slot.storage->is_host() && !slot.storage->buffer) {
      throw Error(
          ErrorCode::kInvalidArgument,
          "eval: an input was made by without_values() and has no values; such tensors are only "
          "for estimate_memory()");
    }
  }
  for (Arena& arena : arenas_)
    arena.storage = shared_ ? shared_->reserve(arena.device, arena.bytes)
                            : allocate_storage(arena.device, arena.bytes);
}

void Plan::zero_slots() {
  for (const PlanSlot& slot : slots_)
    if (slot.zero) write_storage(*slot.storage, 0, std::vector<std::byte>(slot.bytes));
}

const std::shared_ptr<Storage>& SharedArenas::reserve(const Device& device, uint64_t bytes) {
  for (std::shared_ptr<Storage>& each : storages_) {
    if (each->device != device) continue;
    if (each->bytes < bytes) each = allocate_storage(device, bytes);
    return each;
  }
  return storages_.emplace_back(allocate_storage(device, bytes));
}

uint64_t SharedArenas::bytes(const Device& device) const {
  for (const std::shared_ptr<Storage>& each : storages_)
    if (each->device == device) return each->bytes;
  return 0;
}

std::vector<PlanMemory> Plan::memory() const {
  std::vector<PlanMemory> all;
  const auto of = [&](const Device& device) -> PlanMemory& {
    const auto known = std::ranges::find(all, device, &PlanMemory::device);
    if (known != all.end()) return *known;
    return all.emplace_back(PlanMemory{device, 0, 0, 0, 0});
  };
  for (const Arena& arena : arenas_) of(arena.device).temporaries = allocation_bytes(arena.bytes);
  for (uint32_t s = 0; s < slots_.size(); ++s) {
    const PlanSlot& slot = slots_[s];
    if (slot.is_temporary()) continue;
    PlanMemory& memory = of(slot.device);
    if (slot.kept || slot.zero)
      memory.outputs += allocation_bytes(slot.bytes);
    else if (std::ranges::count(input_slots_, s))
      memory.inputs += allocation_bytes(slot.bytes);
    else
      memory.present += slot.bytes;
  }
  return all;
}

}  // namespace prism
