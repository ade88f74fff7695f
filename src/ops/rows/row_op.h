// The base of ops over rows of the last axis: the elements they read, fused chains before and
// after them, the launch, and the loop over rows on the CPU.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "cpu/elementwise.h"
#include "ops/rows/row_source.h"
#include "ops/rows/row_walk.h"
#include "ops/tail.h"

namespace prism {

// Inputs: the rows', the op's own (weights), the tail's.
class RowOp : public TailedOp {
 public:
  std::string attributes() const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  std::shared_ptr<const Op> with_prologue(size_t input, const Chain& chain) const override;
  void launch(DeviceCall& call) const override;

 protected:
  RowOp(RowSource source, size_t own_inputs, Tail tail)
      : TailedOp(std::move(tail)), source_(std::move(source)), own_inputs_(own_inputs) {}

  // The same op with another source and another tail.
  virtual std::shared_ptr<const Op> with(RowSource source, Tail tail) const = 0;
  // Whether the op writes one element for each that it reads; otherwise no tail can be fused.
  virtual bool gives_rows() const { return true; }

  // The kernel for one kind of rows, and the key of its other specialisations. Buffers: the rows',
  // the op's own, the tail's, y. Params: RowLoop's, number(), the tail's.
  virtual ir::Kernel make_kernel(const RowBinding& rows, const RowWalk& walk, DType stored,
                                 const std::shared_ptr<const TailSpec>& tail) const = 0;
  virtual std::string kernel_key() const { return {}; }
  // The op's own parameters: at most two words.
  virtual std::vector<ParamValue> number() const { return {}; }

  std::shared_ptr<const Op> with_tail(Tail tail) const override;
  // Adds the launch over bound rows into these outputs.
  void launch_rows(DeviceCall& call, const RowBinding& rows, const RowWalk& walk, DType stored,
                   const TailBinding& tail, std::span<const DeviceView> results) const;

  // Calls f(x, y, row) for every row, on all threads. f writes its result for the n elements of x
  // to y; the tail is applied and the result stored. T: float or double, the type of the rows.
  template <class T, class Function>
  void for_rows(const CpuCall& call, const Function& f) const;

  size_t first_other() const { return source_.inputs() + own_inputs_; }

  size_t other_buffers(const Tail& tail) const { return own_inputs_ + tail.others() + 1; }
  size_t other_params(const Tail& tail) const {
    return (source_.type() == DType::f64 ? 4 : 3) + tail.params();
  }

  RowSource source_;
  size_t own_inputs_;
};

template <class T, class Function>
void RowOp::for_rows(const CpuCall& call, const Function& f) const {
  const Rows& rows = source_.rows();
  const HostView& output = call.outputs[0];
  if (output.layout.shape.elements() == 0) return;
  constexpr DType wide = dtype_of<T>();
  const int64_t n = rows.length;
  const auto bytes = static_cast<int64_t>(output.type.block_bytes());
  std::byte* const to = output.data + output.layout.offset * bytes;
  const bool direct = output.type == ElementType(wide);
  std::optional<TailRows> tail;
  if (!tail_.empty()) tail.emplace(call, tail_, first_other(), rows.outer, n);
  const auto each = static_cast<int64_t>(rows_a_chunk(n));
  call.pool.parallel_for(
      static_cast<uint64_t>(rows.outer), static_cast<uint64_t>(each),
      [&](uint64_t begin, uint64_t end) {
        RowReader reader(source_, call);
        std::vector<T> made(direct ? 0 : static_cast<size_t>(each * n));
        for (auto first = static_cast<int64_t>(begin); first < static_cast<int64_t>(end);
             first += each) {
          const int64_t count = std::min(each, static_cast<int64_t>(end) - first);
          T* const results = direct ? reinterpret_cast<T*>(to) + first * n : made.data();
          for (int64_t i = 0; i < count; ++i)
            f(reader.read<T>(first + i, 0, 0, n), results + i * n, first + i);
          if (tail)
            tail->run(first, count, reinterpret_cast<float*>(results));
          else if (!direct)
            cpu::store(wide, results, output.type.plain(), to + first * n * bytes,
                       static_cast<size_t>(count * n));
        }
      });
}

}  // namespace prism
