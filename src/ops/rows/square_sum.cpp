// The sum of the squares of many tensors: several tensors a launch, then one that adds their parts
// in order.
#include "ops/rows/square_sum.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "prism/kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

constexpr uint32_t kGroup = 256;
constexpr size_t kTensors = 7;  // of a launch: a kernel has eight buffers
constexpr int64_t kPartElements = 16384, kMostParts = 256;  // of a tensor

// Group x: a part. Group y: the tensor.
ir::Kernel parts_kernel(size_t tensors) {
  return kernel("square_parts", kGroup, [&] {
    std::vector<In> x;
    for (size_t t = 0; t < tensors; ++t) x.push_back(in(fmt::format("x{}", t), f32));
    const Array y = out("y", f32);
    const Value first = param("first", u32), parts = param("parts", u32);
    std::vector<Value> counts;
    for (size_t t = 0; t < tensors; ++t) counts.push_back(param(fmt::format("count{}", t), u32));
    Var sum(f32, 0.0f, "sum");
    for (size_t t = 0; t < tensors; ++t)
      if_(group_id(1) == static_cast<uint32_t>(t), [&] {
        // Four apart, so that four loads are under way.
        for_(global_id(), counts[t], parts * (kGroup * 4), [&](Value i) {
          std::vector<Value> some;
          for (uint32_t n = 0; n < 4; ++n) {
            const Value at = i + parts * (kGroup * n);
            some.push_back(x[t].load_if(at < counts[t], at));
          }
          for (const Value each : some) sum = fma(each, each, sum);
        });
      });
    const Value total = group_sum(sum);
    if_(local_id() == 0u, [&] { y[first + group_id(1) * parts + group_id(0)] = total; });
  });
}

ir::Kernel total_kernel() {
  return kernel("square_total", kGroup, [] {
    const In parts = in("parts", f32);
    const Array y = out("y", f32);
    const Value count = param("count", u32);
    Var sum(f32, 0.0f, "sum");
    for_(local_id(), count, kGroup, [&](Value i) { sum += parts[i]; });
    const Value total = group_sum(sum);
    if_(local_id() == 0u, [&] { y[0u] = total; });
  });
}

class SquareSumOp : public Op {
 public:
  std::string_view name() const override { return "square_sum"; }
  bool has_gradient() const override { return false; }
  std::vector<Spec> infer(std::span<const Tensor>) const override {
    return {{Shape{}, DType::f32}};
  }

  void launch(DeviceCall& call) const override {
    struct Batch {
      size_t first, count;
      int64_t parts, place;
    };
    std::vector<Batch> batches;
    int64_t all = 0;
    for (size_t first = 0; first < call.input_count(); first += kTensors) {
      Batch batch{first, std::min(kTensors, call.input_count() - first), 1, all};
      for (size_t i = 0; i < batch.count; ++i)
        batch.parts = std::max(
            batch.parts, (call.input(first + i).elements() + kPartElements - 1) / kPartElements);
      batch.parts = std::min(batch.parts, kMostParts);
      all += batch.parts * static_cast<int64_t>(batch.count);
      batches.push_back(batch);
    }
    const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
    const DeviceView parts = call.scratch({all}, DType::f32);
    for (const Batch& batch : batches) {
      std::vector<DeviceView> buffers;
      std::vector<ParamValue> params = {word(batch.place), word(batch.parts)};
      for (size_t i = 0; i < batch.count; ++i) {
        buffers.push_back(call.input(batch.first + i));
        params.emplace_back(word(buffers.back().elements()));
      }
      buffers.push_back(parts);
      call.launch(
          fmt::format("square_parts {}", batch.count), [&] { return parts_kernel(batch.count); },
          {word(batch.parts), static_cast<uint32_t>(batch.count), 1}, buffers, std::move(params));
    }
    call.launch("square_total", total_kernel, {1, 1, 1}, {parts, call.output()}, {word(all)});
  }

  // For plans that continue on the CPU after their device failed.
  void run_cpu(const CpuCall& call) const override {
    double sum = 0;
    for (const HostView& each : call.inputs) {
      const float* const x = each.first<float>();
      for (int64_t i = 0; i < each.layout.shape.elements(); ++i)
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    *call.outputs[0].first<float>() = static_cast<float>(sum);
  }
};

}  // namespace

bool has_square_sum(std::span<const Tensor> tensors) {
  return tensors.size() > 1 && std::ranges::all_of(tensors, [&](const Tensor& each) {
           return each && !each.device().info().is_cpu && each.elements() > 0 &&
                  each.type() == ElementType(DType::f32) && each.device() == tensors[0].device();
         });
}

Tensor square_sum(std::span<const Tensor> tensors) {
  return use_op(std::make_shared<SquareSumOp>(), {tensors.begin(), tensors.end()});
}

}  // namespace prism
