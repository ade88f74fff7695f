// Networks of scalars.
#include <fmt/format.h>

#include "ops/create/random_keys.h"
#include "prism/error.h"
#include "prism/nn/scalar.h"
#include "prism/ops/create.h"

namespace prism::nn {

namespace {

// The parameters of all parts in order.
template <class Part>
std::vector<Value> parameters_of(const std::vector<Part>& parts) {
  std::vector<Value> result;
  for (const Part& each : parts)
    for (const Value& parameter : each.parameters()) result.push_back(parameter);
  return result;
}

}  // namespace

Neuron::Neuron(int64_t inputs, bool is_linear, const Device& device)
    : bias_(0, device), is_linear_(is_linear) {
  if (inputs < 1)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("Neuron: {} inputs; give at least one", inputs));
  for (const float each :
       uniform({inputs}, next_random_key(), -1, 1, DType::f32, Device::cpu()).to_vector<float>())
    weights_.emplace_back(static_cast<double>(each), device);
}

Value Neuron::operator()(std::span<const Value> x) const {
  if (x.size() != weights_.size())
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("Neuron: {} inputs given, it has {} weights", x.size(), weights_.size()));
  Value sum = bias_;
  for (size_t i = 0; i < x.size(); ++i) sum += weights_[i] * x[i];
  return is_linear_ ? sum : relu(sum);
}

std::vector<Value> Neuron::parameters() const {
  std::vector<Value> result = weights_;
  result.push_back(bias_);
  return result;
}

ScalarLayer::ScalarLayer(int64_t inputs, int64_t outputs, bool is_linear, const Device& device) {
  for (int64_t i = 0; i < outputs; ++i) neurons_.emplace_back(inputs, is_linear, device);
}

std::vector<Value> ScalarLayer::operator()(std::span<const Value> x) const {
  std::vector<Value> result;
  for (const Neuron& each : neurons_) result.push_back(each(x));
  return result;
}

std::vector<Value> ScalarLayer::parameters() const { return parameters_of(neurons_); }

MLP::MLP(int64_t inputs, const std::vector<int64_t>& sizes, const Device& device) {
  if (sizes.empty())
    throw Error(ErrorCode::kInvalidArgument, "MLP: no sizes of layers; give at least one");
  for (size_t i = 0; i < sizes.size(); ++i)
    layers_.emplace_back(i == 0 ? inputs : sizes[i - 1], sizes[i], i + 1 == sizes.size(), device);
}

std::vector<Value> MLP::operator()(std::span<const Value> x) const {
  std::vector<Value> values(x.begin(), x.end());
  for (const ScalarLayer& each : layers_) values = each(values);
  return values;
}

std::vector<Value> MLP::parameters() const { return parameters_of(layers_); }

void MLP::zero_grad() {
  for (Value& each : parameters()) each.zero_grad();
}

}  // namespace prism::nn
