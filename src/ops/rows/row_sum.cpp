// row_sum: the sum of a row in the place of each of its elements, so that functions of a row's
// elements and their sum are one launch.
#include <fmt/format.h>

#include "cpu/rows.h"
#include "ops/rows/row_op.h"
#include "prism/error.h"
#include "prism/ops/reduce.h"

namespace prism {

namespace {

using namespace dsl;

ir::Kernel row_sum_kernel(const RowBinding& source, const RowWalk& walk, DType stored,
                          const std::shared_ptr<const TailSpec>& spec) {
  return kernel("row_sum", walk.group, [&] {
    RowCode x(source);
    TailCode tail(spec);
    const Array y = out("y", stored);
    RowLoop loop(walk, x);
    tail.declare_params();
    loop.load(0);
    Var own(walk.type, loop.number(0), "sum");
    loop.each([&](const std::vector<Value>& four, Value) {
      for (const Value each : four) own += each;
    });
    const Value sum = loop.join(ReduceOp::add, own);
    const auto ended = [&](const std::vector<Value>& four, Value) {
      return std::vector<Value>(four.size(), sum);
    };
    loop.store(y, stored, ended, tail);
  });
}

// Works along the last axis.
class RowSumOp : public RowOp {
 public:
  explicit RowSumOp(RowSource source, Tail tail = {})
      : RowOp(std::move(source), 0, std::move(tail)) {}

  std::string_view name() const override { return "row_sum"; }
  std::vector<Spec> infer(std::span<const Tensor>) const override {
    return {{source_.shape(), source_.stored()}};
  }
  std::vector<Tensor> gradient(const GradientCall& call) const override {
    return {row_sum(call.output_gradients[0])};
  }
  void run_cpu(const CpuCall& call) const override {
    with_float(source_.type(), [&](auto sample) { run<decltype(sample)>(call); });
  }

 protected:
  std::shared_ptr<const Op> with(RowSource source, Tail tail) const override {
    return std::make_shared<RowSumOp>(std::move(source), std::move(tail));
  }
  ir::Kernel make_kernel(const RowBinding& rows, const RowWalk& walk, DType stored,
                         const std::shared_ptr<const TailSpec>& tail) const override {
    return row_sum_kernel(rows, walk, stored, tail);
  }

 private:
  template <class T>
  void run(const CpuCall& call) const {
    const auto n = static_cast<size_t>(source_.rows().length);
    for_rows<T>(call, [n](const T* x, T* y, int64_t) {
      std::fill_n(y, n, static_cast<T>(cpu::row_sum(x, n)));
    });
  }
};

}  // namespace

Tensor row_sum(const Tensor& x) {
  const auto fail = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, "row_sum: " + what);
  };
  if (!x) fail("an empty Tensor as an input");
  if (x.type().is_block() || !is_float(x.type().plain()))
    fail(fmt::format("elements of type {}; they must be floats", x.type().name()));
  if (x.rank() == 0) fail("x has no axis to work along");
  RowSource source(x.type().plain(), x.shape(), x.rank() - 1, x.rank());
  return use_op(std::make_shared<RowSumOp>(std::move(source)), {x});
}

}  // namespace prism
