// Layers: linear maps, embeddings, convolutions, norms, dropout, attention, activations.
//
// Weights are made on the given device (empty: default_device()) with PyTorch's initial
// distributions, from the seed of prism::seed().
#pragma once

#include <string>

#include "prism/nn/module.h"
#include "prism/ops/conv.h"
#include "prism/rope_scaling.h"

#pragma GCC visibility push(default)

namespace prism::nn {

// x [..., in] to [..., out].
class Linear : public Layer {
 public:
  Linear(int64_t in, int64_t out, bool with_bias = true, const Device& device = {});
  Tensor forward(const Tensor& x) override;
  std::string text() const override;
  PRISM_MEMBERS(weight, bias)

  Tensor weight;  // [out, in]
  Tensor bias;    // [out], or empty
};

// Indices (i32 or i64) of any shape to rows of the weight.
class Embedding : public Layer {
 public:
  Embedding(int64_t count, int64_t width, const Device& device = {});
  Tensor forward(const Tensor& indices) override;
  std::string text() const override;
  PRISM_MEMBERS(weight)

  Tensor weight;  // [count, width]
};

class Conv2d : public Layer {
 public:
  Conv2d(int64_t in, int64_t out, int64_t kernel, const Conv2dOptions& options = {},
         bool with_bias = true, const Device& device = {});
  Tensor forward(const Tensor& x) override;  // [n, in, height, width]
  std::string text() const override;
  PRISM_MEMBERS(weight, bias)

  Conv2dOptions options;
  Tensor weight;  // [out, in / groups, kernel, kernel]
  Tensor bias;
};

class Conv1d : public Layer {
 public:
  Conv1d(int64_t in, int64_t out, int64_t kernel, const Conv1dOptions& options = {},
         bool with_bias = true, const Device& device = {});
  Tensor forward(const Tensor& x) override;  // [n, in, length]
  std::string text() const override;
  PRISM_MEMBERS(weight, bias)

  Conv1dOptions options;
  Tensor weight;  // [out, in / groups, kernel]
  Tensor bias;
};

// --- norms
class LayerNorm : public Layer {  // over the last axis
 public:
  explicit LayerNorm(int64_t width, double epsilon = 1e-5, const Device& device = {});
  Tensor forward(const Tensor& x) override;
  std::string text() const override;
  PRISM_MEMBERS(weight, bias)

  double epsilon;
  Tensor weight, bias;
};

class RMSNorm : public Layer {  // over the last axis
 public:
  explicit RMSNorm(int64_t width, double epsilon = 1e-5, const Device& device = {});
  Tensor forward(const Tensor& x) override;
  std::string text() const override;
  PRISM_MEMBERS(weight)

  double epsilon;
  Tensor weight;
};

class GroupNorm : public Layer {  // x [n, channels, ...]; over each group of channels
 public:
  GroupNorm(int64_t groups, int64_t channels, double epsilon = 1e-5, const Device& device = {});
  Tensor forward(const Tensor& x) override;
  std::string text() const override;
  PRISM_MEMBERS(weight, bias)

  int64_t groups;
  double epsilon;
  Tensor weight, bias;
};

// x [n, channels, ...]: over all axes but the second. In training it uses the statistics of the
// batch and updates the running ones; in evaluation it uses the running ones.
class BatchNorm : public Layer {
 public:
  explicit BatchNorm(int64_t channels, double epsilon = 1e-5, double momentum = 0.1,
                     const Device& device = {});
  Tensor forward(const Tensor& x) override;
  std::string text() const override;
  PRISM_MEMBERS(weight, bias, running_mean, running_var)

  double epsilon, momentum;
  Tensor weight, bias, running_mean, running_var;
};

// --- regularisation
class Dropout : public Layer {  // the identity in evaluation
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string text() const override;

  double p;
};

// --- attention
struct SelfAttentionOptions {
  int64_t kv_heads = 0;  // 0: as many as heads; fewer: grouped heads
  bool causal = true;
  bool bias = true;
  double rotary_base = 0;  // the base of rotary positions (10000 is usual); 0: none
  RopePairing rotary_pairing = RopePairing::halves;
  double dropout = 0;  // of the output
};
// x [batch, length, width] to the same shape.
class SelfAttention : public Layer {
 public:
  SelfAttention(int64_t width, int64_t heads, const SelfAttentionOptions& options = {},
                const Device& device = {});
  Tensor forward(const Tensor& x) override;
  std::string text() const override;
  PRISM_MEMBERS(query, key, value, output, dropout)

  int64_t heads;
  SelfAttentionOptions options;
  Linear query, key, value, output;
  Dropout dropout;
};

// --- shapes and pooling
class Flatten : public Layer {  // [n, ...] to [n, elements]
 public:
  Tensor forward(const Tensor& x) override;
  std::string text() const override { return "Flatten"; }
};
class MaxPool2d : public Layer {
 public:
  explicit MaxPool2d(int64_t window = 2, int64_t stride = 0);
  Tensor forward(const Tensor& x) override;
  std::string text() const override { return "MaxPool2d"; }
  Pool2dOptions options;
};
class AvgPool2d : public Layer {
 public:
  explicit AvgPool2d(int64_t window = 2, int64_t stride = 0);
  Tensor forward(const Tensor& x) override;
  std::string text() const override { return "AvgPool2d"; }
  Pool2dOptions options;
};

// --- activations: functions of one element as layers
class Activation : public Layer {
 public:
  using Function = Tensor (*)(const Tensor&);
  Activation(std::string name, Function function) : name_(std::move(name)), function_(function) {}
  Tensor forward(const Tensor& x) override { return function_(x); }
  std::string text() const override { return name_; }

 private:
  std::string name_;
  Function function_;
};
Activation ReLU();
Activation GELU();
Activation SiLU();
Activation Tanh();
Activation Sigmoid();

}  // namespace prism::nn

#pragma GCC visibility pop
