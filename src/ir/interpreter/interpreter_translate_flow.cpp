// Translates control flow into jumps where it is uniform, and into masks elsewhere.
#include "ir/interpreter/interpreter_flow.h"
#include "ir/interpreter/interpreter_translate.h"

namespace prism::ir::vm {

void Translator::if_else(const Inst& inst) {
  const uint32_t condition = values_[inst.args[0]][0];
  const bool has_else = inst.blocks.size() > 1 && !inst.blocks[1].body.empty();
  if (is_uniform(condition)) {
    emit(inst, find_flow(Flow::jump_unless), {condition});
    const uint32_t test = here() - 1;
    inner(inst.blocks[0], region_->mask);
    if (!has_else) return aim(test);
    emit(inst, find_flow(Flow::jump), {});
    const uint32_t past = here() - 1;
    aim(test);
    inner(inst.blocks[1], region_->mask);
    return aim(past);
  }
  for (uint32_t side = 0; side < (has_else ? 2u : 1u); ++side) {
    if (inst.blocks[side].body.empty()) continue;
    const uint32_t mask = new_mask();
    emit(inst, find_flow(Flow::make_mask), {mask, condition}).bits = side;
    const uint32_t test = here() - 1;
    inner(inst.blocks[side], mask);
    aim(test);
  }
}

void Translator::for_loop(const Inst& inst) {
  uint32_t start = values_[inst.args[0]][0], end = values_[inst.args[1]][0],
           step = values_[inst.args[2]][0];
  const uint64_t is_signed = kernel_.values[inst.args[0]].element == DType::i32;
  const bool varying = analysis_.varying_loop.at(&inst);
  const bool once = is_uniform(start) && is_uniform(step);
  const uint32_t index = new_slot({4, once, false});
  emit(inst, find_copy(4, is_uniform(start), once), {index, start});
  Loop loop;
  loop.varying = varying;
  loop.mask = region_->mask;
  uint32_t head = 0;
  if (varying) {
    end = as_plane(end);
    if (!once) step = as_plane(step);
    loop.mask = new_mask();
    emit(inst, find_flow(Flow::copy_mask), {loop.mask});
    emit(inst, find_flow(once ? Flow::for_head_once : Flow::for_head_masked),
         {loop.mask, index, end})
        .bits = is_signed;
  } else {
    emit(inst, find_flow(Flow::for_head), {index, end}).bits = is_signed;
  }
  head = here() - 1;
  const uint32_t begin = here();
  Loop* outer = std::exchange(loop_, &loop);
  values_[inst.blocks[0].params[0]][0] = index;
  inner(inst.blocks[0], loop.mask);
  loop_ = outer;
  Step& next = varying ? emit(inst, find_flow(once ? Flow::for_next_once : Flow::for_next_masked),
                              {loop.mask, index, end, step})
                       : emit(inst, find_flow(Flow::for_next), {index, end, step});
  next.jump = begin;
  loops_.push_back({begin, here()});
  aim(head);
  aim(loop.leaves);
}

void Translator::while_loop(const Inst& inst) {
  Loop loop;
  loop.varying = analysis_.varying_loop.at(&inst);
  loop.mask = region_->mask;
  if (loop.varying) {
    loop.mask = new_mask();
    emit(inst, find_flow(Flow::copy_mask), {loop.mask});
  }
  const uint32_t begin = here();
  Loop* outer = std::exchange(loop_, &loop);
  inner(inst.blocks[0], loop.mask);
  const uint32_t condition = values_[inst.blocks[0].body.back().args[0]][0];
  uint32_t test = 0;
  if (loop.varying) {
    const uint32_t plane = as_plane(condition);
    emit(inst, find_flow(Flow::narrow_mask), {loop.mask, plane});
  } else {
    emit(inst, find_flow(Flow::jump_unless), {condition});
  }
  test = here() - 1;
  inner(inst.blocks[1], loop.mask);
  loop_ = outer;
  emit(inst, find_flow(Flow::jump), {}).jump = begin;
  loops_.push_back({begin, here()});
  aim(test);
  aim(loop.leaves);
}

void Translator::leave_loop(const Inst& inst) {
  if (region_->mask == loop_->mask) {  // all active lanes leave
    emit(inst, find_flow(Flow::jump), {});
    loop_->leaves.push_back(here() - 1);
    return;
  }
  emit(inst, find_flow(Flow::drop_lanes), {loop_->mask});
  emit(inst, find_flow(Flow::jump), {});
  region_->leaves.push_back(here() - 1);
}

void Translator::drop_those_who_left(const Inst& inst) {
  if (!loop_ || !loop_->varying || !breaks_out(inst)) return;
  emit(inst, find_flow(Flow::narrow_mask), {region_->mask, loop_->mask});
  region_->leaves.push_back(here() - 1);
}

}  // namespace prism::ir::vm
