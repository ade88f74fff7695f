// Creation of graph nodes, and the defaults of the op interface.
#include "tensor/op.h"

#include <fmt/format.h>

#include "prism/error.h"
#include "tensor/alias.h"

namespace prism {

namespace {

thread_local bool no_grad = false;
thread_local RecordedNodes* recording = nullptr;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

NoGrad::NoGrad() : before_(no_grad) { no_grad = true; }
NoGrad::~NoGrad() { no_grad = before_; }
bool NoGrad::active() { return no_grad; }

RecordedNodes::RecordedNodes() : before_(recording) { recording = this; }
RecordedNodes::~RecordedNodes() { recording = before_; }
void RecordedNodes::add(const std::shared_ptr<Node>& node) {
  for (RecordedNodes* each = recording; each; each = each->before_) each->nodes.push_back(node);
}

std::vector<Tensor> Op::gradient(const GradientCall&) const {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{}: has no gradient; detach() the tensors that come out of it", name()));
}

std::optional<std::string> Op::cannot_run(const DeviceInfo&, std::span<const Tensor>) const {
  return std::nullopt;
}

bool Op::takes_layout(size_t, const Tensor& tensor, const DeviceInfo& device) const {
  if (!tensor.layout().is_dense()) return false;
  return device.is_cpu ||
         tensor.layout().offset * tensor.type().block_bytes() % kRangeAlignment == 0;
}

int Op::overwrites(std::span<const Tensor>) const { return -1; }

double Op::operations(std::span<const DeviceView>, std::span<const DeviceView>) const { return 0; }

std::shared_ptr<const Op> Op::with_epilogue(const Chain&, size_t) const { return nullptr; }
std::shared_ptr<const Op> Op::with_prologue(size_t, const Chain&) const { return nullptr; }

std::vector<Tensor> use_op_all(std::shared_ptr<const Op> op, std::vector<Tensor> inputs,
                               const Device& device) {
  auto node = std::make_shared<Node>();
  node->device = device.current();
  for (const Tensor& each : inputs) {
    if (!each) fail(fmt::format("{}: an empty Tensor as an input", op->name()));
    if (!node->device) node->device = each.device();
    if (each.device() != node->device) {
      fail(fmt::format("{}: one input is on {}, another on {}; move one with to(device)",
                       op->name(), node->device.id(), each.device().id()));
    }
    node->requires_grad = node->requires_grad || (each.requires_grad() && !no_grad);
  }
  if (!node->device) node->device = default_device();
  node->outputs = op->infer(inputs);
  node->op = std::move(op);
  node->inputs = std::move(inputs);
  RecordedNodes::add(node);
  std::vector<Tensor> results;
  for (uint32_t i = 0; i < node->outputs.size(); ++i) results.emplace_back(node, i);
  return results;
}

Tensor use_op(std::shared_ptr<const Op> op, std::vector<Tensor> inputs, const Device& device) {
  return use_op_all(std::move(op), std::move(inputs), device)[0];
}

}  // namespace prism
