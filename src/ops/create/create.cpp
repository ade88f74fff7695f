// arange, linspace and eye.
#include "prism/ops/create.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "ops/float_param.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// i64 is computed as i32 and stored as two words.
ir::Kernel range_kernel(DType type) {
  return kernel("range", 256, [&] {
    const bool wide = type == i64;
    auto y = out("y", wide ? u32 : kernel_type(type));
    const DType reg = wide ? i32 : register_type(type);
    const auto number = [&](const char* name) {
      return is_float(reg) ? ops::float_param(name, reg) : param(name, reg);
    };
    const Value count = param("count", u32), start = number("start"), step = number("step"),
                last = number("last");
    const Value i = global_id();
    if_(i < count, [&] {
      const Value n = cast(reg, i);
      const Value value = reg == f32 ? fma(n, step, start) : start + n * step;
      const Value chosen = select(i + 1u == count, last, value);
      if (wide)
        y.store(i * 2u, vec(bitcast(u32, chosen), select(chosen < 0, 0xffffffffu, 0u)));
      else
        y[i] = to_stored(chosen, type);
    });
  });
}

// start + i * step, in f64 or integers; the last element is given exactly.
class RangeOp : public Op {
 public:
  RangeOp(const char* name, double start, double step, double last, int64_t count, DType type)
      : name_(name), start_(start), step_(step), last_(last), count_(count), type_(type) {}
  std::string_view name() const override { return name_; }
  std::string attributes() const override { return fmt::format("{} by {}", start_, step_); }

  std::vector<Spec> infer(std::span<const Tensor>) const override {
    return {{Shape{count_}, type_}};
  }
  std::vector<Tensor> gradient(const GradientCall&) const override { return {}; }

  void run_cpu(const CpuCall& call) const override {
    std::byte* const y = call.outputs[0].data;
    const size_t bytes = call.outputs[0].type.block_bytes();
    constexpr uint64_t kPiece = 1024;
    call.pool.parallel_for(static_cast<uint64_t>(count_), kPiece,
                           [&](uint64_t first, uint64_t last) {
                             double values[kPiece];
                             for (uint64_t i = first; i < last; ++i)
                               values[i - first] = i + 1 == static_cast<uint64_t>(count_)
                                                       ? last_
                                                       : start_ + static_cast<double>(i) * step_;
                             cpu::store(DType::f64, values, type_, y + first * bytes, last - first);
                           });
  }

  void launch(DeviceCall& call) const override {
    std::vector<ParamValue> params = {static_cast<uint32_t>(count_)};
    for (const double each : {start_, step_, last_}) {
      if (is_float(type_))
        ops::add_float_param(params, each, register_type(type_));
      else
        params.emplace_back(static_cast<int32_t>(each));
    }
    call.launch(
        fmt::format("range {}", dtype_name(type_)), [&] { return range_kernel(type_); },
        {groups_for(count_, 256), 1, 1}, {call.output()}, std::move(params));
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor>) const override {
    const double largest = std::max(std::fabs(start_), std::fabs(last_));
    const bool beyond = type_ == DType::i64 && !(std::max(largest, std::fabs(step_)) < 0x1p31);
    if (beyond) return "kernels make ranges of whole numbers of at most 32 bits";
    if (type_ != DType::f64 || device.capabilities.math_f64) return std::nullopt;
    return lacks_type(device.capabilities, type_);
  }

 private:
  const char* name_;
  double start_, step_, last_;
  int64_t count_;
  DType type_;
};

void check_numbers(const char* op, DType type) {
  if (!is_tensor_type(type) || type == DType::b1)
    fail(fmt::format("{}: elements of type {}", op, ElementType(type).name()));
}

}  // namespace

Tensor arange(double start, double stop, double step, DType type, const Device& device) {
  check_numbers("arange", type);
  if (step == 0 || !std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step))
    fail(fmt::format("arange: from {} to {} by {}", start, stop, step));
  if (!is_float(type) && (start != std::trunc(start) || step != std::trunc(step)))
    fail(fmt::format("arange: from {} by {} in {}; take a float type", start, step,
                     ElementType(type).name()));
  const double steps = std::ceil((stop - start) / step);
  const int64_t count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  const double last = start + static_cast<double>(count - 1) * step;
  return use_op(std::make_shared<RangeOp>("arange", start, step, last, count, type), {}, device);
}

Tensor linspace(double first, double last, int64_t count, DType type, const Device& device) {
  check_numbers("linspace", type);
  if (count < 0) fail(fmt::format("linspace: {} numbers", count));
  if (!is_float(type))
    fail(fmt::format("linspace: elements of type {}; take a float type", ElementType(type).name()));
  const double step = count > 1 ? (last - first) / static_cast<double>(count - 1) : 0;
  const double end = count > 1 ? last : first;
  return use_op(std::make_shared<RangeOp>("linspace", first, step, end, count, type), {}, device);
}

Tensor eye(int64_t rows, int64_t columns, DType type, const Device& device) {
  if (columns == -1) columns = rows;
  if (rows < 0 || columns < 0) fail(fmt::format("eye: {} rows of {} columns", rows, columns));
  const Tensor row = arange(rows, DType::i32, device);
  return cast(equal(row.unsqueeze(1), arange(columns, DType::i32, device)), type);
}

}  // namespace prism
