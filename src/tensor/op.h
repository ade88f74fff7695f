// The interface of ops: a shape rule, a gradient, a CPU kernel and launches for other devices.
//
// An op object holds the attributes of one use (an axis, an epsilon). It never changes, so graphs
// and plans share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/thread_pool.h"
#include "prism/device.h"
#include "prism/tensor.h"

namespace prism {

struct Spec {  // describes one output; outputs are dense
  Shape shape;
  ElementType type = DType::f32;
};

// A tensor's memory during a CPU kernel.
struct HostView {
  std::byte* data = nullptr;  // element 0 of the storage, before the layout's offset
  ElementType type = DType::f32;
  Layout layout;

  // The first element of a plain type. Block types have no offset within a row.
  template <class T>
  T* first() const {
    return reinterpret_cast<T*>(data) + layout.offset;
  }
};

struct CpuCall {
  std::span<const HostView> inputs;
  std::span<const HostView> outputs;
  ThreadPool& pool;
};

// A tensor's memory in a plan for another device: a slot and the layout in it.
struct DeviceView {
  uint32_t slot = 0;
  ElementType type = DType::f32;
  Layout layout;
  int64_t elements() const { return layout.shape.elements(); }
};

class DeviceCall;  // device_call.h
struct Chain;      // chain.h

struct GradientCall {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> output_gradients;  // empty tensors where no gradient arrived
  std::span<const bool> wanted;              // which inputs need one
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;

  // The shapes and types of the outputs; kInvalidArgument names the op and the shapes found.
  virtual std::vector<Spec> infer(std::span<const Tensor> inputs) const = 0;

  // A gradient for each input, with its shape and type; an empty tensor if there is none.
  virtual std::vector<Tensor> gradient(const GradientCall& call) const;
  virtual bool has_gradient() const { return true; }

  virtual void run_cpu(const CpuCall& call) const = 0;
  // Writes the launches for a device other than the CPU.
  virtual void launch(DeviceCall& call) const = 0;

  // Why a device cannot run this for these inputs; nullopt if it can. Decides by element types;
  // lowering finds other features that the device lacks.
  virtual std::optional<std::string> cannot_run(const DeviceInfo& device,
                                                std::span<const Tensor> inputs) const;
  // Whether the op accepts the layout of an input; the planner copies other inputs first. By
  // default inputs must be dense and, on devices with buffers, begin at a multiple of
  // kRangeAlignment.
  virtual bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const;
  // The input whose memory the first output may reuse when it has no other users: the same lane
  // reads element i before it writes it. -1: none.
  virtual int overwrites(std::span<const Tensor> inputs) const;
  // Whether launches can reuse it too. They bind that memory once, for reading and writing.
  virtual bool launches_overwrite() const { return false; }
  // The number of leading inputs that the op changes in place: output i has the memory of input i.
  // These inputs must be evaluated before the plan. Other readers in the same plan may see them
  // before or after the change.
  virtual uint32_t changed_inputs() const { return 0; }
  // --- fusion with elementwise neighbours: the fused op, or null if fusion is not possible.
  // Epilogue: applies chain to each element of the first output before it is stored; that element
  // is input chain_input of the chain. Inputs of the result: this op's, then the chain's other
  // inputs, each with the output's shape or broadcast to it.
  virtual std::shared_ptr<const Op> with_epilogue(const Chain& chain, size_t chain_input) const;
  // Prologue: computes the input with chain. Inputs of the result: this op's, with the chain's
  // inputs in place of the computed one.
  virtual std::shared_ptr<const Op> with_prologue(size_t input, const Chain& chain) const;

  // Additions and multiplications of a product, to estimate the time of a step. 0: memory traffic
  // decides.
  virtual double operations(std::span<const DeviceView> inputs,
                            std::span<const DeviceView> outputs) const;
  // The attributes for plan.explain(): "axis 1".
  virtual std::string attributes() const { return {}; }
};

// A node of the graph: an op with its inputs, or values.
struct Node {
  std::shared_ptr<const Op> op;  // null: a leaf, or evaluated and detached from its inputs
  std::vector<Tensor> inputs;
  std::vector<Spec> outputs;
  Device device;
  std::vector<std::shared_ptr<Storage>> storage;  // one per output once evaluated, else empty
  bool requires_grad = false;                     // set by the user, or inherited from an input
  bool is_input = false;                          // of a function being compiled, not a constant
  Tensor grad;                                    // of a leaf, accumulated by backward()

  bool is_evaluated() const { return !storage.empty(); }
};

// Makes a node. Throws kInvalidArgument if the inputs are on different devices or do not fit the
// op. device: for ops without inputs.
Tensor use_op(std::shared_ptr<const Op> op, std::vector<Tensor> inputs, const Device& device = {});
std::vector<Tensor> use_op_all(std::shared_ptr<const Op> op, std::vector<Tensor> inputs,
                               const Device& device = {});

}  // namespace prism
