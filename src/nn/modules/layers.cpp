// Layers without statistics: linear maps, embeddings, convolutions, dropout, pooling, activations.
#include "prism/nn/layers.h"

#include <cmath>

#include <fmt/format.h>

#include "nn/modules/parameters.h"
#include "nn/train/step_context.h"
#include "ops/create/random_keys.h"
#include "prism/error.h"
#include "prism/nn/init.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"

namespace prism::nn {

namespace {

// PyTorch's initial values of linear maps and convolutions: uniform within 1 / sqrt(inputs).
void fill_by_inputs(Tensor& weight, Tensor& bias, const Shape& shape, bool with_bias,
                    const Device& device) {
  weight = new_parameter(shape, device);
  const double bound = 1 / std::sqrt(std::max(1.0, init::fans(shape).in));
  init::uniform(weight, -bound, bound);
  if (!with_bias) return;
  bias = new_parameter({shape[0]}, device);
  init::uniform(bias, -bound, bound);
}

}  // namespace

Tensor new_parameter(const Shape& shape, const Device& device, double value) {
  for (const int64_t length : shape) {
    if (length > 0) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a parameter of shape {} would be empty; sizes of layers must be 1 or "
                            "more",
                            shape.text()));
  }
  return full(shape, value, DType::f32, device).eval().detach().set_requires_grad();
}

Linear::Linear(int64_t in, int64_t out, bool with_bias, const Device& device) {
  fill_by_inputs(weight, bias, {out, in}, with_bias, device);
}
Tensor Linear::forward(const Tensor& x) {
  return linear(in_compute_type(x), in_compute_type(weight), bias ? in_compute_type(bias) : bias);
}
std::string Linear::text() const {
  return fmt::format("Linear({} -> {}{})", weight.size(1), weight.size(0), bias ? "" : ", no bias");
}

Embedding::Embedding(int64_t count, int64_t width, const Device& device)
    : weight(new_parameter({count, width}, device)) {
  init::normal(weight);
}
Tensor Embedding::forward(const Tensor& indices) { return gather_rows(weight, indices); }
std::string Embedding::text() const {
  return fmt::format("Embedding({} x {})", weight.size(0), weight.size(1));
}

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel, const Conv2dOptions& given, bool with_bias,
               const Device& device)
    : options(given) {
  fill_by_inputs(weight, bias, {out, in / given.groups, kernel, kernel}, with_bias, device);
}
Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight, options, bias); }
std::string Conv2d::text() const {
  return fmt::format("Conv2d({} -> {}, {}x{})", weight.size(1) * options.groups, weight.size(0),
                     weight.size(2), weight.size(3));
}

Conv1d::Conv1d(int64_t in, int64_t out, int64_t kernel, const Conv1dOptions& given, bool with_bias,
               const Device& device)
    : options(given) {
  fill_by_inputs(weight, bias, {out, in / given.groups, kernel}, with_bias, device);
}
Tensor Conv1d::forward(const Tensor& x) { return conv1d(x, weight, options, bias); }
std::string Conv1d::text() const {
  return fmt::format("Conv1d({} -> {}, {})", weight.size(1) * options.groups, weight.size(0),
                     weight.size(2));
}

Dropout::Dropout(double probability) : p(probability) {
  if (p >= 0 && p < 1) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("Dropout: p {}; it must be at least 0 and below 1", p));
}
Tensor Dropout::forward(const Tensor& x) {
  if (!is_training() || p == 0) return x;
  StepContext* const context = step_context();
  if (context && context->key)
    return prism::dropout(x, p, context->key.to(x.device()), context->draws++);
  return prism::dropout(x, p, next_random_key());
}
std::string Dropout::text() const { return fmt::format("Dropout({})", p); }

Tensor Flatten::forward(const Tensor& x) { return x.reshape({x.size(0), -1}); }

MaxPool2d::MaxPool2d(int64_t window, int64_t stride) {
  options.height = options.width = window;
  options.stride_y = options.stride_x = stride;
}
Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options); }

AvgPool2d::AvgPool2d(int64_t window, int64_t stride) {
  options.height = options.width = window;
  options.stride_y = options.stride_x = stride;
}
Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, options); }

Activation ReLU() { return {"ReLU", relu}; }
Activation GELU() { return {"GELU", gelu}; }
Activation SiLU() { return {"SiLU", silu}; }
Activation Tanh() { return {"Tanh", tanh}; }
Activation Sigmoid() { return {"Sigmoid", sigmoid}; }

}  // namespace prism::nn
