// Chains of element functions over what another op computes, in the same launch: a bias, a
// residual, a gate, a cast as the result is stored.
//
// The planner offers such chains by Op::with_epilogue. A Tail is what an op keeps of one; kernels
// take it where the chain's other inputs lie like the result or repeat along it (bind_tail), and
// elsewhere it is a launch of its own after the op's (launch_tail).
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
  // Input 0 is what the op computes, in f32; the others are inputs of the op, after its own.
  const Chain& chain() const { return chain_; }
  bool empty() const { return chain_.steps.empty(); }
  size_t others() const { return empty() ? 0 : chain_.inputs.size() - 1; }
  // What kernels need for it: numbers that are parameters.
  size_t params() const;
  std::string text() const;  // for people, " then x0 + x1"; empty where there is none

  // This and then chain, whose input number `input` this is; nothing for chains that compute in
  // anything but f32.
  std::optional<Tail> then(const Chain& chain, size_t input) const;

 private:
  Chain chain_;
};

// An op that takes chains on its results. Its inputs: its own, then the tail's others.
class TailedOp : public Op {
 public:
  std::shared_ptr<const Op> with_epilogue(const Chain& chain, size_t chain_input) const override;

 protected:
  explicit TailedOp(Tail tail) : tail_(std::move(tail)) {}
  // The same op with another tail; null where it does not fit.
  virtual std::shared_ptr<const Op> with_tail(Tail tail) const = 0;

  Tail tail_;
};

// --- on devices with kernels

// Where an element of an input lies, for the result at some row and column of the op's own matrix:
// in the result's place, at its column, at its row, or it is the only one; or nowhere, because the
// kernel made it too.
enum class TailAccess : char { place = 'p', column = 'c', row = 'r', one = '1', made = 'm' };

// What a kernel is specialised by.
struct TailSpec {
  Chain chain;
  std::vector<TailAccess> access;  // of each input but the first
  std::string key() const;
};

struct TailBinding {
  std::shared_ptr<const TailSpec> spec;  // null: none
  std::vector<DeviceView> buffers;
  std::vector<ParamValue> params;
};

// The inputs of call from first_other on, as a kernel reads them; nothing where one of them lies
// otherwise. columns: of the matrix that the op computes, whose rows the output of that number
// holds one after the other, whatever its shape. made: which of the tail's others the kernel makes
// itself and call does not have.
std::optional<TailBinding> bind_tail(const DeviceCall& call, const Tail& tail, size_t first_other,
                                     int64_t columns, size_t output = 0,
                                     std::optional<size_t> made = {});
// The same for a result of that shape, however the outputs hold it.
std::optional<TailBinding> bind_tail(const DeviceCall& call, const Tail& tail, size_t first_other,
                                     int64_t columns, const Shape& result,
                                     std::optional<size_t> made = {});
// The tail by itself, of what the op made.
void launch_tail(DeviceCall& call, const Tail& tail, size_t first_other, const DeviceView& made);

// Inside a kernel: declares the buffers on construction and the parameters when asked. Without a
// spec results stay as they are.
class TailCode {
 public:
  // suffix: of the names, where a kernel has several.
  explicit TailCode(std::shared_ptr<const TailSpec> spec, std::string suffix = {});
  void declare_params();
  // The value that is stored for one result. made: what the kernel made beside it, in f32.
  dsl::Value apply(dsl::Value result, dsl::Value row, dsl::Value column, dsl::Value place,
                   std::optional<dsl::Value> made = {}) const;
  // The same of four results side by side, the first at multiples of four in column and place.
  std::vector<dsl::Value> apply_four(const std::vector<dsl::Value>& results, dsl::Value row,
                                     dsl::Value column, dsl::Value place) const;

 private:
  std::shared_ptr<const TailSpec> spec_;
  std::string suffix_;
  std::vector<std::optional<dsl::In>> buffers_;  // none for what is made
  std::vector<dsl::Value> constants_;
};

// --- on the CPU

// What the op made, in f32 and row by row, into its output; they may be the same memory.
void run_tail(const CpuCall& call, const Tail& tail, size_t first_other, float* made);

// The same for some of the rows, so that ops finish them while they are in the cache. For all
// threads.
class TailRows {
 public:
  TailRows(const CpuCall& call, const Tail& tail, size_t first_other, int64_t rows,
           int64_t columns);
  // made: of row `first` on.
  void run(int64_t first, int64_t count, float* made) const;

 private:
  const Tail& tail_;
  ThreadPool& pool_;
  HostView output_;
  std::vector<HostView> others_;                 // as [rows, columns]
  std::vector<std::shared_ptr<std::byte>> own_;  // copies of those that did not lie so
};

}  // namespace prism
