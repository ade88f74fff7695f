// The gradient of cross entropy: a row's maximum and sum, then its slopes, in one launch. Composed
// of other ops it would write the probabilities, which a large vocabulary makes larger than a
// model.
#include "ops/rows/cross_entropy_gradient.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/rows.h"
#include "prism/kernel.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/softmax.h"
#include "tensor/chain/chain.h"
#include "tensor/expression_op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

constexpr uint32_t kGroup = 256;
constexpr float kLowest = -3.0e38f;

// lanes: of a row, a subgroup of 32 or the group. unit: elements of a load.
ir::Kernel gradient_kernel(DType type, DType stored, uint32_t lanes, uint32_t unit) {
  return kernel("cross_entropy_gradient", kGroup, [&] {
    const bool alone = lanes == kGroup;
    if (!alone) require_subgroup_size(lanes);
    const In x = in("x", type), target = in("target", i32), g = in("g", f32);
    const Array y = out("y", stored);
    const Value rows = param("rows", u32), length = param("length", u32),
                ignored = param("ignored", i32);
    const Value row = group_id() * (kGroup / lanes) + local_id() / lanes;
    const Value exists = row < rows, start = row * length, first = local_id() % lanes * unit;
    const auto elements = [&](Value at) {
      const Value loaded = x.load_if(exists, start + at, unit);
      std::vector<Value> result;
      for (uint32_t i = 0; i < unit; ++i) {
        const Value one = unit == 1 ? loaded : loaded[i];
        result.push_back(one.element() == f32 ? one : cast(f32, one));
      }
      return result;
    };
    Var most(f32, kLowest, "most"), sum(f32, 0.0f, "sum");
    for_(first, length, lanes * unit, [&](Value at) {
      const std::vector<Value> some = elements(at);
      Value top = most;
      for (const Value each : some) top = max(top, each);
      Value more = sum * exp(Value(most) - top);
      for (const Value each : some) more = more + exp(each - top);
      sum = more;
      most = top;
    });
    const auto joined = [&](ReduceOp op, Value one) {
      return alone ? group_reduce(op, one) : subgroup_reduce(op, one);
    };
    const Value top = joined(ReduceOp::max, most);
    const Value total = joined(ReduceOp::add, sum * exp(Value(most) - top));
    const Value wanted = target.load_if(exists, row);
    const Value weight = select(wanted == ignored, 0.0f, g.load_if(exists, row));
    const Value scale = 1.0f / total;
    if_(exists, [&] {
      for_(first, length, lanes * unit, [&](Value at) {
        std::vector<Value> results;
        for (const Value each : elements(at)) {
          const Value hit = bitcast(i32, at + static_cast<uint32_t>(results.size())) == wanted;
          const Value slope = exp(each - top) * scale - select(hit, 1.0f, 0.0f);
          results.push_back(slope * weight);
        }
        y.store(start + at,
                unit == 1 ? results[0] : vec(results[0], results[1], results[2], results[3]));
      });
    });
  });
}

class CrossEntropyGradientOp : public ExpressionOp {
 public:
  CrossEntropyGradientOp(int32_t ignored, DType result) : ignored_(ignored), result_(result) {}

  std::string_view name() const override { return "cross_entropy_gradient"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    return {{inputs[0].shape(), result_}};
  }
  std::vector<Tensor> expression(std::span<const Tensor> inputs) const override {
    const Tensor &x = inputs[0], target = inputs[1].unsqueeze(1);
    const Tensor classes = arange(0, static_cast<double>(x.shape()[1]), 1, DType::i32, x.device());
    const Tensor hits = cast(equal(target, classes), DType::f32);
    const Tensor weight =
        where(equal(target, static_cast<double>(ignored_)), 0.0, inputs[2].unsqueeze(1));
    return {cast((softmax(cast(x, DType::f32)) - hits) * weight, result_)};
  }
  // Slopes of f32 can be stored as another type: they are half as large for products of bf16.
  std::shared_ptr<const Op> with_epilogue(const Chain& chain, size_t) const override {
    const bool casts = chain.inputs.size() == 1 && dtype_bytes(chain.output) == 2 &&
                       std::ranges::all_of(chain.steps, [&](const Chain::Step& step) {
                         return step.kind == Chain::Kind::input ||
                                (step.kind == Chain::Kind::cast && step.stored == chain.output);
                       });
    if (result_ != DType::f32 || !is_float(chain.output) || !casts) return nullptr;
    return std::make_shared<CrossEntropyGradientOp>(ignored_, chain.output);
  }
  std::optional<std::string> cannot_run(const DeviceInfo&, std::span<const Tensor>) const override {
    return std::nullopt;
  }
  int overwrites(std::span<const Tensor>) const override { return -1; }

  void launch(DeviceCall& call) const override {
    const DeviceView& x = call.input(0);
    const int64_t rows = x.layout.shape[0], length = x.layout.shape[1];
    if (x.elements() == 0) return;
    const uint32_t unit = length % 4 == 0 ? 4 : 1, lanes = length <= 1024 ? 32 : kGroup;
    const DType type = x.type.plain();
    call.launch(fmt::format("cross_entropy_gradient {} {} {} {}", dtype_name(type),
                            dtype_name(result_), lanes, unit),
                [&] { return gradient_kernel(type, result_, lanes, unit); },
                {groups_for(rows, kGroup / lanes), 1, 1},
                {x, call.input(1), call.input(2), call.output()},
                {static_cast<uint32_t>(rows), static_cast<uint32_t>(length), ignored_});
  }

  // For plans that continue on the CPU after their device failed.
  void run_cpu(const CpuCall& call) const override {
    const HostView &x = call.inputs[0], &y = call.outputs[0];
    const int64_t rows = x.layout.shape[0], length = x.layout.shape[1];
    const auto n = static_cast<size_t>(length);
    const auto bytes = static_cast<int64_t>(x.type.block_bytes()),
               result_bytes = static_cast<int64_t>(y.type.block_bytes());
    call.pool.parallel_for(static_cast<uint64_t>(rows), 8, [&](uint64_t begin, uint64_t end) {
      std::vector<float> scores(n), slopes(n);
      for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
        cpu::load(x.type.plain(), x.data + (x.layout.offset + row * length) * bytes, 1, DType::f32,
                  scores.data(), n);
        cpu::row_softmax(scores.data(), slopes.data(), n);
        const int32_t target = call.inputs[1].first<int32_t>()[row];
        const float weight = target == ignored_ ? 0 : call.inputs[2].first<float>()[row];
        if (target >= 0 && target < length) slopes[static_cast<size_t>(target)] -= 1;
        for (float& each : slopes) each *= weight;
        cpu::store(DType::f32, slopes.data(), y.type.plain(),
                   y.data + (y.layout.offset + row * length) * result_bytes, n);
      }
    });
  }

 private:
  int32_t ignored_;
  DType result_;
};

}  // namespace

Tensor cross_entropy_gradient(const Tensor& logits, const Tensor& target, const Tensor& g,
                              int32_t ignored) {
  auto op = std::make_shared<CrossEntropyGradientOp>(ignored, logits.type().plain());
  // On the CPU chains over pieces in the cache are as fast.
  if (logits.device().info().is_cpu) {
    const Tensor inputs[] = {logits, target, g};
    return op->expression(inputs)[0];
  }
  return use_op(std::move(op), {logits, target, g});
}

}  // namespace prism
