// Translates memory and fragment instructions into steps, each preceded by its checks.
#include <algorithm>

#include <fmt/format.h>

#include "ir/interpreter/interpreter_checks.h"
#include "ir/interpreter/interpreter_flow.h"
#include "ir/interpreter/interpreter_translate.h"

namespace prism::ir::vm {

uint32_t Translator::predicate_mask(const Inst& inst, Value predicate) {
  const uint32_t condition = as_plane(values_[predicate][0]);
  const uint32_t mask = new_mask();
  emit(inst, find_flow(Flow::make_mask), {mask, condition}).jump = kNone;
  return mask;
}

void Translator::load(const Inst& inst) {
  const Memory& memory = kernel_.memories[inst.object];
  const bool words = inst.op == Op::load_words;
  if (memory.space == Space::buffer && memory.access == Access::write)
    fail(inst,
         fmt::format(
             "buffer {} is declared for writing only and cannot be read; declare it with inout",
             memory.name));
  const bool has_predicate = inst.args.size() > 1;
  const bool own = memory.space == Space::local;
  const bool once = !own && analysis_.uniform[inst.result];
  const uint32_t given = values_[inst.args[0]][0];
  const uint32_t index = once || (own && is_uniform(given)) ? given : as_plane(given);
  const uint8_t bytes = words || dtype_bytes(memory.element) != 8 ? 4 : 8;
  uint32_t mask = region_->mask;
  if (has_predicate && (!once || checked())) mask = predicate_mask(inst, inst.args[1]);
  check_access(inst, inst.object, index, inst.type.lanes, mask, words ? kReadsWords : kReads);
  std::vector<uint32_t> args;
  for (uint32_t e = 0; e < inst.type.lanes; ++e) {
    args.push_back(has_predicate ? new_slot({bytes, once, false})
                                 : result_slot(inst, e, once, false));
    values_[inst.result][e] = args.back();
  }
  args.push_back(index);
  if (once && has_predicate) args.push_back(values_[inst.args[1]][0]);
  Step& step = emit(
      inst, words ? find_load_words(once) : find_load(memory.element, memory.space, once), args);
  step.lanes = inst.type.lanes;
  step.object = inst.object;
  step.mask = mask;
  step.contiguous = analysis_.contiguous[inst.args[0]] && !own;
  step.zero_inactive = has_predicate;
  step.bits = has_predicate;
}

void Translator::store(const Inst& inst) {
  const Memory& memory = kernel_.memories[inst.object];
  const bool words = inst.op == Op::store_words;
  if (memory.space == Space::buffer && memory.access == Access::read)
    fail(inst, fmt::format("buffer {} is declared for reading only and cannot be written; declare "
                           "it with out or inout",
                           memory.name));
  const bool own = memory.space == Space::local;
  const Type type = kernel_.values[inst.args[1]];
  const uint32_t given = values_[inst.args[0]][0];
  const uint32_t mask = inst.args.size() > 2 ? predicate_mask(inst, inst.args[2]) : region_->mask;
  std::vector<uint32_t> args = {own && is_uniform(given) ? given : as_plane(given)};
  for (uint32_t e = 0; e < type.lanes; ++e) args.push_back(as_plane(values_[inst.args[1]][e]));
  check_access(inst, inst.object, args[0], type.lanes, mask, words ? kWritesWords : kWrites);
  Step& step =
      emit(inst, words ? find_store_words() : find_store(memory.element, memory.space), args);
  step.lanes = type.lanes;
  step.object = inst.object;
  step.mask = mask;
  step.contiguous = analysis_.contiguous[inst.args[0]] && !own;
}

void Translator::atomic(const Inst& inst) {
  const Memory& memory = kernel_.memories[inst.object];
  if (memory.space == Space::local)
    fail(inst, fmt::format("{} is a lane's own array; atomics work on buffers and shared arrays",
                           memory.name));
  std::vector<uint32_t> args = {new_slot({4, false, false})};
  for (Value arg : inst.args) args.push_back(as_plane(values_[arg][0]));
  check_access(inst, inst.object, args[1], 1, region_->mask, kAtomic);
  Step& step = emit(inst, find_atomic(memory.element, memory.space == Space::shared), args);
  step.object = inst.object;
  step.bits = inst.bits;
  if (inst.result != kNone) values_[inst.result][0] = args[0];
}

void Translator::async_copy(const Inst& inst) {
  std::vector<uint32_t> args;
  for (Value arg : inst.args) args.push_back(as_plane(values_[arg][0]));
  const uint32_t elements = static_cast<uint32_t>(inst.bits);
  check_access(inst, inst.object, args[0], elements, region_->mask, kCopiesAhead);
  if (checked()) {
    const uint32_t mask = inst.args.size() > 2 ? predicate_mask(inst, inst.args[2]) : region_->mask;
    check_access(inst, inst.object2, args[1], elements, mask, kReads);
  }
  Step& step = emit(inst, find_async_copy(), args);
  step.object = inst.object;
  step.object2 = inst.object2;
  step.bits = inst.bits;
}

void Translator::fragment(const Inst& inst) {
  if (program_.lanes % program_.subgroup)
    fail(inst, fmt::format("fragments need whole subgroups; the group has {} lanes, a subgroup {}",
                           program_.lanes, program_.subgroup));
  check_whole_group(inst);
  std::vector<uint32_t> args;
  for (Value arg : inst.args) args.push_back(as_plane(values_[arg][0]));
  const auto copy = [&](Run run) {
    Step& step = emit(inst, run, args);
    step.object = inst.object;
    step.object2 = inst.object2;
    step.bits = inst.bits;
  };
  if (checked()) copy(find_fragment_check());
  copy(find_fragment(inst.op));
}

void Translator::fragment_map(const Inst& inst) {
  const std::vector<Value>& params = inst.blocks[0].params;
  if (params.size() != inst.objects.size() + 2 || inst.objects.size() + 4 > kMaxArgs)
    fail(inst, fmt::format("fragment_map takes up to {} fragments, not {}", kMaxArgs - 4,
                           inst.objects.size()));
  if (program_.lanes % program_.subgroup)
    fail(inst, fmt::format("fragments need whole subgroups; the group has {} lanes, a subgroup {}",
                           program_.lanes, program_.subgroup));
  check_whole_group(inst);
  if (checked()) emit(inst, find_fragment_check(), {}).object = inst.object;
  const uint32_t round = new_slot({4, true, false});
  emit(inst, find_copy(4, true, true), {round, constant_slot(0, 4, false)});
  const uint32_t mask = new_mask();
  std::vector<uint32_t> args = {round, mask};
  for (size_t i = 0; i < 2; ++i) {
    args.push_back(new_slot({4, false, false}));
    values_[params[params.size() - 2 + i]][0] = args.back();
  }
  for (size_t i = 0; i < inst.objects.size(); ++i) {
    args.push_back(new_slot({4, false, false}));
    values_[params[i]][0] = args.back();
  }
  const uint32_t begin = here();
  emit(inst, find_map_begin(), args).object = inst.object;
  inner(inst.blocks[0], mask);
  const uint32_t value = as_plane(values_[inst.blocks[0].body.back().args[0]][0]);
  Step& end = emit(inst, find_map_end(), {round, value});
  end.object = inst.object;
  end.jump = begin;
  loops_.push_back({begin, here()});
  aim(begin);
}

void Translator::check_operands(const Inst& inst) {
  const Run run = checked() ? find_operand_check(inst) : nullptr;
  if (!run) return;
  std::vector<uint32_t> args;
  for (Value arg : inst.args) {
    if (kernel_.values[arg].lanes != 1) return;
    args.push_back(values_[arg][0]);
  }
  emit(inst, run, args);
}

void Translator::check_whole_group(const Inst& inst) {
  if (checked()) emit(inst, find_group_check(), {}).bits = inst.bits;
}

void Translator::check_access(const Inst& inst, uint32_t memory, uint32_t index, uint32_t elements,
                              uint32_t mask, uint64_t kind) {
  if (!checked()) return;
  Step& step = emit(inst, find_access_check(), {index});
  step.object = memory;
  step.mask = mask;
  step.bits = kind;
  step.object2 = elements;
}

}  // namespace prism::ir::vm
