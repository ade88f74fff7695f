// Softmax and cross entropy: one op over the last axis, with three ends.
#include "ops/softmax.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "cpu/elementwise.h"
#include "cpu/rows.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/row_walk.h"
#include "tensor/chain_kernel.h"

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
                          DType stored) {
  return kernel(end_name(end), walk.group, [&] {
    RowCode x(source);
    std::optional<In> target;
    if (end == SoftmaxEnd::entropy) target = in("target", i32);
    const Array y = out("y", stored);
    RowLoop loop(walk, x);
    const Value lowest = constant_bits(f32, 0xff800000u);
    loop.load(-HUGE_VAL);
    // What is subtracted before exp: 0 where all are -infinity, so that none becomes a NaN early.
    const auto base_of = [&](Value top) { return select(top == lowest, 0.0f, top); };
    Var most(f32, lowest, "most"), sum(f32, 0.0f, "sum");
    loop.each([&](const std::vector<Value>& four, Value) {
      Value top = four[0];
      for (size_t k = 1; k < four.size(); ++k) top = max(top, four[k]);
      const Value before = most, now = max(before, top);
      if (!loop.holds()) {  // a running sum, brought to the new base: the row is read once less
        const Value base = base_of(now);
        Value more = sum * exp(before - base);
        for (const Value each : four) more = more + exp(each - base);
        sum = more;
      }
      most = now;
    });
    const Value base = base_of(loop.join(ReduceOp::max, most));
    if (loop.holds()) {
      // The elements of a probability are its exponentials from here on.
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
        const Value loss =
            select(inside, shift - x.at(loop.row(), at), constant_bits(f32, 0x7fc00000u));
        y[loop.row()] = select(wanted == ignored, 0.0f, loss);
      });
      return;
    }
    const Value scale = end == SoftmaxEnd::probability ? 1.0f / total : base + log(total);
    loop.store(y, stored, [&](const std::vector<Value>& four, Value) {
      std::vector<Value> results;
      for (const Value each : four) {
        if (end == SoftmaxEnd::logarithm)
          results.push_back(each - scale);
        else
          results.push_back((loop.holds() ? each : exp(each - base)) * scale);
      }
      return results;
    });
  });
}

// Over the last axis.
class SoftmaxOp : public Op {
 public:
  SoftmaxOp(SoftmaxEnd end, RowSource source, int32_t ignored)
      : end_(end), source_(std::move(source)), ignored_(ignored) {}

  std::string_view name() const override { return end_name(end_); }
  std::string attributes() const override {
    return source_.chain().steps.size() > 1 ? "of " + source_.chain().text() : "";
  }
  std::vector<Spec> infer(std::span<const Tensor>) const override {
    if (end_ == SoftmaxEnd::entropy) return {{Shape{source_.shape()[0]}, source_.type()}};
    return {{source_.shape(), source_.stored()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    const Tensor& g = call.output_gradients[0];
    const Tensor& y = call.outputs[0];
    if (end_ == SoftmaxEnd::probability) return {y * (g - sum(g * y, {-1}, true))};
    if (end_ == SoftmaxEnd::logarithm) return {g - exp(y) * sum(g, {-1}, true)};
    const Tensor &x = call.inputs[0], target = call.inputs[1].unsqueeze(1);
    const DType type = source_.type();
    const Tensor classes = arange(0, static_cast<double>(x.shape()[1]), 1, DType::i32, x.device());
    const Tensor hits = cast(equal(target, classes), type);
    const Tensor weight = where(equal(target, static_cast<double>(ignored_)), 0.0, g.unsqueeze(1));
    return {cast((softmax(cast(x, type)) - hits) * weight, x.type()), Tensor()};
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor>) const override {
    if (source_.type() == DType::f64) return "kernels compute exp in f32 only";
    return source_.cannot_run(device);
  }
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    if (input >= source_.inputs()) return Op::takes_layout(input, tensor, device);
    return source_.takes_layout(tensor, device);
  }
  std::shared_ptr<const Op> with_prologue(size_t input, const Chain& chain) const override {
    if (input != 0) return nullptr;
    auto source = source_.after(chain, 2, 3);
    if (!source || register_type(chain.output) != source_.type()) return nullptr;
    return std::make_shared<SoftmaxOp>(end_, *std::move(source), ignored_);
  }

  void launch(DeviceCall& call) const override {
    const Rows& rows = source_.rows();
    if (call.output().elements() == 0) return;
    const RowBinding binding = bind_rows(call, source_);
    const RowWalk walk = walk_for(rows, binding, call.info());
    std::vector<DeviceView> buffers = binding.buffers;
    if (end_ == SoftmaxEnd::entropy) buffers.push_back(call.input(source_.inputs()));
    buffers.push_back(call.output());
    std::vector<ParamValue> params = {static_cast<uint32_t>(rows.outer),
                                      static_cast<uint32_t>(rows.length)};
    params.insert(params.end(), binding.params.begin(), binding.params.end());
    if (end_ == SoftmaxEnd::entropy) params.emplace_back(ignored_);
    const DType stored = call.output().type.plain();
    call.launch(
        fmt::format("{} {} {} {}", name(), walk.key(), dtype_name(stored), binding.key()),
        [&] { return softmax_kernel(end_, binding, walk, stored); }, walk.groups(rows.outer),
        buffers, std::move(params));
  }

  void run_cpu(const CpuCall& call) const override {
    if (source_.type() == DType::f64)
      run<double>(call);
    else
      run<float>(call);
  }

 private:
  template <class T>
  void run(const CpuCall& call) const {
    const Rows& rows = source_.rows();
    const HostView& output = call.outputs[0];
    const auto n = static_cast<size_t>(rows.length);
    if (output.layout.shape.elements() == 0) return;
    const auto bytes = static_cast<int64_t>(output.type.block_bytes());
    std::byte* const to = output.data + output.layout.offset * bytes;
    const bool direct = output.type == ElementType(dtype_of<T>()) && end_ != SoftmaxEnd::entropy;
    call.pool.parallel_for(
        static_cast<uint64_t>(rows.outer), rows_a_chunk(rows.length),
        [&](uint64_t begin, uint64_t end) {
          RowReader reader(source_, call);
          std::vector<T> made(direct ? 0 : n);
          for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
            const T* x = reader.read<T>(row, 0, 0, rows.length);
            T* result = direct ? reinterpret_cast<T*>(to) + row * rows.length : made.data();
            if (end_ == SoftmaxEnd::probability)
              cpu::row_softmax(x, result, n);
            else
              cpu::row_log_softmax(x, result, n);
            if (end_ == SoftmaxEnd::entropy)
              reinterpret_cast<T*>(to)[row] = loss(call, result, row);
            else if (!direct)
              cpu::store(dtype_of<T>(), result, output.type.plain(), to + row * rows.length * bytes,
                         n);
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
  RowSource source_;
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
