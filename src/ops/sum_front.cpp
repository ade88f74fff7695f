// Sums over the first axis: a lane a column.
#include "ops/sum_front.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "cpu/elementwise.h"
#include "tensor/chain_kernel.h"
#include "tensor/device_call.h"
#include "tensor/op.h"

namespace prism {

namespace {

using namespace dsl;

ir::Kernel sum_front_kernel(DType type) {
  return kernel("sum_front", 256, [&] {
    auto x = in("x", kernel_type(type));
    auto y = out("y", kernel_type(type));
    const Value rows = param("rows", u32), columns = param("columns", u32);
    const Value i = global_id();
    if_(i < columns, [&] {
      const DType wide = register_type(type);
      Var sum(wide, is_float(wide) ? constant(wide, 0.0) : constant(wide, 0), "sum");
      for_(rows, [&](Value row) { sum += load_element(x, row * columns + i, type); });
      y[i] = to_stored(sum, type);
    });
  });
}

class SumFrontOp : public Op {
 public:
  std::string_view name() const override { return "sum_front"; }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor& x = inputs[0];
    if (x.rank() != 2 || x.type().is_block() || x.type() == ElementType(DType::b1)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("sum_front: {} {}; it takes a matrix of numbers", x.type().name(),
                              x.shape().text()));
    }
    return {{Shape{x.shape()[1]}, x.type()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    return {call.output_gradients[0].expand(call.inputs[0].shape())};
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView& x = call.inputs[0];
    const int64_t rows = x.layout.shape[0], columns = x.layout.shape[1];
    const DType type = x.type.plain();
    // Floats in f64, so that the error does not grow with the rows; integers wrap.
    if (is_float(type))
      sum<double>(call, DType::f64, rows, columns);
    else
      sum<int64_t>(call, DType::i64, rows, columns);
  }

  void launch(DeviceCall& call) const override {
    const Shape& shape = call.input(0).layout.shape;
    const DType type = call.input(0).type.plain();
    call.launch(fmt::format("sum_front {}", dtype_name(type)),
                [&] { return sum_front_kernel(type); }, {groups_for(shape[1], 256), 1, 1},
                {call.input(0), call.output()},
                {static_cast<uint32_t>(shape[0]), static_cast<uint32_t>(shape[1])});
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override {
    const std::string reason = lacks_type(device.capabilities, inputs[0].type().plain());
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

 private:
  template <class T>
  static void sum(const CpuCall& call, DType wide, int64_t rows, int64_t columns) {
    const HostView &x = call.inputs[0], &y = call.outputs[0];
    const DType type = x.type.plain();
    const auto bytes = static_cast<int64_t>(x.type.block_bytes());
    const std::byte* first_row = x.data + x.layout.offset * bytes;
    constexpr uint64_t kPiece = 512;
    call.pool.parallel_for(
        static_cast<uint64_t>(columns), kPiece, [&](uint64_t first, uint64_t last) {
          std::vector<T> sums(last - first, T{0}), row(last - first);
          for (int64_t r = 0; r < rows; ++r) {
            const std::byte* from = first_row + (r * columns + static_cast<int64_t>(first)) * bytes;
            cpu::load(type, from, 1, wide, row.data(), row.size());
            for (size_t i = 0; i < sums.size(); ++i) sums[i] += row[i];
          }
          std::byte* to = y.data + static_cast<int64_t>(first) * bytes;
          cpu::store(wide, sums.data(), type, to, sums.size());
        });
  }
};

}  // namespace

Tensor sum_front(const Tensor& x) { return use_op(std::make_shared<SumFrontOp>(), {x}); }

}  // namespace prism
