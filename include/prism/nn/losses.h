// Losses: how far predictions are from targets, as one number to minimise.
#pragma once

#include <cstdint>
#include <functional>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism::nn {

enum class Reduction { mean, sum, none };

struct CrossEntropyOptions {
  double label_smoothing = 0;
  int32_t ignore_index = -100;  // targets with this value do not count
  Reduction reduction = Reduction::mean;
};
// logits [..., classes], target (i32) [...]. The mean is over the targets that count.
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options = {});

// cross_entropy(output(x), target) for many classes: output is called for some rows of x at a time,
// and the gradient computes their scores again, so that memory never holds those of all rows.
// x [..., width], target (i32) [...], output: from [n, width] to [n, classes].
Tensor chunked_cross_entropy(const Tensor& x, const std::function<Tensor(const Tensor&)>& output,
                             const Tensor& target, const CrossEntropyOptions& options = {},
                             int64_t rows_at_once = 1024);

// Both tensors of one shape.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target,
                       Reduction reduction = Reduction::mean);
Tensor mse_loss(const Tensor& prediction, const Tensor& target,
                Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& prediction, const Tensor& target,
               Reduction reduction = Reduction::mean);
// Quadratic up to delta, linear beyond.
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta = 1,
                  Reduction reduction = Reduction::mean);
// target * (log(target) - log_prediction); the mean is over the first axis, as the definition of
// the divergence asks ("batchmean" in PyTorch).
Tensor kl_divergence(const Tensor& log_prediction, const Tensor& target,
                     Reduction reduction = Reduction::mean);
// max(0, 1 - target * score) with targets 1 and -1.
Tensor hinge_loss(const Tensor& score, const Tensor& target, Reduction reduction = Reduction::mean);
// 1 - cosine for pairs with target 1, max(0, cosine - margin) for pairs with target -1. a and b
// [n, width], target [n].
Tensor cosine_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                   Reduction reduction = Reduction::mean);

}  // namespace prism::nn

#pragma GCC visibility pop
