// Bias, gate, residual and tail of a result.
#include "ops/epilogue.h"

#include <cmath>

namespace prism::ops {

using namespace dsl;

Epilogue::Epilogue(Gate gate, bool bias, bool residual, DType y,
                   std::shared_ptr<const TailSpec> tail, const std::string& suffix)
    : gate_(gate) {
  if (bias) biases_.push_back(weights("bias", f32));
  if (bias && gate != Gate::none) biases_.push_back(weights("bias_up", f32));
  if (residual) residual_ = in("residual", y);
  if (tail) tail_.emplace(std::move(tail), suffix);
}

void Epilogue::declare_params() {
  if (tail_) tail_->declare_params();
}

Value Epilogue::apply(const std::vector<Value>& sums, Value row, Value column, Value place) const {
  const Value result = before_tail(sums, column, place);
  if (!tail_) return result;
  return tail_->apply(result, row, column, place,
                      gate_ == Gate::tail ? std::optional(sums[1]) : std::nullopt);
}

std::vector<Value> Epilogue::apply_four(const std::vector<Value>& sums, Value row, Value column,
                                        Value place) const {
  std::vector<Value> results;
  for (uint32_t i = 0; i < 4; ++i) results.push_back(before_tail({sums[i]}, column + i, place + i));
  return tail_ ? tail_->apply_four(results, row, column, place) : results;
}

Value Epilogue::before_tail(const std::vector<Value>& sums, Value column, Value place) const {
  std::vector<Value> values = sums;
  for (size_t i = 0; i < biases_.size(); ++i) values[i] = values[i] + biases_[i][column];
  Value result = values[0];
  if (gate_ == Gate::silu) result = result / (exp(-result) + 1.0f) * values[1];
  if (gate_ == Gate::gelu) {
    const Value inner = (result + result * result * result * 0.044715f) *
                        static_cast<float>(std::sqrt(2 / 3.14159265358979323846));
    result = result * 0.5f * (tanh(inner) + 1.0f) * values[1];
  }
  if (residual_) result = result + (*residual_)[place];
  return result;
}

}  // namespace prism::ops
