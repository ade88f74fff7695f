// Collects the nodes of a graph and emits the steps of its plan.
#include "tensor/plan/planner.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/wait_first.h"
#include "prism/error.h"
#include "runtime/fallback.h"
#include "tensor/alias.h"
#include "tensor/chain/chain_op.h"
#include "tensor/plan/device_fallback.h"

namespace prism {

Planner::Planner(Plan& plan, std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                 const PlanOptions& options)
    : plan_(plan), outputs_(outputs), inputs_(inputs), options_(options) {}

void Planner::make() {
  for (const Tensor& each : outputs_) wanted_[{each.node().get(), each.output()}] = true;
  for (const Tensor& each : inputs_) bring_values(*each.node());
  collect();
  if (options_.reuse_memory) remake();
  count_uses();
  if (options_.fuse) {
    fuse();
    share();
    join_alike();
    join_prepared();
    fold_norms();
  }
  for (const Tensor& each : inputs_) plan_.input_slots_.push_back(view_of(each).slot);
  count_uses();  // recount after fusion
  hold_unkept();
  for (Item* item : emission_order()) {
    emit(*item);
    for (const Tensor& input : item->inputs) --uses_[input.node().get()];
  }
  for (const Tensor& each : outputs_) plan_.output_slots_.push_back(view_of(each).slot);
  wait_for_made_weights();
}

// With overlapping launches a product prefetches its weights before it waits for the previous
// launch; weights computed by an earlier step may not be written by then, so such launches wait
// first. A later write to the weights is safe: runs do not overlap.
void Planner::wait_for_made_weights() {
  std::vector<bool> made(plan_.slots_.size());
  for (PlanStep& step : plan_.steps_) {
    for (const uint32_t slot : step.writes) made[slot] = true;
    if (!step.device.info().capabilities.dependent_launch) continue;
    for (PlannedLaunch& launch : step.launches) {
      if (launch.product || !launch.program) continue;
      const ir::Kernel& kernel = launch.program.kernel();
      const bool early = std::ranges::any_of(kernel.memories, [&](const ir::Memory& memory) {
        return memory.space == ir::Space::buffer && memory.constant &&
               made[launch.slots[memory.binding]];
      });
      if (early) launch.program = step.device.compile(ir::waiting_first(kernel));
    }
  }
}

// Depth first without recursion: training graphs are deeper than the stack.
void Planner::collect() {
  std::vector<std::pair<Node*, size_t>> open;
  std::unordered_map<const Node*, bool> seen;
  const auto visit = [&](Node* node) {
    bring_values(*node);
    if (!node->is_evaluated() && seen.try_emplace(node, true).second) open.emplace_back(node, 0);
  };
  for (const Tensor& each : outputs_) {
    visit(each.node().get());
    while (!open.empty()) {
      auto& [node, next] = open.back();
      if (next < node->inputs.size()) {
        visit(node->inputs[next++].node().get());
        continue;
      }
      if (!node->op) {
        throw Error(ErrorCode::kInvalidArgument,
                    "eval: a tensor without values and without an op to compute them");
      }
      item_of_[node] = items_.size();
      items_.push_back({node, node->op, node->inputs});
      open.pop_back();
    }
  }
}

void Planner::count_uses() {
  uses_.clear();
  for (const Item& item : items_) {
    if (item.dropped) continue;
    for (const Tensor& input : item.inputs) ++uses_[input.node().get()];
  }
  for (const Tensor& each : outputs_) uses_[each.node().get()] += kAlwaysUsed;
}

uint32_t Planner::new_slot(const Device& device, uint64_t bytes) {
  PlanSlot& slot = plan_.slots_.emplace_back();
  slot.device = device;
  slot.bytes = bytes;
  return static_cast<uint32_t>(plan_.slots_.size() - 1);
}

DeviceView Planner::view_of(const Tensor& tensor) {
  Node& node = *tensor.node();
  DeviceView view{0, tensor.type(), tensor.layout()};
  if (node.is_evaluated()) {
    const std::shared_ptr<Storage>& storage = node.storage[tensor.output()];
    const auto [entry, fresh] = slot_of_storage_.try_emplace(storage.get(), 0);
    if (fresh) {
      entry->second = new_slot(storage->device, storage->bytes);
      plan_.slots_[entry->second].storage = storage;
    }
    view.slot = entry->second;
  } else {
    view.slot = slot_of_.at({&node, tensor.output()});
  }
  return view;
}

uint32_t Planner::output_slot(Node& node, uint32_t output, const Device& device) {
  const Spec& spec = node.outputs[output];
  const uint32_t slot = new_slot(device, storage_bytes(spec.shape, spec.type, device));
  if (device == node.device) slot_of_[{&node, output}] = slot;
  if (device == node.device && wanted_.contains({&node, output})) plan_.slots_[slot].kept = true;
  return slot;
}

void Planner::push(PlanStep step) {
  const auto index = static_cast<uint32_t>(plan_.steps_.size());
  for (const DeviceView& view : step.inputs) step.reads.push_back(view.slot);
  for (const DeviceView& view : step.outputs) step.writes.push_back(view.slot);
  for (const PlannedLaunch& launch : step.launches)
    for (const uint32_t slot : launch.slots)
      if (!std::ranges::count(step.reads, slot) && !std::ranges::count(step.writes, slot))
        step.writes.push_back(slot);  // scratch
  for (const auto* slots : {&step.reads, &step.writes}) {
    for (const uint32_t s : *slots) {
      PlanSlot& slot = plan_.slots_[s];
      slot.first_step = std::min(slot.first_step, index);
      slot.last_step = std::max(slot.last_step, index);
    }
  }
  plan_.steps_.push_back(std::move(step));
}

DeviceView Planner::on_device(DeviceView view, const Device& device) {
  const Device from = plan_.slots_[view.slot].device;
  if (from == device) return view;
  if (view.type.is_block() && view.layout.shape.rank() == 2 && view.layout.stride(0) == 1) {
    // A transposed quantised matrix: copy the rows, then transpose the view again.
    const auto turn = [](Layout& layout) {
      std::swap(layout.shape[0], layout.shape[1]);
      std::swap(layout.strides[0], layout.strides[1]);
    };
    turn(view.layout);
    view = on_device(view, device);
    turn(view.layout);
    return view;
  }
  if (!view.layout.is_dense() && !view.type.is_block() && !from.info().is_cpu &&
      ChainOp(copy_chain(view.type.plain())).cannot_run(from.info(), {})) {
    // A device that lacks the type cannot gather its elements either: copy the whole memory and
    // gather on the CPU.
    DeviceView whole = view;
    whole.layout = Layout::dense(
        Shape{static_cast<int64_t>(plan_.slots_[view.slot].bytes / view.type.block_bytes())});
    view.slot = on_device(whole, Device::cpu()).slot;
    return on_device(dense(view), device);
  }
  view = dense(view);
  PlanStep step;
  step.kind = PlanStep::Kind::copy;
  step.device = device;
  step.name = "copy to " + device.id();
  step.from = from;
  step.inputs = {view};
  view.layout.offset = 0;
  view.slot = new_slot(device, storage_bytes(view.layout.shape, view.type, device));
  step.outputs = {view};
  push(std::move(step));
  return view;
}

DeviceView Planner::dense(const DeviceView& view) {
  return view.layout.is_dense() ? view : copy_of(view);
}

DeviceView Planner::copy_of(const DeviceView& view) {
  const Device device = plan_.slots_[view.slot].device;
  if (view.type.is_block()) {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("a view of {} elements of type {} is not row-major; slice whole "
                            "rows, or dequantise first",
                            view.layout.shape.text(), view.type.name()));
  }
  PlanStep step;
  step.op = std::make_shared<ChainOp>(copy_chain(view.type.plain()));
  step.device = device;
  step.name = "copy";
  step.inputs = {view};
  DeviceView result = view;
  result.layout = Layout::dense(view.layout.shape);
  result.slot = new_slot(device, storage_bytes(view.layout.shape, view.type, device));
  step.outputs = {result};
  if (device.info().is_cpu) {
    step.kind = PlanStep::Kind::host;
  } else {
    step.kind = PlanStep::Kind::launches;
    DeviceCall call(device, step.inputs, step.outputs,
                    [&](uint64_t bytes) { return new_slot(device, bytes); });
    step.op->launch(call);
    step.launches = std::move(call.launches());
  }
  push(std::move(step));
  return result;
}

void Planner::emit(Item& item) {
  if (dynamic_cast<const ToDeviceOp*>(item.op.get())) return emit_transfer(item);
  if (dynamic_cast<const AliasOp*>(item.op.get())) return emit_alias(item);
  const Device& device = item.node->device;
  const auto reason =
      device.info().is_cpu ? std::nullopt : item.op->cannot_run(device.info(), item.inputs);
  if (!reason) {
    // Compiling the kernel shows whether it can be lowered for the device.
    const Plan::Mark mark = plan_.mark();
    try {
      return watching(device, [&] { emit_on(device, item, ""); });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported || device.info().is_cpu) throw;
      plan_.back_to(mark);
      if (!item.apart.empty()) {
        // uses_ counts an input of the joint item once, so none of the parts may overwrite it.
        for (const Item& each : item.apart)
          for (const Tensor& input : each.inputs) uses_[input.node().get()] += kAlwaysUsed;
        for (Item& each : item.apart) emit(each);
        return;
      }
      if (item.alone) emit_unkept(*item.alone);
      return emit_on(Device::cpu(), item.alone ? *item.alone : item, error.what());
    }
  }
  emit_on(Device::cpu(), item, fmt::format("{}: {}", device.id(), *reason));
}

// Returns the slot of an input that is dead after this op and that the op may overwrite with its
// result. A launch must not bind one buffer as both read and written, so the op must opt in.
std::optional<uint32_t> Planner::dying_input(const Item& item, const PlanStep& step) {
  if (!options_.reuse_memory) return std::nullopt;
  if (step.kind != PlanStep::Kind::host && !item.op->launches_overwrite()) return std::nullopt;
  if (item.node->outputs.size() != 1 || wanted_.contains({item.node, 0})) return std::nullopt;
  const int input = item.op->overwrites(item.inputs);
  if (input < 0) return std::nullopt;
  const Tensor& taken = item.inputs[static_cast<size_t>(input)];
  const uint32_t slot = step.inputs[static_cast<size_t>(input)].slot;
  const Spec& spec = item.node->outputs[0];
  // This op is the last user.
  const bool alone = uses_[taken.node().get()] == 1 && taken.node()->outputs.size() == 1;
  // A slot shared with other tensors (written in place) cannot be taken over.
  const bool own = slot_of_.contains({taken.node().get(), 0}) &&
                   slot_of_.at({taken.node().get(), 0}) == slot && !plan_.slots_[slot].in_place &&
                   !plan_.slots_[slot].aliased;
  if (!alone || !own || !plan_.slots_[slot].is_temporary() ||
      plan_.slots_[slot].bytes != storage_bytes(spec.shape, spec.type, step.device))
    return std::nullopt;
  return slot;
}

void Planner::emit_on(const Device& device, const Item& item, const std::string& reason) {
  Node& node = *item.node;
  PlanStep step;
  step.kind = device.info().is_cpu ? PlanStep::Kind::host : PlanStep::Kind::launches;
  step.device = device;
  step.op = item.op;
  step.name = item.op->name();
  step.reason = reason;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    DeviceView view = on_device(view_of(item.inputs[i]), device);
    const bool moved = view.layout != item.inputs[i].layout();
    if (!moved && !item.op->takes_layout(i, item.inputs[i], device.info())) view = copy_of(view);
    step.inputs.push_back(view);
  }
  const uint32_t changed = item.op->changed_inputs();
  const auto slot_for = [&](uint32_t i, const Device& where) {
    if (i == 0 && where == device && device == node.device)
      if (const auto slot = dying_input(item, step)) return slot_of_[{&node, 0}] = *slot;
    if (i >= changed) return output_slot(node, i, where);
    if (where != node.device) return step.inputs[i].slot;  // a copy's slot, copied back below
    const uint32_t slot = view_of(item.inputs[i]).slot;
    plan_.slots_[slot].in_place = true;
    return slot_of_[{&node, i}] = slot;
  };
  for (uint32_t i = 0; i < node.outputs.size(); ++i) {
    const Spec& spec = node.outputs[i];
    step.outputs.push_back({slot_for(i, device), spec.type, Layout::dense(spec.shape)});
  }
  if (step.kind == PlanStep::Kind::launches) {
    const auto scratch = [&](uint64_t bytes) { return new_slot(device, bytes); };
    DeviceCall call(device, step.inputs, step.outputs, scratch, [&](uint64_t bytes) {
      const uint32_t slot = new_slot(device, bytes);
      plan_.slots_[slot].zero = true;
      return slot;
    });
    item.op->launch(call);
    step.launches = std::move(call.launches());
  }
  const std::vector<DeviceView> outputs = step.outputs;
  push(std::move(step));
  for (size_t i = 0; i < item.stands_for.size(); ++i)
    slot_of_[{item.stands_for[i], 0}] = outputs[i].slot;
  if (device == node.device) return;
  for (uint32_t i = 0; i < outputs.size(); ++i) {  // copy the results back to the node's device
    PlanStep back;
    back.kind = PlanStep::Kind::copy;
    back.device = node.device;
    back.name = "copy to " + node.device.id();
    back.from = device;
    back.inputs = {outputs[i]};
    back.outputs = {{slot_for(i, node.device), outputs[i].type, outputs[i].layout}};
    push(std::move(back));
  }
}

void Planner::emit_transfer(const Item& item) {
  Node& node = *item.node;
  PlanStep step;
  step.kind = PlanStep::Kind::copy;
  step.device = node.device;
  step.name = "copy to " + node.device.id();
  step.from = item.inputs[0].node()->device;
  step.inputs = {dense(view_of(item.inputs[0]))};
  const Spec& spec = node.outputs[0];
  step.outputs = {{output_slot(node, 0, node.device), spec.type, Layout::dense(spec.shape)}};
  push(std::move(step));
}

// No step, but for a result that is handed out: that needs memory of its own.
void Planner::emit_alias(const Item& item) {
  const Tensor& input = item.inputs[0];
  if (const auto* noted = dynamic_cast<const NotedOp*>(item.op.get()))
    if (!std::ranges::count(plan_.notes_, noted->note())) plan_.notes_.push_back(noted->note());
  if (wanted_.contains({item.node, 0}) || !(input.layout() == Layout::dense(input.shape()))) {
    const auto copy = std::make_shared<ChainOp>(copy_chain(input.type().plain()));
    return emit_on(item.node->device, {item.node, copy, {input}}, "");
  }
  const uint32_t slot = view_of(input).slot;
  plan_.slots_[slot].aliased = true;
  slot_of_[{item.node, 0}] = slot;
}

std::vector<Spec> ToDeviceOp::infer(std::span<const Tensor> inputs) const {
  return {{inputs[0].shape(), inputs[0].type()}};
}

std::vector<Tensor> ToDeviceOp::gradient(const GradientCall& call) const {
  return {call.output_gradients[0].to(call.inputs[0].device())};
}

void ToDeviceOp::run_cpu(const CpuCall&) const {}  // not called: the planner emits a copy
void ToDeviceOp::launch(DeviceCall&) const {}

}  // namespace prism
