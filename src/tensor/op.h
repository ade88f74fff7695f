// What an op is: a shape rule, a gradient, a native CPU kernel and launches for other devices.
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

struct Spec {  // of one output; outputs lie dense
  Shape shape;
  ElementType type = DType::f32;
};

// A tensor's memory during a CPU kernel.
struct HostView {
  std::byte* data = nullptr;  // of element 0 of the storage: the layout's offset is yet to add
  ElementType type = DType::f32;
  Layout layout;

  // The first element. Of plain types; block types have no offset within a row.
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

// A tensor's memory in a plan for another device: a slot, and how the elements lie in it.
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
  std::span<const Tensor> output_gradients;  // empty tensors where nothing came back
  std::span<const bool> wanted;              // which inputs need one
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;

  // The rule: what comes out, or kInvalidArgument naming the op and the shapes.
  virtual std::vector<Spec> infer(std::span<const Tensor> inputs) const = 0;

  // One gradient an input, of its shape and type; an empty tensor where there is none to give.
  virtual std::vector<Tensor> gradient(const GradientCall& call) const;
  virtual bool has_gradient() const { return true; }

  virtual void run_cpu(const CpuCall& call) const = 0;
  // Writes the launches for a device other than the CPU.
  virtual void launch(DeviceCall& call) const = 0;

  // Why a device cannot run this for these inputs; nothing when it can. Says so by type: what a
  // kernel lacks is found by lowering.
  virtual std::optional<std::string> cannot_run(const DeviceInfo& device,
                                                std::span<const Tensor> inputs) const;
  // Whether an input may lie as it does. What it does not take is copied first. Unless an op says
  // otherwise: dense, and on devices with buffers beginning at a multiple of kRangeAlignment.
  virtual bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const;
  // The input whose memory the first output may take over, once nobody else needs it: element i is
  // read before it is written, by the same lane. -1: none.
  virtual int overwrites(std::span<const Tensor> inputs) const;
  // Whether launches can do so too: they bind that memory once, as read and written.
  virtual bool launches_overwrite() const { return false; }
  // How many inputs, from the first, the op changes in place: their memory is that of the outputs
  // of the same numbers. They have their values before the plan, all of them; what reads such an
  // input itself in the same plan may see either state.
  virtual uint32_t changed_inputs() const { return 0; }
  // --- joining with elementwise neighbours: the op that does both, or null where it cannot.
  // Epilogue: chain runs on each element of the first output as it is stored; chain_input says
  // which input of the chain that element is. Inputs of the result: this op's, then the chain's
  // others, each of the output's shape or broadcast to it.
  virtual std::shared_ptr<const Op> with_epilogue(const Chain& chain, size_t chain_input) const;
  // Prologue: input i is what chain makes of others. Inputs of the result: this op's with input i
  // replaced, in its place, by those of the chain.
  virtual std::shared_ptr<const Op> with_prologue(size_t input, const Chain& chain) const;

  // Additions and multiplications of a product, for the time that a step should take. 0: its memory
  // is what counts.
  virtual double operations(std::span<const DeviceView> inputs,
                            std::span<const DeviceView> outputs) const;
  // Of attributes, for plan.explain(): "axis 1".
  virtual std::string attributes() const { return {}; }
};

// A node of the graph: an op and what it is applied to, or values that are there.
struct Node {
  std::shared_ptr<const Op> op;  // null: a leaf, or evaluated and cut off from what was before
  std::vector<Tensor> inputs;
  std::vector<Spec> outputs;
  Device device;
  std::vector<std::shared_ptr<Storage>> storage;  // one an output once evaluated, else empty
  bool requires_grad = false;                     // asked for, or an input's
  bool is_input = false;                          // of a function being compiled: never folded
  Tensor grad;                                    // of a leaf, gathered by backward()

  bool is_evaluated() const { return !storage.empty(); }
};

// Checks that all inputs are on one device (kInvalidArgument names both), infers, makes the node.
// device: for ops without inputs.
Tensor use_op(std::shared_ptr<const Op> op, std::vector<Tensor> inputs, const Device& device = {});
std::vector<Tensor> use_op_all(std::shared_ptr<const Op> op, std::vector<Tensor> inputs,
                               const Device& device = {});

}  // namespace prism
