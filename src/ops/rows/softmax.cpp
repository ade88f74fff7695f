// Softmax, log softmax and cross entropy: one op over the last axis with three results.
#include "prism/ops/softmax.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/rows.h"
#include "ops/rows/cross_entropy_gradient.h"
#include "ops/rows/row_op.h"
#include "prism/error.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "tensor/chain/chain_kernel.h"

namespace prism {

namespace {

using namespace dsl;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

enum class SoftmaxEnd : uint8_t { probability, logarithm, entropy };

const char* end_name(SoftmaxEnd end) {
  switch (end) {
    case SoftmaxEnd::probability:
      return "softmax";
    case SoftmaxEnd::logarithm:
      return "log_softmax";
    default:
      return "cross_entropy";
  }
}

ir::Kernel softmax_kernel(SoftmaxEnd end, const RowBinding& source, const RowWalk& walk,
                          DType stored, const std::shared_ptr<const TailSpec>& spec) {
  return kernel(end_name(end), walk.group, [&] {
    RowCode x(source);
    std::optional<In> target;
    if (end == SoftmaxEnd::entropy) target = in("target", i32);
    TailCode tail(spec);
    const Array y = out("y", stored);
    RowLoop loop(walk, x);
    tail.declare_params();
    const Value lowest = loop.lowest(), zero = loop.number(0);
    loop.load(-HUGE_VAL);
    // Subtracted before exp. It is 0 if all elements are -infinity, which would otherwise give NaN
    // in a partial sum.
    const auto base_of = [&](Value top) { return select(top == lowest, zero, top); };
    Var most(walk.type, lowest, "most"), sum(walk.type, zero, "sum");
    loop.each([&](const std::vector<Value>& four, Value) {
      Value top = four[0];
      for (size_t k = 1; k < four.size(); ++k) top = max(top, four[k]);
      const Value before = most, now = max(before, top);
      if (!loop.holds()) {  // online softmax: rescaling the sum saves one pass over the row
        const Value base = base_of(now);
        Value more = sum * exp(before - base);
        for (const Value each : four) more = more + exp(each - base);
        sum = more;
      }
      most = now;
    });
    const Value base = base_of(loop.join(ReduceOp::max, most));
    if (loop.holds()) {
      // For probabilities the registers hold the exponentials from here on.
      const bool keep = end != SoftmaxEnd::probability;
      if (!keep) loop.replace([&](Value each) { return exp(each - base); });
      loop.each([&](const std::vector<Value>& four, Value) {
        for (const Value each : four) sum += keep ? exp(each - base) : each;
      });
    } else {
      sum *= exp(Value(most) - base);
    }
    const Value total = loop.join(ReduceOp::add, sum);
    if (end == SoftmaxEnd::entropy) {
      const Value shift = log(total) + base, ignored = param("ignored", i32);
      loop.once([&] {
        const Value wanted = (*target)[loop.row()];
        const Value inside = wanted >= 0 && bitcast(u32, wanted) < loop.length();
        const Value at = select(inside, bitcast(u32, wanted), 0u);
        const Value nan = walk.type == f64 ? constant_bits(f64, 0x7ff8000000000000u)
                                           : constant_bits(f32, 0x7fc00000u);
        const Value loss = select(inside, shift - x.at(loop.row(), at), nan);
        y[loop.row()] = select(wanted == ignored, zero, loss);
      });
      return;
    }
    const Value scale = end == SoftmaxEnd::probability ? loop.number(1) / total : base + log(total);
    const auto ended = [&](const std::vector<Value>& four, Value) {
      std::vector<Value> results;
      for (const Value each : four) {
        if (end == SoftmaxEnd::logarithm)
          results.push_back(each - scale);
        else
          results.push_back((loop.holds() ? each : exp(each - base)) * scale);
      }
      return results;
    };
    loop.store(y, stored, ended, tail);
  });
}

// Works along the last axis.
class SoftmaxOp : public RowOp {
 public:
  SoftmaxOp(SoftmaxEnd end, RowSource source, int32_t ignored, Tail tail = {})
      : RowOp(std::move(source), end == SoftmaxEnd::entropy ? 1 : 0, std::move(tail)),
        end_(end),
        ignored_(ignored) {}

  std::string_view name() const override { return end_name(end_); }
  std::vector<Spec> infer(std::span<const Tensor>) const override {
    if (end_ == SoftmaxEnd::entropy) return {{Shape{source_.shape()[0]}, source_.type()}};
    return {{source_.shape(), source_.stored()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    const Tensor& g = call.output_gradients[0];
    const Tensor& y = call.outputs[0];
    if (end_ == SoftmaxEnd::probability) return {y * (g - sum(g * y, {-1}, true))};
    if (end_ == SoftmaxEnd::logarithm) return {g - exp(y) * sum(g, {-1}, true)};
    if (source_.type() == DType::f32)
      return {cross_entropy_gradient(call.inputs[0], call.inputs[1], g, ignored_), Tensor()};
    const Tensor &x = call.inputs[0], target = call.inputs[1].unsqueeze(1);
    const DType type = source_.type();
    const Tensor classes = arange(0, static_cast<double>(x.shape()[1]), 1, DType::i32, x.device());
    const Tensor hits = cast(equal(target, classes), type);
    const Tensor weight = where(equal(target, static_cast<double>(ignored_)), 0.0, g.unsqueeze(1));
    return {cast((softmax(cast(x, type)) - hits) * weight, x.type()), Tensor()};
  }

  void run_cpu(const CpuCall& call) const override {
    with_float(source_.type(), [&](auto sample) { run<decltype(sample)>(call); });
  }

 protected:
  std::shared_ptr<const Op> with(RowSource source, Tail tail) const override {
    return std::make_shared<SoftmaxOp>(end_, std::move(source), ignored_, std::move(tail));
  }
  bool gives_rows() const override { return end_ != SoftmaxEnd::entropy; }
  ir::Kernel make_kernel(const RowBinding& rows, const RowWalk& walk, DType stored,
                         const std::shared_ptr<const TailSpec>& tail) const override {
    return softmax_kernel(end_, rows, walk, stored, tail);
  }
  std::vector<ParamValue> number() const override {
    return end_ == SoftmaxEnd::entropy ? std::vector<ParamValue>{ignored_}
                                       : std::vector<ParamValue>{};
  }

 private:
  template <class T>
  void run(const CpuCall& call) const {
    const auto n = static_cast<size_t>(source_.rows().length);
    if (end_ == SoftmaxEnd::entropy) return run_losses<T>(call);
    for_rows<T>(call, [&](const T* x, T* y, int64_t) {
      if (end_ == SoftmaxEnd::probability)
        cpu::row_softmax(x, y, n);
      else
        cpu::row_log_softmax(x, y, n);
    });
  }

  template <class T>
  void run_losses(const CpuCall& call) const {
    const Rows& rows = source_.rows();
    const auto n = static_cast<size_t>(rows.length);
    T* const to = call.outputs[0].first<T>();
    call.pool.parallel_for(
        static_cast<uint64_t>(rows.outer), rows_a_chunk(rows.length),
        [&](uint64_t begin, uint64_t end) {
          RowReader reader(source_, call);
          std::vector<T> made(n);
          for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
            cpu::row_log_softmax(reader.read<T>(row, 0, 0, rows.length), made.data(), n);
            to[row] = loss(call, made.data(), row);
          }
        });
  }

  template <class T>
  T loss(const CpuCall& call, const T* logarithms, int64_t row) const {
    const int32_t target = call.inputs[source_.inputs()].first<int32_t>()[row];
    if (target == ignored_) return 0;
    if (target < 0 || target >= source_.rows().length) return std::numeric_limits<T>::quiet_NaN();
    return -logarithms[target];
  }

  SoftmaxEnd end_;
  int32_t ignored_;
};

void check_floats(const char* op, const Tensor& x) {
  if (!x) fail(fmt::format("{}: an empty Tensor as an input", op));
  if (x.type().is_block() || !is_float(x.type().plain()))
    fail(fmt::format("{}: elements of type {}; they must be floats", op, x.type().name()));
}

Tensor over_axis(SoftmaxEnd end, const Tensor& x, int axis) {
  check_floats(end_name(end), x);
  if (x.rank() == 0) return over_axis(end, x.reshape({1}), 0).reshape(Shape{});
  axis = checked_axis(end_name(end), axis, x.rank());
  const bool last = axis == x.rank() - 1;
  const Tensor rows = last ? x : x.transpose(axis, -1);
  RowSource source(x.type().plain(), rows.shape(), x.rank() - 1, x.rank());
  const Tensor y = use_op(std::make_shared<SoftmaxOp>(end, std::move(source), 0), {rows});
  return last ? y : y.transpose(axis, -1);
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) { return over_axis(SoftmaxEnd::probability, x, axis); }
Tensor log_softmax(const Tensor& x, int axis) { return over_axis(SoftmaxEnd::logarithm, x, axis); }

Tensor cross_entropy_rows(const Tensor& logits, const Tensor& target, int32_t ignore_index) {
  check_floats("cross_entropy", logits);
  if (!target || target.type() != ElementType(DType::i32))
    fail(fmt::format("cross_entropy: targets of type {}; they must be i32",
                     target ? target.type().name() : "none"));
  if (logits.rank() != 2 || target.rank() != 1 || target.shape()[0] != logits.shape()[0])
    fail(
        fmt::format("cross_entropy: logits {} and targets {}; they must be [rows, classes] and "
                    "[rows]",
                    logits.shape().text(), target.shape().text()));
  if (logits.shape()[1] == 0 && logits.shape()[0] > 0)
    fail(fmt::format("cross_entropy: logits {} have no classes", logits.shape().text()));
  RowSource source(logits.type().plain(), logits.shape(), 1, 2);
  return use_op(std::make_shared<SoftmaxOp>(SoftmaxEnd::entropy, std::move(source), ignore_index),
                {logits, target});
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, int32_t ignore_index) {
  const Tensor losses = cross_entropy_rows(logits, target, ignore_index);
  if (ignore_index == kNoIgnoredIndex) return mean(losses);
  const Tensor counted = not_equal(target, static_cast<double>(ignore_index));
  return sum(losses) / cast(sum(counted), losses.type());
}

}  // namespace prism
