// Kernels under construction and their blocks as objects of Python.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bindings.h"
#include "dsl/open_block.h"
#include "prism/error.h"
#include "prism/kernel.h"

namespace prism::python {

using dsl::Operand;
using dsl::Value;
using dsl::Where;
using BinaryValue = Value (*)(Operand, Operand);

Where here();  // the line of Python that calls
// A name of a kernel's type ("f32", "u32"), or what element_type() takes.
DType kernel_type(nb::handle given);

// The same with an optional number of lanes: "f32x4".
ir::Type kernel_vector_type(nb::handle given);
// "add", "min", "max", "bit_and", "bit_or" or "bit_xor"; atomics also have "exchange".
ir::ReduceOp reduce_op(const std::string& name);
ir::AtomicOp atomic_op(const std::string& name);

// A variable of the kernel. `v.set(x)` and `v += x` change it.
struct VarHandle {
  std::shared_ptr<dsl::Var> variable;
};

// A value, a variable or a number.
Operand operand_of(nb::handle given);

// --- a kernel under construction, then the kernel
class KernelHandle {
 public:
  KernelHandle(std::string name, uint32_t group_size)
      : name_(std::move(name)), group_size_(group_size) {}

  void enter() {
    if (builder_ || is_built_)
      throw Error(ErrorCode::kInvalidKernel, "kernel " + name_ + ": it is written once");
    builder_ = dsl::begin_kernel(name_, group_size_, here());
  }
  void leave(bool failed) {
    const std::unique_ptr<dsl::Builder> builder = std::move(builder_);
    if (!builder || failed) return;
    kernel_ = dsl::end_kernel(*builder);
    is_built_ = true;
  }
  // The functions of the language write into the kernel that was entered last.
  void check_open() const {
    if (!builder_ || &dsl::Builder::current() != builder_.get())
      throw Error(ErrorCode::kInvalidKernel,
                  "kernel " + name_ + ": statements are written inside its `with` block");
  }
  const Kernel& kernel() const {
    if (!is_built_)
      throw Error(ErrorCode::kInvalidKernel,
                  "kernel " + name_ + ": it is not complete before the end of its `with` block");
    return kernel_;
  }
  const std::string& name() const { return name_; }
  uint32_t group_size() const { return group_size_; }
  bool is_built() const { return is_built_; }

 private:
  std::string name_;
  uint32_t group_size_;
  std::unique_ptr<dsl::Builder> builder_;
  Kernel kernel_;
  bool is_built_ = false;
};

// A block of a kernel as a context manager.
class BlockHandle {
 public:
  explicit BlockHandle(std::function<dsl::OpenBlock()> begin) : begin_(std::move(begin)) {}
  nb::object enter() {
    block_ = begin_();
    return block_.index == ir::kNone ? nb::none() : nb::cast(Value(block_.index));
  }
  void leave(bool failed) {
    if (failed)
      dsl::Builder::current().end_block();
    else
      dsl::end_block(std::move(block_));
  }

 private:
  std::function<dsl::OpenBlock()> begin_;
  dsl::OpenBlock block_;
};

void bind_kernel_values(nb::module_& m);
void bind_kernel_fragments(nb::module_& m);
void bind_kernel_functions(nb::class_<KernelHandle>& type);
void bind_fragment_functions(nb::class_<KernelHandle>& type);

}  // namespace prism::python
