// quantise on the CPU; dequantise from blocks on the CPU and from planes on other devices.
#include "prism/ops/quantise.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/types/gpu_block_layout.h"
#include "cpu/elementwise.h"
#include "cpu/quantise/dequantise.h"
#include "cpu/quantise/quantise.h"
#include "ops/quantise/block_kernels.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

class QuantiseOp : public Op {
 public:
  explicit QuantiseOp(BlockType type) : type_(type) {}
  std::string_view name() const override { return "quantise"; }
  std::string attributes() const override { return block_info(type_).name; }
  bool has_gradient() const override { return false; }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor& x = inputs[0];
    const ElementType type(type_);
    if (x.rank() == 0 || x.shape()[-1] % type.block_elements() != 0) {
      fail(fmt::format("quantise: {} to {}; the last axis must be a multiple of {} elements",
                       x.shape().text(), type.name(), type.block_elements()));
    }
    if (inputs.size() == 2 && !(inputs[1].shape() == Shape{x.shape()[-1]})) {
      fail(fmt::format("quantise: importance {} for x {}; it must have one number per column",
                       inputs[1].shape().text(), x.shape().text()));
    }
    return {{x.shape(), type}};
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView& x = call.inputs[0];
    const auto elements = static_cast<uint64_t>(x.layout.shape.elements());
    if (elements == 0) return;
    const auto columns = static_cast<uint64_t>(x.layout.shape[-1]);
    const float* importance = call.inputs.size() == 2 ? call.inputs[1].first<float>() : nullptr;
    cpu::quantise(type_, x.first<float>(), call.outputs[0].data, elements / columns, columns,
                  importance, call.pool);
  }
  void launch(DeviceCall&) const override {}  // never called: only the CPU quantises

  std::optional<std::string> cannot_run(const DeviceInfo&, std::span<const Tensor>) const override {
    return "only the CPU can quantise";
  }

 private:
  BlockType type_;
};

class DequantiseOp : public Op {
 public:
  explicit DequantiseOp(DType type) : type_(type) {}
  std::string_view name() const override { return "dequantise"; }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    return {{inputs[0].shape(), type_}};
  }
  std::vector<Tensor> gradient(const GradientCall&) const override { return {Tensor()}; }

  bool takes_layout(size_t, const Tensor& tensor, const DeviceInfo&) const override {
    return tensor.layout().is_dense();  // whole rows, starting at any row
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &x = call.inputs[0], &y = call.outputs[0];
    const BlockType block = x.type.block();
    const std::byte* from = x.data + x.type.row_bytes(static_cast<uint64_t>(x.layout.offset));
    const auto elements = static_cast<uint64_t>(x.layout.shape.elements());
    if (type_ == DType::f32) {
      cpu::dequantise(block, from, y.first<float>(), elements, call.pool);
      return;
    }
    constexpr uint64_t kPiece = 4096;  // a multiple of every block
    call.pool.parallel_for((elements + kPiece - 1) / kPiece, 4, [&](uint64_t first, uint64_t last) {
      std::vector<float> wide(kPiece);
      for (uint64_t piece = first; piece < last; ++piece) {
        const uint64_t begin = piece * kPiece, count = std::min(kPiece, elements - begin);
        cpu::dequantise(block, from + x.type.row_bytes(begin), wide.data(), count);
        cpu::store(DType::f32, wide.data(), type_, y.data + begin * y.type.block_bytes(), count);
      }
    });
  }

  void launch(DeviceCall& call) const override {
    const DeviceView& x = call.input(0);
    if (x.elements() == 0) return;
    const auto columns = static_cast<uint64_t>(x.layout.shape[-1]);
    const GpuBlockLayout planes =
        gpu_block_layout(x.type.block(), static_cast<uint64_t>(x.elements()) / columns, columns);
    const uint64_t offset = static_cast<uint64_t>(x.layout.offset) / columns * planes.row_bytes;
    if (offset % kRangeAlignment != 0) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("dequantise: rows of type {} start at byte {}; kernels need "
                              "a multiple of {}",
                              x.type.name(), offset, kRangeAlignment));
    }
    const ops::BlockLaunch launch = ops::dequantise_gpu_blocks_launch(planes);
    call.launch(
        fmt::format("dequantise_gpu_blocks {} {}", x.type.name(), dtype_name(type_)),
        [&] { return ops::dequantise_gpu_blocks(x.type.block(), type_); }, launch.groups,
        {x, call.output()}, std::vector<ParamValue>(launch.params.begin(), launch.params.end()));
    call.launches().back().offsets[0] = offset;
  }

 private:
  DType type_;
};

}  // namespace

Tensor quantise(const Tensor& x, BlockType type, const Tensor& importance) {
  if (!x) fail("quantise: an empty Tensor");
  if (x.type().is_block()) {
    fail(fmt::format("quantise: from {} to {}; dequantise() it first", x.type().name(),
                     block_info(type).name));
  }
  if (!cpu::can_quantise(type))
    fail(fmt::format("quantise: encoding to {} is not implemented; use another type",
                     block_info(type).name));
  std::vector<Tensor> inputs = {cast(x, DType::f32)};
  if (importance) inputs.push_back(cast(importance, DType::f32));
  return use_op(std::make_shared<QuantiseOp>(type), std::move(inputs));
}

Tensor dequantise(const Tensor& x, DType type) {
  if (!x) fail("dequantise: x is an empty Tensor");
  if (!x.type().is_block()) return cast(x, type);
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    fail(fmt::format("dequantise: to {}; the result must be f32, f16 or bf16",
                     ElementType(type).name()));
  return use_op(std::make_shared<DequantiseOp>(type), {x});
}

}  // namespace prism
