// gather_rows: copies rows of a plain or block-quantised table by index.
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/types/gpu_block_layout.h"
#include "cpu/quantise/dequantise.h"
#include "ops/index/index_reading.h"
#include "ops/quantise/block_kernels.h"
#include "ops/shape/strided_copy.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

// Lane i copies unit i of y.
ir::Kernel gather_kernel(uint32_t unit, bool wide) {
  return kernel("gather_rows", 256, [&] {
    auto table = in("table", ops::unit_type(unit));
    auto indices = in("indices", u32);
    auto y = out("y", ops::unit_type(unit));
    const Value count = param("count", u32), row_units = param("row_units", u32),
                rows = param("rows", u32), table_offset = param("table_offset", u32),
                index_offset = param("index_offset", u32);
    const Value i = global_id();
    if_(i < count, [&] {
      const Value place = i / row_units, unit_of_row = i - place * row_units;
      const Value index = ops::load_index(indices, place + index_offset, wide);
      const Value inside = index < rows;
      const Value source = table_offset + select(inside, index, 0u) * row_units + unit_of_row;
      ops::store_unit(y, i, ops::load_unit_if(inside, table, source, unit), unit);
    });
  });
}

// Converts i64 indices to the i32 that kernels over planes read; out of range becomes -1.
ir::Kernel narrow_kernel() {
  return kernel("narrow_indices", 256, [] {
    auto indices = in("indices", u32);
    auto y = out("y", u32);
    const Value count = param("count", u32), offset = param("offset", u32);
    const Value i = global_id();
    if_(i < count, [&] { y[i] = ops::load_index(indices, i + offset, true); });
  });
}

int64_t row_elements(const Shape& table) {
  return table.elements() / std::max<int64_t>(1, table[0]);
}

class GatherRowsOp : public Op {
 public:
  std::string_view name() const override { return "gather_rows"; }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor &table = inputs[0], &indices = inputs[1];
    if (table.rank() == 0 || (table.type().is_block() && table.rank() < 2)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("gather_rows: a table of type {} and shape {} has no rows to take",
                              table.type().name(), table.shape().text()));
    }
    ops::check_index_type("gather_rows", indices);
    Shape shape = indices.shape();
    for (int axis = 1; axis < table.rank(); ++axis) shape.append(table.shape()[axis]);
    return {{shape, table.type().is_block() ? ElementType(DType::f32) : table.type()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    const Tensor& table = call.inputs[0];
    if (table.type().is_block() || !call.wanted[0]) return {Tensor(), Tensor()};
    return {scatter_add_rows(zeros(table.shape(), table.type(), table.device()), call.inputs[1],
                             call.output_gradients[0]),
            Tensor()};
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &table = call.inputs[0], &y = call.outputs[0];
    const Shape& shape = table.layout.shape;
    const ops::HostIndices indices("gather_rows", call.inputs[1], shape[0]);
    const auto elements = static_cast<uint64_t>(row_elements(shape));
    const uint64_t row_bytes = table.type.row_bytes(elements);
    const uint64_t y_bytes = elements * y.type.block_bytes();
    const std::byte* first =
        table.data + table.type.row_bytes(static_cast<uint64_t>(table.layout.offset));
    const uint64_t chunk = std::max<uint64_t>(1, (1 << 15) / std::max<uint64_t>(1, y_bytes));
    call.pool.parallel_for(
        static_cast<uint64_t>(indices.count()), chunk, [&](uint64_t begin, uint64_t end) {
          for (uint64_t i = begin; i < end; ++i) {
            const auto row = static_cast<uint64_t>(indices[static_cast<int64_t>(i)]);
            if (y_bytes == 0) continue;
            std::byte* const to = y.data + i * y_bytes;
            if (table.type.is_block())
              cpu::dequantise(table.type.block(), first + row * row_bytes,
                              reinterpret_cast<float*>(to), elements);
            else
              std::memcpy(to, first + row * row_bytes, row_bytes);
          }
        });
  }

  void launch(DeviceCall& call) const override {
    if (call.output().elements() == 0) return;
    if (call.input(0).type.is_block()) return launch_planes(call);
    const DeviceView &table = call.input(0), &indices = call.input(1);
    const bool wide = ops::is_wide(indices.type);
    const uint64_t bytes = table.type.block_bytes();
    const uint64_t row_bytes = static_cast<uint64_t>(row_elements(table.layout.shape)) * bytes;
    const uint64_t offset = static_cast<uint64_t>(table.layout.offset) * bytes;
    const uint32_t unit = ops::unit_for({row_bytes, offset});
    const uint64_t count = row_bytes / unit * static_cast<uint64_t>(indices.elements());
    DeviceView from = table, by = indices;
    from.layout.offset = by.layout.offset = 0;  // offsets are parameters here
    call.launch(fmt::format("gather_rows {} {}", unit, wide ? 64 : 32),
                [&] { return gather_kernel(unit, wide); },
                {groups_for(static_cast<int64_t>(count), 256), 1, 1}, {from, by, call.output()},
                {static_cast<uint32_t>(count), static_cast<uint32_t>(row_bytes / unit),
                 static_cast<uint32_t>(table.layout.shape[0]), static_cast<uint32_t>(offset / unit),
                 static_cast<uint32_t>(indices.layout.offset)});
  }

  // Any offset is accepted: it is a kernel parameter. Block types are stored row by row.
  bool takes_layout(size_t, const Tensor& tensor, const DeviceInfo&) const override {
    return tensor.layout().is_dense();
  }

 private:
  static void launch_planes(DeviceCall& call) {
    const DeviceView& table = call.input(0);
    const Shape& shape = table.layout.shape;
    const auto columns = static_cast<uint64_t>(shape[-1]);
    const uint64_t rows_each = static_cast<uint64_t>(row_elements(shape)) / columns;
    if (rows_each != 1) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("gather_rows: a table {} of type {}: kernels take rows of one axis",
                              shape.text(), table.type.name()));
    }
    const GpuBlockLayout planes =
        gpu_block_layout(table.type.block(), static_cast<uint64_t>(shape[0]), columns);
    const uint64_t offset = static_cast<uint64_t>(table.layout.offset) / columns * planes.row_bytes;
    if (offset % kRangeAlignment != 0) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("gather_rows: a table of type {} that begins {} bytes late; kernels "
                              "begin at multiples of {}",
                              table.type.name(), offset, kRangeAlignment));
    }
    DeviceView indices = call.input(1);
    if (ops::is_wide(indices.type) || indices.layout.offset % 128 != 0) {
      const DeviceView narrow = call.scratch(indices.layout.shape, DType::i32);
      const bool wide = ops::is_wide(indices.type);
      const auto index_offset = static_cast<uint32_t>(indices.layout.offset);
      DeviceView from = indices;
      from.layout.offset = 0;
      if (wide)
        call.launch("narrow_indices", narrow_kernel, {groups_for(indices.elements(), 256), 1, 1},
                    {from, narrow}, {static_cast<uint32_t>(indices.elements()), index_offset});
      else
        ops::strided_copy_on_device(call, indices, narrow);
      indices = narrow;
    }
    const auto count = static_cast<uint64_t>(indices.elements());
    const ops::BlockLaunch launch = ops::gather_gpu_blocks_launch(planes, count);
    std::vector<ParamValue> params(launch.params.begin(), launch.params.end());
    call.launch(
        fmt::format("gather_gpu_blocks {}", table.type.name()),
        [&] { return ops::gather_gpu_blocks(table.type.block(), DType::f32); }, launch.groups,
        {table, indices, call.output()}, std::move(params));
    call.launches().back().offsets[0] = offset;
  }
};

}  // namespace

Tensor gather_rows(const Tensor& table, const Tensor& indices) {
  return use_op(std::make_shared<GatherRowsOp>(), {table, indices});
}

}  // namespace prism
