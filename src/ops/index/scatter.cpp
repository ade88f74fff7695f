// scatter_rows, write_rows and scatter_add_rows: write or add rows at indices.
#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "ops/cpu_types.h"
#include "ops/index/index_reading.h"
#include "ops/index/scatter_add.h"
#include "ops/shape/strided_copy.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

// Lane i copies unit i of rows. y already holds base.
ir::Kernel scatter_kernel(uint32_t unit, bool wide) {
  return kernel("scatter_rows", 256, [&] {
    auto indices = in("indices", u32);
    auto rows = in("rows", ops::unit_type(unit));
    auto y = inout("y", ops::unit_type(unit));
    const Value count = param("count", u32), row_units = param("row_units", u32),
                y_rows = param("y_rows", u32);
    const Value i = global_id();
    if_(i < count, [&] {
      const Value place = i / row_units, unit_of_row = i - place * row_units;
      const Value index = ops::load_index(indices, place, wide);
      if_(index < y_rows, [&] {
        ops::store_unit(y, index * row_units + unit_of_row, ops::load_unit(rows, i, unit), unit);
      });
    });
  });
}

class ScatterOp : public Op {
 public:
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor &base = inputs[0], &indices = inputs[1], &rows = inputs[2];
    const std::string op(name());
    ops::check_index_type(op.c_str(), indices);
    Shape wanted = indices.shape();
    for (int axis = 1; axis < base.rank(); ++axis) wanted.append(base.shape()[axis]);
    if (base.rank() == 0 || !(rows.shape() == wanted)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: rows {} for base {} and indices {}; they must be {}", op,
                              rows.shape().text(), base.shape().text(), indices.shape().text(),
                              base.rank() == 0 ? "[indices..., row...]" : wanted.text()));
    }
    if (!(base.type() == rows.type()) || base.type().is_block()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: base of type {} and rows of type {}; both must have one plain "
                              "type",
                              op, base.type().name(), rows.type().name()));
    }
    return {{base.shape(), base.type()}};
  }

  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    return input == 0 || Op::takes_layout(input, tensor, device);  // base is copied anyway
  }

  int overwrites(std::span<const Tensor> inputs) const override {
    return inputs[0].layout().is_dense() && inputs[0].layout().offset == 0 ? 0 : -1;
  }
  bool launches_overwrite() const override { return true; }  // base itself is never bound

 protected:
  static int64_t row_elements(const Shape& base) {
    int64_t product = 1;
    for (int axis = 1; axis < base.rank(); ++axis) product *= base[axis];
    return product;
  }
  // Copies base to the result, unless the result took over base's memory.
  static void copy_base(const CpuCall& call) {
    const HostView &base = call.inputs[0], &y = call.outputs[0];
    if (base.data == y.data) return;
    ops::strided_copy_cpu(base.data, base.layout, y.data, y.layout, y.type.block_bytes(),
                          call.pool);
  }
  static void copy_base(DeviceCall& call) {
    if (call.input(0).slot != call.output().slot)
      ops::strided_copy_on_device(call, call.input(0), call.output());
  }
};

class ScatterRowsOp : public ScatterOp {
 public:
  std::string_view name() const override { return "scatter_rows"; }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    const Tensor &g = call.output_gradients[0], &indices = call.inputs[1], &rows = call.inputs[2];
    return {scatter_rows(g, indices, zeros(rows.shape(), rows.type(), rows.device())), Tensor(),
            gather_rows(g, indices)};
  }

  void run_cpu(const CpuCall& call) const override {
    copy_base(call);
    const HostView &rows = call.inputs[2], &y = call.outputs[0];
    const ops::HostIndices indices("scatter_rows", call.inputs[1], y.layout.shape[0]);
    const auto bytes = static_cast<size_t>(row_elements(y.layout.shape)) * y.type.block_bytes();
    const std::byte* from = rows.data + rows.layout.offset * y.type.block_bytes();
    for (int64_t i = 0; i < indices.count(); ++i)  // check all indices before the first write
      if (!skips(indices, i)) (void)indices[i];
    // In order: the last row of a repeated index wins.
    for (int64_t i = 0; i < indices.count(); ++i) {
      if (skips(indices, i)) continue;
      const int64_t row = indices[i];
      if (bytes > 0)
        std::memcpy(y.data + static_cast<size_t>(row) * bytes,
                    from + static_cast<size_t>(i) * bytes, bytes);
    }
  }

  void launch(DeviceCall& call) const override {
    copy_base(call);
    const DeviceView &indices = call.input(1), &y = call.output();
    const uint64_t row_bytes =
        static_cast<uint64_t>(row_elements(y.layout.shape)) * y.type.block_bytes();
    const uint32_t unit = ops::unit_for({row_bytes});
    const bool wide = ops::is_wide(indices.type);
    const uint64_t count = row_bytes / unit * static_cast<uint64_t>(indices.elements());
    call.launch(fmt::format("scatter_rows {} {}", unit, wide ? 64 : 32),
                [&] { return scatter_kernel(unit, wide); },
                {groups_for(static_cast<int64_t>(count), 256), 1, 1}, {indices, call.input(2), y},
                {static_cast<uint32_t>(count), static_cast<uint32_t>(row_bytes / unit),
                 static_cast<uint32_t>(y.layout.shape[0])});
  }

 protected:
  virtual bool skips(const ops::HostIndices&, int64_t) const { return false; }
};

class WriteRowsOp : public ScatterRowsOp {
 public:
  std::string_view name() const override { return "write_rows"; }
  uint32_t changed_inputs() const override { return 1; }
  bool has_gradient() const override { return false; }
  std::vector<Tensor> gradient(const GradientCall& call) const override {
    return Op::gradient(call);
  }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    ops::check_changeable("write_rows", inputs[0]);
    return ScatterRowsOp::infer(inputs);
  }

 protected:
  bool skips(const ops::HostIndices& indices, int64_t i) const override {
    return indices.is_none(i);
  }
};

class ScatterAddRowsOp : public ScatterOp {
 public:
  std::string_view name() const override { return "scatter_add_rows"; }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    if (inputs[0].type() == ElementType(DType::b1)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "scatter_add_rows: rows of type bool; cast them to numbers first");
    }
    return ScatterOp::infer(inputs);
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    const Tensor& g = call.output_gradients[0];
    return {g, Tensor(), gather_rows(g, call.inputs[1])};
  }

  void run_cpu(const CpuCall& call) const override {
    copy_base(call);
    with_sum(call.outputs[0].type.plain(), [&](auto sample) { add<decltype(sample)>(call); });
  }

  void launch(DeviceCall& call) const override {
    copy_base(call);
    ops::launch_scatter_add(call, call.input(1), call.input(2), call.output());
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override {
    const std::string reason = lacks_type(device.capabilities, inputs[0].type().plain());
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

 private:
  // Threads divide the columns, so no two add to one element. Narrow floats are rounded once, at
  // the end.
  template <class T>
  static void add(const CpuCall& call) {
    constexpr DType wide = dtype_of<T>();
    const HostView &rows = call.inputs[2], &y = call.outputs[0];
    const ops::HostIndices indices("scatter_add_rows", call.inputs[1], y.layout.shape[0]);
    const int64_t columns = row_elements(y.layout.shape);
    const DType type = y.type.plain();
    const auto bytes = static_cast<int64_t>(y.type.block_bytes());
    const std::byte* from = rows.data + rows.layout.offset * bytes;
    std::vector<std::pair<int64_t, int64_t>> order;  // target, source
    for (int64_t i = 0; i < indices.count(); ++i) order.emplace_back(indices[i], i);
    std::ranges::sort(order);
    constexpr uint64_t kPiece = 256;
    call.pool.parallel_for(
        static_cast<uint64_t>(columns), kPiece, [&](uint64_t first, uint64_t last) {
          const size_t n = last - first;
          std::vector<T> sum(n), row(n);
          for (size_t i = 0; i < order.size();) {
            const int64_t target = order[i].first;
            std::byte* const to = y.data + (target * columns + static_cast<int64_t>(first)) * bytes;
            cpu::load(type, to, 1, wide, sum.data(), n);
            for (; i < order.size() && order[i].first == target; ++i) {
              const int64_t place = order[i].second * columns + static_cast<int64_t>(first);
              cpu::load(type, from + place * bytes, 1, wide, row.data(), n);
              for (size_t c = 0; c < n; ++c) sum[c] += row[c];
            }
            cpu::store(wide, sum.data(), type, to, n);
          }
        });
  }
};

}  // namespace

Tensor scatter_rows(const Tensor& base, const Tensor& indices, const Tensor& rows) {
  return use_op(std::make_shared<ScatterRowsOp>(), {base, indices, rows});
}

Tensor write_rows(const Tensor& base, const Tensor& indices, const Tensor& rows) {
  return use_op(std::make_shared<WriteRowsOp>(), {base, indices, rows});
}

Tensor scatter_add_rows(const Tensor& base, const Tensor& indices, const Tensor& rows) {
  return use_op(std::make_shared<ScatterAddRowsOp>(), {base, indices, rows});
}

}  // namespace prism
