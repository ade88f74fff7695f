// Scalars with gradients, as Karpathy's micrograd has them, and networks of them.
//
//   nn::Value a(-4.0), b(2.0);
//   nn::Value c = a * b + pow(b, 3);
//   c.backward();
//   double slope = a.grad();  // dc/da
//
// Expressions are recorded. data() and backward() run everything that was recorded since the last
// run as one plan, level by level: a GPU is not launched once for each scalar.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "prism/device.h"

#pragma GCC visibility push(default)

namespace prism::nn {

struct ScalarNode;

// A handle to a scalar of the graph; copies share it. Computed in f32. Operations on scalars of
// different devices throw kInvalidArgument.
class Value {
 public:
  Value(double number = 0, const Device& device = {});  // empty device: default_device()

  double data() const;
  double grad() const;  // accumulated by backward(); 0 before
  void zero_grad();
  void set_data(double number);  // of a leaf: kInvalidArgument for the result of an operation
  void backward() const;         // adds to grad() of everything this depends on
  const Device& device() const;
  Value to(const Device& device) const;  // a leaf with the same number; itself if already there

  Value& operator+=(const Value& other);
  Value& operator-=(const Value& other);
  Value& operator*=(const Value& other);
  Value& operator/=(const Value& other);
  // A number is on the device of this value.
  Value& operator+=(double other);
  Value& operator-=(double other);
  Value& operator*=(double other);
  Value& operator/=(double other);

  explicit Value(std::shared_ptr<ScalarNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<ScalarNode>& node() const { return node_; }

 private:
  std::shared_ptr<ScalarNode> node_;
};

// A number takes the device of the other operand.
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator+(const Value& a, double b);
Value operator-(const Value& a, double b);
Value operator*(const Value& a, double b);
Value operator/(const Value& a, double b);
Value operator+(double a, const Value& b);
Value operator-(double a, const Value& b);
Value operator*(double a, const Value& b);
Value operator/(double a, const Value& b);
Value operator-(const Value& a);
Value pow(const Value& a, double exponent);
Value exp(const Value& a);
Value log(const Value& a);
Value tanh(const Value& a);
Value relu(const Value& a);
// Comparisons of data().
inline bool operator<(const Value& a, const Value& b) { return a.data() < b.data(); }
inline bool operator>(const Value& a, const Value& b) { return a.data() > b.data(); }
inline bool operator<=(const Value& a, const Value& b) { return a.data() <= b.data(); }
inline bool operator>=(const Value& a, const Value& b) { return a.data() >= b.data(); }
inline bool operator==(const Value& a, const Value& b) { return a.data() == b.data(); }
inline bool operator!=(const Value& a, const Value& b) { return a.data() != b.data(); }

// Computes several scalars in one plan.
void compute(std::span<const Value> values);

// A weighted sum with bias, then relu unless linear. Weights are uniform in [-1, 1) from the seed
// of prism::seed(); the bias is 0.
class Neuron {
 public:
  explicit Neuron(int64_t inputs, bool is_linear = false, const Device& device = {});
  Value operator()(std::span<const Value> x) const;
  std::vector<Value> parameters() const;

 private:
  std::vector<Value> weights_;
  Value bias_;
  bool is_linear_;
};

class ScalarLayer {
 public:
  ScalarLayer(int64_t inputs, int64_t outputs, bool is_linear = false, const Device& device = {});
  std::vector<Value> operator()(std::span<const Value> x) const;
  std::vector<Value> parameters() const;

 private:
  std::vector<Neuron> neurons_;
};

// Layers of these sizes; the last is linear.
class MLP {
 public:
  MLP(int64_t inputs, const std::vector<int64_t>& sizes, const Device& device = {});
  std::vector<Value> operator()(std::span<const Value> x) const;
  std::vector<Value> parameters() const;
  void zero_grad();

 private:
  std::vector<ScalarLayer> layers_;
};

}  // namespace prism::nn

#pragma GCC visibility pop
