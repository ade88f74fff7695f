// Structured control flow, barriers and cross-lane operations in SPIR-V.
#include "print/spirv/spirv.h"
#include "print/spirv/spirv_emitter.h"

namespace prism::spirv {

using ir::Op;

void Emitter::branch(Id to) {
  if (!ended_) module_.emit_void(Code::Branch, {to});
}

void Emitter::block(const ir::Block& block) {
  ended_ = false;
  for (const ir::Inst& inst : block.body) {
    instruction(inst);
    if (ended_) return;  // code after a break is unreachable
  }
}

void Emitter::if_(const ir::Inst& inst) {
  const bool has_else = inst.blocks.size() > 1 && !inst.blocks[1].body.empty();
  const Id then = module_.new_id(), merge = module_.new_id();
  const Id otherwise = has_else ? module_.new_id() : merge;
  module_.emit_void(Code::SelectionMerge, {merge, kSelectionControlNone});
  module_.emit_void(Code::BranchConditional, {value(inst.args[0]), then, otherwise});
  module_.label(then);
  block(inst.blocks[0]);
  branch(merge);
  if (has_else) {
    module_.label(otherwise);
    block(inst.blocks[1]);
    branch(merge);
  }
  module_.label(merge);
  ended_ = false;
}

void Emitter::for_(const ir::Inst& inst) {
  const Id header = module_.new_id(), test = module_.new_id(), body = module_.new_id();
  const Id next = module_.new_id(), merge = module_.new_id();
  const ir::Type type = type_of(inst.args[0]);
  const Id type_of_index = type_id(type);
  const Id index = module_.function_variable(type_of_index);
  module_.emit_void(Code::Store, {index, value(inst.args[0])});
  module_.emit_void(Code::Branch, {header});

  module_.label(header);
  module_.emit_void(Code::LoopMerge, {merge, next,
                                      has(kKeepLoops)  ? kLoopControlDontUnroll
                                      : inst.bits == 1 ? kLoopControlUnroll
                                                       : kLoopControlNone});
  module_.emit_void(Code::Branch, {test});
  module_.label(test);
  const Id now = module_.emit(Code::Load, type_of_index, {index});
  const Id more = compare(Op::lt, type, now, value(inst.args[1]));
  module_.emit_void(Code::BranchConditional, {more, body, merge});

  module_.label(body);
  values_[inst.blocks[0].params.at(0)] = now;
  break_targets_.push_back(merge);
  block(inst.blocks[0]);
  break_targets_.pop_back();
  branch(next);

  module_.label(next);
  const Id later = module_.emit(Code::IAdd, type_of_index, {now, value(inst.args[2])});
  module_.emit_void(Code::Store, {index, later});
  module_.emit_void(Code::Branch, {header});
  module_.label(merge);
  ended_ = false;
}

void Emitter::while_(const ir::Inst& inst) {
  const Id header = module_.new_id(), test = module_.new_id(), body = module_.new_id();
  const Id next = module_.new_id(), merge = module_.new_id();
  module_.emit_void(Code::Branch, {header});
  module_.label(header);
  module_.emit_void(Code::LoopMerge,
                    {merge, next, has(kKeepLoops) ? kLoopControlDontUnroll : kLoopControlNone});
  module_.emit_void(Code::Branch, {test});
  module_.label(test);
  break_targets_.push_back(merge);
  block(inst.blocks[0]);
  module_.emit_void(Code::BranchConditional, {yielded_, body, merge});
  module_.label(body);
  block(inst.blocks[1]);
  break_targets_.pop_back();
  branch(next);
  module_.label(next);
  module_.emit_void(Code::Branch, {header});
  module_.label(merge);
  ended_ = false;
}

void Emitter::barrier() {
  uint32_t semantics = kAcquireRelease | kUniformMemory | kWorkgroupMemory;
  if (module_.vulkan_memory_model()) semantics |= kMakeAvailable | kMakeVisible;
  const Id group = module_.constant_u32(static_cast<uint32_t>(Scope::Workgroup));
  module_.emit_void(Code::ControlBarrier, {group, group, module_.constant_u32(semantics)});
}

void Emitter::device_fence() {
  uint32_t semantics = kAcquireRelease | kUniformMemory;
  if (module_.vulkan_memory_model()) semantics |= kMakeAvailable | kMakeVisible;
  module_.emit_void(Code::MemoryBarrier,
                    {module_.constant_u32(static_cast<uint32_t>(Scope::Device)),
                     module_.constant_u32(semantics)});
}

bool Emitter::control(const ir::Inst& inst) {
  switch (inst.op) {
    case Op::if_:
      if_(inst);
      return true;
    case Op::for_:
      for_(inst);
      return true;
    case Op::while_:
      while_(inst);
      return true;
    case Op::break_:
      module_.emit_void(Code::Branch, {break_targets_.back()});
      ended_ = true;
      return true;
    case Op::yield:
      yielded_ = value(inst.args[0]);
      return true;
    case Op::barrier:
      barrier();
      return true;
    case Op::device_fence:
      device_fence();
      return true;
    case Op::declare:
    case Op::assign:
      module_.emit_void(Code::Store, {variables_[inst.object], value(inst.args[0])});
      return true;
    // Launches do not overlap here: no-ops.
    case Op::wait_previous:
    case Op::launch_next:
    case Op::comment:
      return true;
    default:
      return false;
  }
}

Id Emitter::across_lanes(const ir::Inst& inst) {
  if (inst.op != Op::subgroup_reduce && inst.op != Op::subgroup_scan &&
      inst.op != Op::subgroup_shuffle && inst.op != Op::subgroup_shuffle_xor)
    return 0;
  module_.require(Capability::GroupNonUniform);
  const Id type = type_id(inst.type);
  const Id scope = module_.constant_u32(static_cast<uint32_t>(Scope::Subgroup));
  const Id a = value(inst.args[0]);
  if (inst.op == Op::subgroup_shuffle || inst.op == Op::subgroup_shuffle_xor) {
    module_.require(Capability::GroupNonUniformShuffle);
    if (inst.op == Op::subgroup_shuffle)
      return module_.emit(Code::GroupNonUniformShuffle, type, {scope, a, value(inst.args[1])});
    return module_.emit(Code::GroupNonUniformShuffleXor, type,
                        {scope, a, module_.constant_u32(static_cast<uint32_t>(inst.bits))});
  }
  module_.require(Capability::GroupNonUniformArithmetic);
  const uint32_t group = inst.op == Op::subgroup_reduce ? kReduce
                         : inst.object == 1             ? kExclusiveScan
                                                        : kInclusiveScan;
  const bool floating = is_float(inst.type.element);
  const bool is_signed = is_signed_int(inst.type.element);
  const bool logical = inst.type.element == DType::b1;
  auto pick = [&](Code f, Code s, Code u) { return floating ? f : is_signed ? s : u; };
  Code code = Code::GroupNonUniformIAdd;
  switch (static_cast<ir::ReduceOp>(inst.bits)) {
    case ir::ReduceOp::add:
      code = floating ? Code::GroupNonUniformFAdd : Code::GroupNonUniformIAdd;
      break;
    case ir::ReduceOp::min:
      code = pick(Code::GroupNonUniformFMin, Code::GroupNonUniformSMin, Code::GroupNonUniformUMin);
      break;
    case ir::ReduceOp::max:
      code = pick(Code::GroupNonUniformFMax, Code::GroupNonUniformSMax, Code::GroupNonUniformUMax);
      break;
    case ir::ReduceOp::bit_and:
      code = logical ? Code::GroupNonUniformLogicalAnd : Code::GroupNonUniformBitwiseAnd;
      break;
    case ir::ReduceOp::bit_or:
      code = logical ? Code::GroupNonUniformLogicalOr : Code::GroupNonUniformBitwiseOr;
      break;
    case ir::ReduceOp::bit_xor:
      code = logical ? Code::GroupNonUniformLogicalXor : Code::GroupNonUniformBitwiseXor;
      break;
  }
  return module_.emit(code, type, {scope, group, a});
}

}  // namespace prism::spirv
