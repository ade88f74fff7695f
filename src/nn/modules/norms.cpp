// Norm layers: over the last axis, over groups of channels, and over the batch.
#include <cmath>

#include <fmt/format.h>

#include "nn/modules/parameters.h"
#include "nn/train/step_context.h"
#include "prism/error.h"
#include "prism/nn/layers.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/norm.h"
#include "prism/ops/reduce.h"

namespace prism::nn {

namespace {

// A tensor of one number per channel, for x [n, channels, ...].
Tensor along_channels(const Tensor& x, const Tensor& channels) {
  std::vector<int64_t> lengths(static_cast<size_t>(x.ndim()), 1);
  lengths[1] = channels.size();
  return channels.reshape(lengths);
}

void check_channels(const char* layer, const Tensor& x, int64_t channels) {
  if (x.ndim() >= 2 && x.size(1) == channels) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: an input of shape {}; its second axis must have {} channels", layer,
                          x.shape().text(), channels));
}

}  // namespace

LayerNorm::LayerNorm(int64_t width, double given, const Device& device)
    : epsilon(given),
      weight(new_parameter({width}, device, 1)),
      bias(new_parameter({width}, device)) {}
Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, weight, bias, epsilon); }
std::string LayerNorm::text() const { return fmt::format("LayerNorm({})", weight.size()); }

RMSNorm::RMSNorm(int64_t width, double given, const Device& device)
    : epsilon(given), weight(new_parameter({width}, device, 1)) {}
Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, weight, epsilon); }
std::string RMSNorm::text() const { return fmt::format("RMSNorm({})", weight.size()); }

GroupNorm::GroupNorm(int64_t count, int64_t channels, double given, const Device& device)
    : groups(count),
      epsilon(given),
      weight(new_parameter({channels}, device, 1)),
      bias(new_parameter({channels}, device)) {
  if (count > 0 && channels % count == 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("GroupNorm: {} channels do not divide into {} groups", channels, count));
}
Tensor GroupNorm::forward(const Tensor& x) {
  check_channels("GroupNorm", x, weight.size());
  const Tensor normed =
      layer_norm(x.reshape({x.size(0), groups, -1}), {}, {}, epsilon).reshape(x.shape());
  return normed * along_channels(x, weight) + along_channels(x, bias);
}
std::string GroupNorm::text() const {
  return fmt::format("GroupNorm({} groups of {})", groups, weight.size() / groups);
}

BatchNorm::BatchNorm(int64_t channels, double given, double rate, const Device& device)
    : epsilon(given),
      momentum(rate),
      weight(new_parameter({channels}, device, 1)),
      bias(new_parameter({channels}, device)),
      running_mean(full({channels}, 0, DType::f32, device).eval()),
      running_var(full({channels}, 1, DType::f32, device).eval()) {}

Tensor BatchNorm::forward(const Tensor& x) {
  check_channels("BatchNorm", x, weight.size());
  Tensor center = running_mean, spread = running_var;
  if (is_training()) {
    Axes axes;
    for (int axis = 0; axis < x.ndim(); ++axis)
      if (axis != 1) axes.push_back(axis);
    const auto count = static_cast<double>(x.size() / x.size(1));
    if (count < 2) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("BatchNorm: an input of shape {} has one element per channel, which "
                              "has no variance; train with larger batches",
                              x.shape().text()));
    }
    center = mean(x, axes);
    spread = mean(square(x - along_channels(x, center)), axes);
    // The running variance is the unbiased one, as in PyTorch.
    change_with_step(running_mean, (1 - momentum) * running_mean + momentum * center);
    change_with_step(running_var,
                     (1 - momentum) * running_var + momentum * count / (count - 1) * spread);
  }
  const Tensor scale = weight * rsqrt(spread + epsilon);
  return (x - along_channels(x, center)) * along_channels(x, scale) + along_channels(x, bias);
}
std::string BatchNorm::text() const { return fmt::format("BatchNorm({})", weight.size()); }

}  // namespace prism::nn
