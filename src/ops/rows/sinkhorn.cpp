// sinkhorn: a thread holds a whole matrix, so all steps are one launch.
#include "ops/rows/sinkhorn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

constexpr uint32_t kLanes = 64;
constexpr auto kMost = static_cast<size_t>(kMostSinkhornSize * kMostSinkhornSize);

ir::Kernel sinkhorn_kernel(uint32_t n) {
  return kernel("sinkhorn", kLanes, [&] {
    const In logits = in("logits", f32);
    const Array y = out("y", f32);
    const Value count = param("count", u32), steps = param("steps", u32),
                epsilon = param("epsilon", f32);
    const Value start = global_id() * (n * n);
    if_(global_id() < count, [&] {
      std::deque<Var> x;  // a Var stays where it was made
      const auto at = [&](uint32_t row, uint32_t column) -> Var& { return x[row * n + column]; };
      for (uint32_t row = 0; row < n; ++row) {
        std::vector<Value> parts;
        for (uint32_t i = 0; i < n; ++i) parts.push_back(logits[start + (row * n + i)]);
        Value most = parts[0];
        for (const Value each : parts) most = max(most, each);
        Value sum = constant(f32, 0.0);
        for (Value& each : parts) sum = sum + (each = exp(each - most));
        for (const Value each : parts) x.emplace_back(f32, each / sum + epsilon, "x");
      }
      // by_columns: element (i, k) of a column i, else of a row i.
      const auto divide = [&](bool by_columns) {
        for (uint32_t i = 0; i < n; ++i) {
          const auto element = [&](uint32_t k) -> Var& { return by_columns ? at(k, i) : at(i, k); };
          Value sum = epsilon;
          for (uint32_t k = 0; k < n; ++k) sum = sum + element(k);
          for (uint32_t k = 0; k < n; ++k) element(k) = element(k) / sum;
        }
      };
      divide(true);
      for_(constant(u32, 1), steps, 1u, [&](Value) {
        divide(false);
        divide(true);
      });
      for (uint32_t i = 0; i < n * n; ++i) y[start + i] = x[i];
    });
  });
}

class SinkhornOp : public Op {
 public:
  SinkhornOp(int64_t steps, double epsilon)
      : steps_(static_cast<uint32_t>(steps)), epsilon_(static_cast<float>(epsilon)) {}
  std::string_view name() const override { return "sinkhorn"; }
  bool has_gradient() const override { return false; }
  std::string attributes() const override { return fmt::format("{} steps", steps_); }

  std::vector<Spec> infer(std::span<const Tensor> in) const override {
    const Tensor& x = in[0];
    if (!(x.type() == ElementType(DType::f32)) || x.rank() < 2 || x.size(-1) != x.size(-2) ||
        x.size(-1) < 1 || x.size(-1) > kMostSinkhornSize)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("sinkhorn: {} {}; it must be f32 [..., n, n] with n from 1 to {}",
                              x.type().name(), x.shape().text(), kMostSinkhornSize));
    return {{x.shape(), DType::f32}};
  }

  void run_cpu(const CpuCall& call) const override {
    const Shape& shape = call.inputs[0].layout.shape;
    const auto n = static_cast<size_t>(shape[-1]);
    const float* const from = call.inputs[0].first<float>();
    float* const to = call.outputs[0].first<float>();
    call.pool.parallel_for(static_cast<uint64_t>(shape.elements()) / (n * n), 64,
                           [&](uint64_t first, uint64_t last) {
                             for (uint64_t i = first; i < last; ++i)
                               balance(from + i * n * n, to + i * n * n, n);
                           });
  }

  void launch(DeviceCall& call) const override {
    const Shape& shape = call.input(0).layout.shape;
    const auto n = static_cast<uint32_t>(shape[-1]);
    const int64_t count = shape.elements() / (shape[-1] * shape[-1]);
    if (count == 0) return;
    call.launch(fmt::format("sinkhorn {}", n), [&] { return sinkhorn_kernel(n); },
                {groups_for(count, kLanes), 1, 1}, {call.input(0), call.output()},
                {static_cast<uint32_t>(count), steps_, epsilon_});
  }

 private:
  void balance(const float* from, float* to, size_t n) const {
    std::array<float, kMost> x = {};
    for (size_t row = 0; row < n; ++row) {
      const float* const logits = from + row * n;
      const float most = *std::max_element(logits, logits + n);
      float sum = 0;
      for (size_t i = 0; i < n; ++i) sum += x[row * n + i] = std::exp(logits[i] - most);
      for (size_t i = 0; i < n; ++i) x[row * n + i] = x[row * n + i] / sum + epsilon_;
    }
    // `between` elements from one to the next of a row or column, which begin `apart`.
    const auto divide = [&](size_t apart, size_t between) {
      for (size_t i = 0; i < n; ++i) {
        float sum = epsilon_;
        for (size_t k = 0; k < n; ++k) sum += x[i * apart + k * between];
        for (size_t k = 0; k < n; ++k) x[i * apart + k * between] /= sum;
      }
    };
    divide(1, n);
    for (uint32_t step = 1; step < steps_; ++step) {
      divide(n, 1);
      divide(1, n);
    }
    std::copy_n(x.begin(), n * n, to);
  }

  uint32_t steps_;
  float epsilon_;
};

}  // namespace

Tensor sinkhorn(const Tensor& logits, int64_t steps, double epsilon) {
  if (!logits) throw Error(ErrorCode::kInvalidArgument, "sinkhorn: the logits are an empty Tensor");
  if (steps < 1 || steps > 1 << 20)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("sinkhorn: {} steps; there must be from 1 to 2^20", steps));
  return use_op(std::make_shared<SinkhornOp>(steps, epsilon), {logits});
}

}  // namespace prism
