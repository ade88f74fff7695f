// Layer norm and rms norm: one op that differs in whether the mean is taken off.
#include "ops/norm.h"

#include <bit>

#include <fmt/format.h>

#include "base/error.h"
#include "cpu/elementwise.h"
#include "cpu/rows.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/row_op.h"
#include "tensor/chain_kernel.h"

namespace prism {

namespace {

using namespace dsl;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

struct NormKind {
  bool centred = false;               // the mean is taken off: a layer norm
  std::optional<DType> weight, bias;  // as stored
  const char* name() const { return centred ? "layer_norm" : "rms_norm"; }
};

// Parameters have 32 bits: an f64 comes as two.
Value epsilon_param(DType type) {
  if (type == f32) return param("epsilon", f32);
  const Value low = param("epsilon_low", u32), high = param("epsilon_high", u32);
  return bitcast(Type{f64, 1}, vec(low, high));
}

ir::Kernel norm_kernel(const NormKind& kind, const RowBinding& source, const RowWalk& walk,
                       DType stored, const std::shared_ptr<const TailSpec>& spec) {
  return kernel(kind.name(), walk.group, [&] {
    RowCode x(source);
    std::optional<In> weight, bias;
    if (kind.weight) weight = in("weight", *kind.weight);
    if (kind.bias) bias = in("bias", *kind.bias);
    std::optional<TailCode> tail;
    if (spec) tail.emplace(spec);
    const Array y = out("y", stored);
    RowLoop loop(walk, x);
    const Value epsilon = epsilon_param(walk.type);
    if (tail) tail->declare_params();
    loop.load(0);
    const Value count = cast(walk.type, loop.length()), zero = loop.number(0);
    Value mean = zero;
    Var squares(walk.type, zero, "squares");
    const auto add_squares = [&](Value off) {
      loop.each([&](const std::vector<Value>& four, Value) {
        for (const Value each : four) {
          const Value d = kind.centred ? each - off : each;
          squares += d * d;
        }
      });
    };
    Value spread = count;
    if (!kind.centred) {
      add_squares(mean);
      spread = loop.join(ReduceOp::add, squares) / count;
    } else if (loop.holds()) {
      Var sum(walk.type, zero, "sum");
      loop.each([&](const std::vector<Value>& four, Value) {
        for (const Value each : four) sum += each;
      });
      mean = loop.join(ReduceOp::add, sum) / count;
      add_squares(mean);
      spread = loop.join(ReduceOp::add, squares) / count;
    } else {
      // One reading less: both sums of differences from the row's first element, which keeps the
      // digits that sums of plain squares lose where the mean is large.
      Var sum(walk.type, zero, "sum"), shift(walk.type, zero, "shift");
      loop.each([&](const std::vector<Value>& four, Value) {
        shift = x.at(loop.row(), constant(u32, 0));
        for (const Value each : four) {
          const Value d = each - Value(shift);
          sum += d;
          squares += d * d;
        }
      });
      const Value offset = loop.join(ReduceOp::add, sum) / count;
      spread = max(loop.join(ReduceOp::add, squares) / count - offset * offset, zero);
      // Lanes without elements did not read it.
      mean = loop.join(ReduceOp::max,
                       select(local_id() % walk.lanes == 0u, Value(shift), loop.lowest())) +
             offset;
    }
    const Value scale = loop.number(1) / sqrt(spread + epsilon);
    const auto normed = [&](const std::vector<Value>& four, Value i) {
      std::vector<Value> results;
      for (const Value each : four) results.push_back((kind.centred ? each - mean : each) * scale);
      if (weight) {
        const auto w = shared_elements(*weight, *kind.weight, walk.type, i, four.size());
        for (size_t k = 0; k < four.size(); ++k) results[k] = results[k] * w[k];
      }
      if (bias) {
        const auto b = shared_elements(*bias, *kind.bias, walk.type, i, four.size());
        for (size_t k = 0; k < four.size(); ++k) results[k] = results[k] + b[k];
      }
      return results;
    };
    loop.store(y, stored, normed, tail ? &*tail : nullptr);
  });
}

class NormOp : public RowOp {
 public:
  NormOp(NormKind kind, RowSource source, double epsilon, Tail tail = {})
      : RowOp(std::move(source), size_t{kind.weight.has_value()} + kind.bias.has_value(),
              std::move(tail)),
        kind_(kind),
        epsilon_(epsilon) {}

  std::string_view name() const override { return kind_.name(); }
  std::string attributes() const override {
    const std::string chains = RowOp::attributes();
    return fmt::format("epsilon {}", epsilon_) + (chains.empty() ? "" : " " + chains);
  }
  std::vector<Spec> infer(std::span<const Tensor>) const override {
    return {{source_.shape(), source_.stored()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    const DType type = source_.type();
    const Tensor x = cast(call.inputs[0], type), g = cast(call.output_gradients[0], type);
    const Tensor off = kind_.centred ? x - mean(x, {-1}, true) : x;
    const Tensor scale = rsqrt(mean(square(off), {-1}, true) + epsilon_);
    const Tensor normed = off * scale;
    const Tensor weighted = kind_.weight ? g * cast(call.inputs[1], type) : g;
    std::vector<Tensor> result(call.inputs.size());
    if (call.wanted[0]) {
      Tensor inner = weighted - normed * mean(weighted * normed, {-1}, true);
      if (kind_.centred) inner = inner - mean(weighted, {-1}, true);
      result[0] = cast(scale * inner, call.inputs[0].type());
    }
    size_t next = 1;
    if (kind_.weight) {
      const Tensor& weight = call.inputs[next];
      if (call.wanted[next]) result[next] = cast(sum_to(g * normed, weight.shape()), weight.type());
      ++next;
    }
    if (kind_.bias && call.wanted[next])
      result[next] = cast(sum_to(g, call.inputs[next].shape()), call.inputs[next].type());
    return result;
  }

  void run_cpu(const CpuCall& call) const override {
    if (source_.type() == DType::f64)
      run<double>(call);
    else
      run<float>(call);
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
    return fmt::format("{} {}", type_name(kind_.weight), type_name(kind_.bias));
  }
  std::vector<ParamValue> number() const override {
    if (source_.type() != DType::f64) return {static_cast<float>(epsilon_)};
    const auto bits = std::bit_cast<uint64_t>(epsilon_);
    return {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  }

 private:
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
    // Kernels compute in x's precision: a vector of f64 beside f32 comes down to it.
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
