// Value: recording operations on scalars, and running what was recorded.
#include <fmt/format.h>

#include "nn/scalar/tape.h"
#include "prism/error.h"
#include "prism/nn/scalar.h"
#include "prism/tensor.h"

namespace prism::nn {

namespace {

Value apply(ScalarCode code, const Value& a, const Value* b = nullptr, double exponent = 0) {
  auto node = std::make_shared<ScalarNode>();
  node->code = code;
  node->a = a.node();
  if (b) node->b = b->node();
  node->exponent = static_cast<float>(exponent);
  node->device = a.device();
  if (b && b->device() != a.device()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("Value: one operand is on {}, the other on {}; move one with "
                            "to(device)",
                            a.device().id(), b->device().id()));
  }
  return Value(std::move(node));
}

Value apply(ScalarCode code, const Value& a, const Value& b) { return apply(code, a, &b); }

void run(std::span<ScalarNode* const> roots, bool gradients) {
  const Taped taped = make_tape(roots, gradients);
  std::vector<float> leaves;
  for (int32_t i = 0; i < taped.tape.leaves(); ++i)
    leaves.push_back(taped.nodes[static_cast<size_t>(i)]->data);
  const std::vector<float> values = run_tape(taped.tape, leaves, roots[0]->device);
  const size_t count = taped.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    taped.nodes[i]->data = values[i];
    taped.nodes[i]->has_data = true;
    if (gradients) taped.nodes[i]->grad += values[count + i];
  }
}

}  // namespace

Value::Value(double number, const Device& device) : node_(std::make_shared<ScalarNode>()) {
  node_->data = static_cast<float>(number);
  node_->has_data = true;
  node_->device = device ? device.current() : default_device();
}

double Value::data() const {
  if (!node_->has_data) {
    ScalarNode* const root = node_.get();
    run(std::span(&root, 1), false);
  }
  return static_cast<double>(node_->data);
}

double Value::grad() const { return static_cast<double>(node_->grad); }
void Value::zero_grad() { node_->grad = 0; }

void Value::set_data(double number) {
  if (node_->code != ScalarCode::leaf)
    throw Error(ErrorCode::kInvalidArgument,
                "Value: set_data() of the result of an operation; only leaves can be changed");
  node_->data = static_cast<float>(number);
}

void Value::backward() const {
  ScalarNode* const root = node_.get();
  run(std::span(&root, 1), true);
}

const Device& Value::device() const { return node_->device; }

Value Value::to(const Device& device) const {
  return device.current() == node_->device ? *this : Value(data(), device);
}

Value& Value::operator+=(const Value& other) { return *this = *this + other; }
Value& Value::operator-=(const Value& other) { return *this = *this - other; }
Value& Value::operator*=(const Value& other) { return *this = *this * other; }
Value& Value::operator/=(const Value& other) { return *this = *this / other; }
Value& Value::operator+=(double other) { return *this = *this + other; }
Value& Value::operator-=(double other) { return *this = *this - other; }
Value& Value::operator*=(double other) { return *this = *this * other; }
Value& Value::operator/=(double other) { return *this = *this / other; }

Value operator+(const Value& a, const Value& b) { return apply(ScalarCode::add, a, b); }
Value operator-(const Value& a, const Value& b) { return apply(ScalarCode::sub, a, b); }
Value operator*(const Value& a, const Value& b) { return apply(ScalarCode::mul, a, b); }
Value operator/(const Value& a, const Value& b) { return apply(ScalarCode::div, a, b); }
Value operator+(const Value& a, double b) { return a + Value(b, a.device()); }
Value operator-(const Value& a, double b) { return a - Value(b, a.device()); }
Value operator*(const Value& a, double b) { return a * Value(b, a.device()); }
Value operator/(const Value& a, double b) { return a / Value(b, a.device()); }
Value operator+(double a, const Value& b) { return Value(a, b.device()) + b; }
Value operator-(double a, const Value& b) { return Value(a, b.device()) - b; }
Value operator*(double a, const Value& b) { return Value(a, b.device()) * b; }
Value operator/(double a, const Value& b) { return Value(a, b.device()) / b; }
Value operator-(const Value& a) { return a * -1.0; }
Value pow(const Value& a, double exponent) { return apply(ScalarCode::pow, a, nullptr, exponent); }
Value exp(const Value& a) { return apply(ScalarCode::exp, a); }
Value log(const Value& a) { return apply(ScalarCode::log, a); }
Value tanh(const Value& a) { return apply(ScalarCode::tanh, a); }
Value relu(const Value& a) { return apply(ScalarCode::relu, a); }

void compute(std::span<const Value> values) {
  std::vector<ScalarNode*> open;
  for (const Value& each : values)
    if (!each.node()->has_data) open.push_back(each.node().get());
  if (!open.empty()) run(open, false);
}

}  // namespace prism::nn
