// Layer norm and rms norm: one op that differs in whether the mean is taken off.
#include "ops/norm.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cpu/elementwise.h"
#include "cpu/rows.h"
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

struct NormKind {
  bool centred = false;               // the mean is taken off: a layer norm
  std::optional<DType> weight, bias;  // as stored
  const char* name() const { return centred ? "layer_norm" : "rms_norm"; }
};

ir::Kernel norm_kernel(const NormKind& kind, const RowBinding& source, const RowWalk& walk,
                       DType stored) {
  return kernel(kind.name(), walk.group, [&] {
    RowCode x(source);
    std::optional<In> weight, bias;
    if (kind.weight) weight = in("weight", *kind.weight);
    if (kind.bias) bias = in("bias", *kind.bias);
    const Array y = out("y", stored);
    RowLoop loop(walk, x);
    const Value epsilon = param("epsilon", f32);
    loop.load(0);
    const Value count = cast(f32, loop.length());
    Value mean = constant(f32, 0.0);
    Var squares(f32, 0.0f, "squares");
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
      Var sum(f32, 0.0f, "sum");
      loop.each([&](const std::vector<Value>& four, Value) {
        for (const Value each : four) sum += each;
      });
      mean = loop.join(ReduceOp::add, sum) / count;
      add_squares(mean);
      spread = loop.join(ReduceOp::add, squares) / count;
    } else {
      // One reading less: both sums of differences from the row's first element, which keeps the
      // digits that sums of plain squares lose where the mean is large.
      Var sum(f32, 0.0f, "sum"), shift(f32, 0.0f, "shift");
      loop.each([&](const std::vector<Value>& four, Value) {
        shift = x.at(loop.row(), constant(u32, 0));
        for (const Value each : four) {
          const Value d = each - Value(shift);
          sum += d;
          squares += d * d;
        }
      });
      const Value offset = loop.join(ReduceOp::add, sum) / count;
      spread = max(loop.join(ReduceOp::add, squares) / count - offset * offset, 0.0f);
      // Lanes without elements did not read it.
      mean = loop.join(ReduceOp::max, select(local_id() % walk.lanes == 0u, Value(shift),
                                             constant_bits(f32, 0xff800000u))) +
             offset;
    }
    const Value scale = 1.0f / sqrt(spread + epsilon);
    loop.store(y, stored, [&](const std::vector<Value>& four, Value i) {
      std::vector<Value> results;
      for (const Value each : four) results.push_back((kind.centred ? each - mean : each) * scale);
      if (weight) {
        const auto w = shared_elements(*weight, *kind.weight, i, four.size());
        for (size_t k = 0; k < four.size(); ++k) results[k] = results[k] * w[k];
      }
      if (bias) {
        const auto b = shared_elements(*bias, *kind.bias, i, four.size());
        for (size_t k = 0; k < four.size(); ++k) results[k] = results[k] + b[k];
      }
      return results;
    });
  });
}

class NormOp : public Op {
 public:
  NormOp(NormKind kind, RowSource source, double epsilon)
      : kind_(kind), source_(std::move(source)), epsilon_(epsilon) {}

  std::string_view name() const override { return kind_.name(); }
  std::string attributes() const override {
    std::string text = fmt::format("epsilon {}", epsilon_);
    if (source_.chain().steps.size() > 1) text += " of " + source_.chain().text();
    return text;
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

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor>) const override {
    if (source_.type() == DType::f64) return "kernels compute norms in f32 only";
    return source_.cannot_run(device);
  }
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    if (input >= source_.inputs()) return Op::takes_layout(input, tensor, device);
    return source_.takes_layout(tensor, device);
  }
  std::shared_ptr<const Op> with_prologue(size_t input, const Chain& chain) const override {
    if (input != 0) return nullptr;
    auto source = source_.after(chain, 3, 3);
    if (!source || register_type(chain.output) != source_.type()) return nullptr;
    return std::make_shared<NormOp>(kind_, *std::move(source), epsilon_);
  }

  void launch(DeviceCall& call) const override {
    const Rows& rows = source_.rows();
    if (call.output().elements() == 0) return;
    const RowBinding binding = bind_rows(call, source_);
    const RowWalk walk = walk_for(rows, binding, call.info());
    std::vector<DeviceView> buffers = binding.buffers;
    for (size_t i = source_.inputs(); i < call.input_count(); ++i) buffers.push_back(call.input(i));
    buffers.push_back(call.output());
    std::vector<ParamValue> params = {static_cast<uint32_t>(rows.outer),
                                      static_cast<uint32_t>(rows.length)};
    params.insert(params.end(), binding.params.begin(), binding.params.end());
    params.emplace_back(static_cast<float>(epsilon_));
    const DType stored = call.output().type.plain();
    const auto type_name = [](const std::optional<DType>& type) {
      return type ? dtype_name(*type) : "-";
    };
    call.launch(
        fmt::format("{} {} {} {} {} {}", name(), walk.key(), dtype_name(stored),
                    type_name(kind_.weight), type_name(kind_.bias), binding.key()),
        [&] { return norm_kernel(kind_, binding, walk, stored); }, walk.groups(rows.outer), buffers,
        std::move(params));
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
    const auto bytes = static_cast<int64_t>(output.type.block_bytes());
    std::byte* const to = output.data + output.layout.offset * bytes;
    const bool direct = output.type == ElementType(dtype_of<T>());
    call.pool.parallel_for(
        static_cast<uint64_t>(rows.outer), rows_a_chunk(rows.length),
        [&](uint64_t begin, uint64_t end) {
          RowReader reader(source_, call);
          std::vector<T> made(direct ? 0 : n);
          for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
            const T* x = reader.read<T>(row, 0, 0, rows.length);
            T* result = direct ? reinterpret_cast<T*>(to) + row * rows.length : made.data();
            if (kind_.centred)
              cpu::row_layer_norm(x, weight, bias, epsilon_, result, n);
            else
              cpu::row_rms_norm(x, weight, epsilon_, result, n);
            if (!direct)
              cpu::store(dtype_of<T>(), result, output.type.plain(), to + row * rows.length * bytes,
                         n);
          }
        });
  }

  NormKind kind_;
  RowSource source_;
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
