// Slot allocation: slots are created with the steps, and get frame offsets once their live ranges
// are known.
#include <algorithm>
#include <map>

#include "ir/interpreter/interpreter_translate.h"

namespace prism::ir::vm {

uint32_t Translator::new_slot(SlotKind kind) {
  Slot slot;
  slot.kind = kind;
  slots_.push_back(slot);
  return static_cast<uint32_t>(slots_.size() - 1);
}

uint32_t Translator::new_mask() { return new_slot({4, false, true}); }

uint32_t Translator::constant_slot(uint64_t bits, uint8_t bytes, bool plane) {
  auto [place, fresh] = constants_.try_emplace({bits, bytes * 2u + plane}, 0);
  if (fresh) {
    place->second = new_slot({bytes, !plane, false});
    slots_[place->second].kept = true;
    slots_[place->second].constant = bits;
  }
  return place->second;
}

uint32_t Translator::input_slot(uint32_t& place, bool plane) {
  if (place == kNone) {
    place = new_slot({4, !plane, false});
    slots_[place].kept = true;
  }
  return place;
}

uint32_t Translator::as_plane(uint32_t slot) {
  if (!is_uniform(slot)) return slot;
  const Slot from = slots_[slot];
  if (from.constant) return constant_slot(*from.constant, from.kind.bytes, true);
  // A variable's plane would be stale after the next assignment.
  const bool changes = std::any_of(variables_.begin(), variables_.end(), [&](const Slots& v) {
    return std::find(v.begin(), v.end(), slot) != v.end();
  });
  if (!changes)
    for (const auto& [known, plane] : planes_)
      if (known == slot) return plane;
  const uint32_t plane = new_slot({from.kind.bytes, false, false});
  Step step;
  step.run = find_copy(from.kind.bytes, true, false);
  step.args[0] = plane;
  step.args[1] = slot;
  step.arg_count = 2;
  program_.steps.push_back(step);
  if (!changes) planes_.emplace_back(slot, plane);
  return plane;
}

uint32_t Translator::result_slot(const Inst& inst, uint32_t element, bool uniform,
                                 bool elementwise) {
  const uint8_t bytes = dtype_bytes(inst.type.element) == 8 ? 8 : 4;
  const uint32_t variable = analysis_.computed_in[inst.result];
  if (variable == kNone || !takes_part_fully()) return new_slot({bytes, uniform, false});
  uint32_t& place = variables_[variable][element];
  if (place == kNone) place = new_slot({bytes, analysis_.uniform_variable[variable], false});
  bool free = is_uniform(place) == uniform;
  for (Value arg : inst.args)
    for (uint32_t e = 0; e < kernel_.values[arg].lanes; ++e)
      if (values_[arg][e] == place && (e != element || !elementwise)) free = false;
  return free ? place : new_slot({bytes, uniform, false});
}

void Translator::place_slots() {
  const auto touch = [&](uint32_t slot, uint32_t step) {
    Slot& s = slots_[slot];
    if (s.first == kNone) s.first = step;
    s.last = std::max(s.last, step);
    // A slot written before a loop and used in it must live until the loop ends.
    for (const LoopRange& loop : loops_)
      if (loop.begin <= step && step < loop.end && s.first < loop.begin)
        s.last = std::max(s.last, loop.end);
  };
  for (uint32_t i = 0; i < program_.steps.size(); ++i) {
    const Step& step = program_.steps[i];
    for (uint32_t a = 0; a < step.arg_count; ++a) touch(step.args[a], i);
    if (step.mask != kNone) touch(step.mask, i);
  }

  uint64_t end = 0;
  const auto size_of = [&](const SlotKind& kind) -> uint64_t {
    if (kind.uniform) return 8;
    return uint64_t{program_.padded + (kind.mask ? kLanePad : 0)} * kind.bytes;
  };
  const auto grow = [&](const SlotKind& kind) {
    const uint64_t alignment = kind.uniform ? 8 : 64;
    end = (end + alignment - 1) / alignment * alignment;
    const uint64_t offset = end;
    end += size_of(kind);
    return static_cast<uint32_t>(offset);
  };
  std::vector<std::vector<uint32_t>> starts(program_.steps.size()),
      stops(program_.steps.size() + 1);
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.kept || slot.kind.uniform) {
      slot.offset = grow(slot.kind);
      if (slot.constant) program_.constants.push_back({slot.offset, *slot.constant, slot.kind});
    } else if (slot.first != kNone) {
      starts[slot.first].push_back(i);
      stops[std::min<size_t>(slot.last, program_.steps.size())].push_back(i);
    }
  }
  std::map<uint64_t, std::vector<uint32_t>> free;
  for (uint32_t step = 0; step < program_.steps.size(); ++step) {
    for (uint32_t i : starts[step]) {
      std::vector<uint32_t>& places = free[size_of(slots_[i].kind)];
      if (places.empty()) {
        slots_[i].offset = grow(slots_[i].kind);
      } else {
        slots_[i].offset = places.back();
        places.pop_back();
      }
    }
    for (uint32_t i : stops[step]) free[size_of(slots_[i].kind)].push_back(slots_[i].offset);
  }
  program_.frame_bytes = (end + 63) / 64 * 64 + 64;

  const auto offset_of = [&](uint32_t& slot) {
    if (slot != kNone) slot = slots_[slot].offset;
  };
  for (Step& step : program_.steps) {
    for (uint32_t a = 0; a < step.arg_count; ++a) offset_of(step.args[a]);
    offset_of(step.mask);
  }
  Inputs& inputs = program_.inputs;
  for (uint32_t& slot : inputs.params) offset_of(slot);
  for (uint32_t& slot : inputs.group_id) offset_of(slot);
  for (uint32_t& slot : inputs.group_count) offset_of(slot);
  offset_of(inputs.local_id);
  offset_of(inputs.subgroup_id);
  offset_of(inputs.subgroup_lane);
}

}  // namespace prism::ir::vm
