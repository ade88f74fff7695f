// The update of Adam and AdamW: one launch that reads the gradient once.
#include "ops/elementwise/adam.h"

#include <cmath>

#include <fmt/format.h>

#include "prism/kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

constexpr uint32_t kGroup = 256;

ir::Kernel adam_kernel(bool penalised, bool shrinks, bool has_factor, uint32_t unit) {
  return kernel("adam", kGroup, [&] {
    const Array parameter = inout("parameter", f32), first = inout("first", f32),
                second = inout("second", f32);
    const In gradient = in("gradient", f32), numbers = in("numbers", f32);
    std::optional<In> factor;
    if (has_factor) factor = in("factor", f32);
    const Value count = param("count", u32), at = param("at", u32), keep1 = param("beta1", f32),
                add1 = param("add1", f32), keep2 = param("beta2", f32), add2 = param("add2", f32),
                epsilon = param("epsilon", f32), penalty = param("penalty", f32);
    const Value i = global_id() * unit;
    if_(i < count, [&] {
      const Value g4 = gradient.load(i, unit), p4 = parameter.load(i, unit),
                  m4 = first.load(i, unit), v4 = second.load(i, unit);
      const Value rate = numbers[at], root = numbers[at + 1u];
      std::vector<Value> p, m, v;
      for (uint32_t n = 0; n < unit; ++n) {
        const auto lane = [&](Value four) { return unit == 1 ? four : four[n]; };
        Value g = lane(g4), old = lane(p4);
        if (factor) g = g * (*factor)[0u];
        if (penalised) g = g + penalty * old;
        m.push_back(keep1 * lane(m4) + add1 * g);
        v.push_back(keep2 * lane(v4) + add2 * (g * g));
        if (shrinks) old = old * numbers[at + 2u];
        p.push_back(old - rate * (m[n] / (sqrt(v[n]) * root + epsilon)));
      }
      const auto all = [&](const std::vector<Value>& x) {
        return unit == 1 ? x[0] : vec(x[0], x[1], x[2], x[3]);
      };
      parameter.store(i, all(p));
      first.store(i, all(m));
      second.store(i, all(v));
    });
  });
}

// Inputs: parameter, first and second average, gradient, numbers, the factor if there is one.
class AdamOp : public Op {
 public:
  AdamOp(const AdamRule& rule, int64_t at) : rule_(rule), at_(at) {}

  std::string_view name() const override { return "adam"; }
  bool has_gradient() const override { return false; }
  uint32_t changed_inputs() const override { return 3; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    return std::vector<Spec>(3, Spec{inputs[0].shape(), DType::f32});
  }

  void launch(DeviceCall& call) const override {
    const int64_t count = call.output(0).elements();
    if (count == 0) return;
    const bool has_factor = call.input_count() > 5, penalised = rule_.penalty != 0;
    const uint32_t unit = count % 4 == 0 ? 4 : 1;
    std::vector<DeviceView> buffers = {call.output(0), call.output(1), call.output(2),
                                       call.input(3), call.input(4)};
    if (has_factor) buffers.push_back(call.input(5));
    const auto number = [](double x) { return static_cast<float>(x); };
    call.launch(fmt::format("adam {} {} {} {}", penalised, rule_.shrinks, has_factor, unit),
                [&] { return adam_kernel(penalised, rule_.shrinks, has_factor, unit); },
                {groups_for(count, kGroup * unit), 1, 1}, buffers,
                {static_cast<uint32_t>(count), static_cast<uint32_t>(at_), number(rule_.beta1),
                 number(1 - rule_.beta1), number(rule_.beta2), number(1 - rule_.beta2),
                 number(rule_.epsilon), number(rule_.penalty)});
  }

  // For plans that continue on the CPU after their device failed.
  void run_cpu(const CpuCall& call) const override {
    float *const parameter = call.outputs[0].first<float>(),
                 *const first = call.outputs[1].first<float>(),
                 *const second = call.outputs[2].first<float>();
    const float* const gradient = call.inputs[3].first<float>();
    const float* const numbers = call.inputs[4].first<float>() + at_;
    const float factor = call.inputs.size() > 5 ? *call.inputs[5].first<float>() : 1;
    const auto number = [](double x) { return static_cast<float>(x); };
    const int64_t count = call.outputs[0].layout.shape.elements();
    call.pool.parallel_for(static_cast<uint64_t>(count), 16384, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        const float g = gradient[i] * factor + number(rule_.penalty) * parameter[i];
        first[i] = number(rule_.beta1) * first[i] + number(1 - rule_.beta1) * g;
        second[i] = number(rule_.beta2) * second[i] + number(1 - rule_.beta2) * g * g;
        if (rule_.shrinks) parameter[i] *= numbers[2];
        parameter[i] -=
            numbers[0] * (first[i] / (std::sqrt(second[i]) * numbers[1] + number(rule_.epsilon)));
      }
    });
  }

 private:
  AdamRule rule_;
  int64_t at_;
};

}  // namespace

bool has_adam_op(const AdamState& state, const Tensor& gradient) {
  if (gradient.device().info().is_cpu || gradient.type() != ElementType(DType::f32)) return false;
  for (const Tensor* each : {&state.parameter, &state.first, &state.second})
    if (each->type() != ElementType(DType::f32) || !(each->shape() == gradient.shape()) ||
        !(each->layout() == prism::Layout::dense(each->shape())))
      return false;
  return true;
}

AdamState adam_step(const AdamRule& rule, const AdamState& state, const Tensor& gradient,
                    const Tensor& numbers, int64_t at, const Tensor& factor) {
  std::vector<Tensor> inputs = {state.parameter, state.first, state.second, gradient, numbers};
  if (factor) inputs.push_back(factor);
  const std::vector<Tensor> results =
      use_op_all(std::make_shared<AdamOp>(rule, at), std::move(inputs));
  return {results[0], results[1], results[2]};
}

}  // namespace prism
