// Layer norm and rms norm. One op serves both: rms norm subtracts no mean. It can round its rows
// for products with quantised weights.
#include "prism/ops/norm.h"

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/rows.h"
#include "ops/float_param.h"
#include "ops/products/product_launch.h"
#include "ops/products/round_rows_op.h"
#include "ops/rows/norm_gradient.h"
#include "ops/rows/norm_kernel.h"
#include "ops/rows/row_op.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "tensor/plan/preparation.h"
#include "tensor/plan/remade.h"
#include "tensor/plan/unscaled_rows.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

class NormOp : public RowOp, public MakesPrepared, public ScalesRows, public CheapToRepeat {
 public:
  NormOp(NormKind kind, RowSource source, double epsilon, Tail tail = {})
      : RowOp(std::move(source), size_t{kind.weight.has_value()} + kind.bias.has_value(),
              std::move(tail)),
        kind_(kind),
        epsilon_(epsilon) {}

  std::string_view name() const override { return kind_.name(); }
  std::string attributes() const override {
    const std::string chains = RowOp::attributes();
    return fmt::format("epsilon {}", epsilon_) + (chains.empty() ? "" : " " + chains) +
           (kind_.rounds() ? ", rounded to 8 bits" : "");
  }
  std::vector<Spec> infer(std::span<const Tensor>) const override {
    std::vector<Spec> specs;
    if (kind_.keeps()) specs.push_back({source_.shape(), source_.stored()});
    if (kind_.rounds()) specs.push_back(rounded_spec());
    return specs;
  }

  std::shared_ptr<const Op> with_prepared(const Device& device, std::span<const Tensor>,
                                          const Op& prepare, const Shape& seen,
                                          bool kept) const override {
    // A subgroup of fewer than eight lanes cannot hold a block.
    const uint32_t lanes = device.info().capabilities.subgroup_size;
    if (!dynamic_cast<const RoundRowsOp*>(&prepare) || kind_.rounds() || !tail_.empty() ||
        source_.stored() != DType::f32 || !(seen[-1] == source_.rows().length) ||
        (lanes > 0 && lanes < 8) || !source_.fits(other_buffers(tail_) + 1, other_params(tail_)))
      return nullptr;
    NormKind kind = kind_;
    kind.rounding = kept ? NormKind::Rounding::also : NormKind::Rounding::only;
    return std::make_shared<NormOp>(kind, source_, epsilon_);
  }

  std::optional<RowScale> row_scale(std::span<const Tensor> inputs) const override {
    const bool plain = source_.inputs() == 1 && source_.chain().steps.size() == 1 &&
                       source_.chain().inputs[0] == DType::f32;
    if (kind_.centred || kind_.keeps() || kind_.bias || kind_.weight != DType::f32 || !plain ||
        !tail_.empty())
      return std::nullopt;
    return RowScale{inputs[1], epsilon_};
  }

  void launch(DeviceCall& call) const override {
    if (!kind_.rounds()) return RowOp::launch(call);
    const Rows& rows = source_.rows();
    if (rows.outer == 0 || rows.length == 0) return;
    const RowBinding binding = bind_rows(call, source_);
    const RowWalk walk = walk_for(rows, binding, call.info());
    std::vector<DeviceView> results = {call.output(0)};
    if (kind_.keeps()) results.push_back(call.output(1));
    if (walk.held) return launch_rows(call, binding, walk, DType::f32, {}, results);
    // Rows that do not fit the registers are rounded by a separate launch.
    const DeviceView y = kind_.keeps() ? call.output(0) : call.scratch(source_.shape(), DType::f32);
    std::vector<DeviceView> inputs;
    for (size_t i = 0; i < call.input_count(); ++i) inputs.push_back(call.input(i));
    DeviceCall before(call.device(), inputs, {y}, [&](uint64_t bytes) {
      return call.scratch(Shape{static_cast<int64_t>(bytes)}, DType::u8).slot;
    });
    NormKind plain = kind_;
    plain.rounding = NormKind::Rounding::none;
    NormOp(plain, source_, epsilon_).launch(before);
    for (PlannedLaunch& each : before.launches()) call.launches().push_back(std::move(each));
    launch_round_rows(call, y, rows.outer, rows.length, rows.length, results.back());
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    const size_t weight = kind_.weight ? 1 : 0, bias = kind_.bias ? weight + 1 : 0;
    const NormGradients slopes =
        norm_gradients(kind_, epsilon_, source_.type(), call.inputs[0], call.output_gradients[0],
                       weight ? call.inputs[weight] : Tensor());
    std::vector<Tensor> result(call.inputs.size());
    const auto give = [&](size_t input, const Tensor& slope) {
      if (call.wanted[input]) result[input] = cast(slope, call.inputs[input].type());
    };
    give(0, slopes.x);
    if (weight) give(weight, slopes.weight);
    if (bias) give(bias, slopes.bias);
    return result;
  }

  void run_cpu(const CpuCall& call) const override {
    if (kind_.rounds())
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("{}: rounded for a device with kernels only", name()));
    with_float(source_.type(), [&](auto sample) { run<decltype(sample)>(call); });
  }

 protected:
  std::shared_ptr<const Op> with(RowSource source, Tail tail) const override {
    return std::make_shared<NormOp>(kind_, std::move(source), epsilon_, std::move(tail));
  }
  ir::Kernel make_kernel(const RowBinding& rows, const RowWalk& walk, DType stored,
                         const std::shared_ptr<const TailSpec>& tail) const override {
    return norm_kernel(kind_, rows, walk, stored, tail);
  }
  std::string kernel_key() const override {
    const auto type_name = [](const std::optional<DType>& type) {
      return type ? dtype_name(*type) : "-";
    };
    return fmt::format("{} {} {}", type_name(kind_.weight), type_name(kind_.bias),
                       static_cast<int>(kind_.rounding));
  }
  std::vector<ParamValue> number() const override {
    std::vector<ParamValue> params;
    ops::add_float_param(params, epsilon_, source_.type());
    return params;
  }

 private:
  Spec rounded_spec() const {
    const Rows& rows = source_.rows();
    const uint64_t bytes = ops::rounded_bytes(1, static_cast<uint64_t>(rows.length));
    return {{rows.outer, static_cast<int64_t>(bytes / 4)}, DType::i32};
  }

  template <class T>
  void run(const CpuCall& call) const {
    if (call.outputs[0].layout.shape.elements() == 0) return;
    const auto n = static_cast<size_t>(source_.rows().length);
    std::vector<T> vectors[2];
    size_t next = source_.inputs();
    const auto vector_of = [&](bool wanted, std::vector<T>& values) -> const T* {
      if (!wanted) return nullptr;
      const HostView& view = call.inputs[next++];
      values.resize(n);
      cpu::load(view.type.plain(), view.data + view.layout.offset * view.type.block_bytes(), 1,
                dtype_of<T>(), values.data(), n);
      return values.data();
    };
    const T* const weight = vector_of(kind_.weight.has_value(), vectors[0]);
    const T* const bias = vector_of(kind_.bias.has_value(), vectors[1]);
    for_rows<T>(call, [&](const T* x, T* y, int64_t) {
      if (kind_.centred)
        cpu::row_layer_norm(x, weight, bias, epsilon_, y, n);
      else
        cpu::row_rms_norm(x, weight, epsilon_, y, n);
    });
  }

  NormKind kind_;
  double epsilon_;
};

Tensor norm(bool centred, const Tensor& x, const Tensor& weight, const Tensor& bias,
            double epsilon) {
  NormKind kind;
  kind.centred = centred;
  if (!x) fail(fmt::format("{}: an empty Tensor as an input", kind.name()));
  if (x.type().is_block() || !is_float(x.type().plain()))
    fail(fmt::format("{}: elements of type {}; they must be floats", kind.name(), x.type().name()));
  if (x.rank() == 0) fail(fmt::format("{}: x has no axis to work along", kind.name()));
  std::vector<Tensor> inputs = {x};
  const auto add = [&](const char* what, const Tensor& vector, std::optional<DType>& type) {
    if (!vector) return;
    if (vector.type().is_block() || !is_float(vector.type().plain()))
      fail(fmt::format("{}: {} of type {}; it must be of floats", kind.name(), what,
                       vector.type().name()));
    if (!(vector.shape() == Shape{x.shape()[-1]}))
      fail(
          fmt::format("{}: {} has shape {}, x has rows of {}; was this model converted for "
                      "another size?",
                      kind.name(), what, vector.shape().text(), x.shape()[-1]));
    // Kernels compute in x's precision, so f64 weights beside f32 rows are rounded to f32.
    const bool wide =
        vector.type() == ElementType(DType::f64) && x.type() != ElementType(DType::f64);
    inputs.push_back(wide ? cast(vector, DType::f32) : vector);
    type = inputs.back().type().plain();
  };
  add("weight", weight, kind.weight);
  add("bias", bias, kind.bias);
  RowSource source(x.type().plain(), x.shape(), x.rank() - 1, x.rank());
  return use_op(std::make_shared<NormOp>(kind, std::move(source), epsilon), std::move(inputs));
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  return norm(true, x, weight, bias, epsilon);
}
Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  return norm(false, x, weight, {}, epsilon);
}

}  // namespace prism
