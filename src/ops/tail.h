// Tails: elementwise epilogues of another op in the same launch, such as a bias, a residual, a gate
// or a cast.
//
// The planner offers chains through Op::with_epilogue, and the op stores them as a Tail. Kernels
// apply it if the chain's other inputs have the layout of the result or broadcast to it
// (bind_tail); otherwise it is a separate launch after the op's (launch_tail).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/kernel.h"
#include "tensor/chain/chain.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

class Tail {
 public:
  // Input 0 is the op's result in f32; the others are inputs of the op, after its own.
  const Chain& chain() const { return chain_; }
  bool empty() const { return chain_.steps.empty(); }
  size_t others() const { return empty() ? 0 : chain_.inputs.size() - 1; }
  // The number of kernel parameters for its constants.
  size_t params() const;
  std::string text() const;  // readable: " then x0 + x1"; empty if there is no tail

  // Appends chain, whose input number `input` is this tail's result; nullopt if the chain does not
  // compute in f32.
  std::optional<Tail> then(const Chain& chain, size_t input) const;

 private:
  Chain chain_;
};

// An op that accepts elementwise epilogues. Its inputs: its own, then the tail's others.
class TailedOp : public Op {
 public:
  std::shared_ptr<const Op> with_epilogue(const Chain& chain, size_t chain_input) const override;

 protected:
  explicit TailedOp(Tail tail) : tail_(std::move(tail)) {}
  // Returns the same op with another tail, or null if it does not fit.
  virtual std::shared_ptr<const Op> with_tail(Tail tail) const = 0;

  Tail tail_;
};

// --- on devices with kernels

// How an input is indexed for the result at a row and column of the op's matrix: by the result's
// place, its place in a period that repeats (a vector over several of the op's rows), its column or
// its row, or as a scalar; or not loaded, because the kernel computes it.
enum class TailAccess : char {
  place = 'p',
  period = 'n',
  column = 'c',
  row = 'r',
  one = '1',
  made = 'm'
};

// The specialisation of a kernel.
struct TailSpec {
  Chain chain;
  std::vector<TailAccess> access;      // for each input except the first
  std::vector<uint32_t> periods = {};  // in order, for inputs that repeat: multiples of four
  std::string key() const;
};

struct TailBinding {
  std::shared_ptr<const TailSpec> spec;  // null: no tail
  std::vector<DeviceView> buffers;
  std::vector<ParamValue> params;
};

// Binds the inputs of call from first_other on; nullopt if one has a layout that kernels cannot
// read. columns: width of the matrix that the op computes, whose rows are contiguous in output
// number `output`, whatever its shape. made: the one of the tail's others that the kernel computes
// and that call does not have.
std::optional<TailBinding> bind_tail(const DeviceCall& call, const Tail& tail, size_t first_other,
                                     int64_t columns, size_t output = 0,
                                     std::optional<size_t> made = {});
// The same for a result of that shape, whatever the outputs' layout.
std::optional<TailBinding> bind_tail(const DeviceCall& call, const Tail& tail, size_t first_other,
                                     int64_t columns, const Shape& result,
                                     std::optional<size_t> made = {});
// Applies the tail in a separate launch.
void launch_tail(DeviceCall& call, const Tail& tail, size_t first_other, const DeviceView& made);

// The tail inside a kernel: the constructor declares the buffers, declare_params() the parameters.
// Without a spec, results are unchanged.
class TailCode {
 public:
  // suffix: appended to the names if a kernel has several tails.
  explicit TailCode(std::shared_ptr<const TailSpec> spec, std::string suffix = {});
  void declare_params();
  // The value to store for one result. made: the input that the kernel computed, in f32.
  dsl::Value apply(dsl::Value result, dsl::Value row, dsl::Value column, dsl::Value place,
                   std::optional<dsl::Value> made = {}) const;
  // The same for four adjacent results; the first column and place are multiples of four.
  std::vector<dsl::Value> apply_four(const std::vector<dsl::Value>& results, dsl::Value row,
                                     dsl::Value column, dsl::Value place) const;

 private:
  dsl::Value in_period(size_t input, const dsl::Value& place) const;

  std::shared_ptr<const TailSpec> spec_;
  std::string suffix_;
  std::vector<std::optional<dsl::In>> buffers_;  // none for a computed input
  std::vector<dsl::Value> constants_;
};

// --- on the CPU

// Applies the tail to the op's row-major f32 result and writes the output; both may be the same
// memory.
void run_tail(const CpuCall& call, const Tail& tail, size_t first_other, float* made);

// The same for some of the rows, so that ops can finish them while they are in the cache.
// Thread-safe.
class TailRows {
 public:
  TailRows(const CpuCall& call, const Tail& tail, size_t first_other, int64_t rows,
           int64_t columns);
  // made: the results from row `first` on.
  void run(int64_t first, int64_t count, float* made) const;
  // For results that are in the output's memory, which is f32: a block of rows and columns.
  void run_in_place(int64_t row, int64_t rows, int64_t column, int64_t columns) const;

 private:
  const Tail& tail_;
  ThreadPool& pool_;
  HostView output_;
  std::vector<HostView> others_;                 // as [rows, columns]
  std::vector<std::shared_ptr<std::byte>> own_;  // copies of those with another layout
};

}  // namespace prism
