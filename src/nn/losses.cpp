// Losses.
#include "prism/nn/losses.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/grad.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"

namespace prism::nn {

namespace {

void check_same(const char* loss, const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: predictions of shape {} and targets of shape {}; both must have one "
                          "shape",
                          loss, a.shape().text(), b.shape().text()));
}

Tensor reduced(const Tensor& values, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return mean(values);
    case Reduction::sum:
      return sum(values);
    case Reduction::none:
      break;
  }
  return values;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options) {
  if (logits.ndim() < 1 || logits.size(-1) == 0 ||
      logits.size() / logits.size(-1) != target.size()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("cross_entropy: scores of shape {} and targets of shape {}; scores need "
                    "the targets' shape and one more axis of classes",
                    logits.shape().text(), target.shape().text()));
  }
  const int64_t classes = logits.size(-1);
  const Tensor rows = logits.reshape({-1, classes}), wanted = target.reshape({-1});
  Tensor each = cross_entropy_rows(rows, wanted, options.ignore_index);
  const Tensor counts = cast(wanted != static_cast<double>(options.ignore_index), each.dtype());
  if (options.label_smoothing > 0) {
    const Tensor spread = -mean(log_softmax(rows), {1}) * counts;
    each = (1 - options.label_smoothing) * each + options.label_smoothing * spread;
  }
  if (options.reduction == Reduction::mean) return sum(each) / sum(counts);
  return options.reduction == Reduction::sum ? sum(each) : each.reshape(target.shape());
}

Tensor chunked_cross_entropy(const Tensor& x, const std::function<Tensor(const Tensor&)>& output,
                             const Tensor& target, const CrossEntropyOptions& options,
                             int64_t rows_at_once) {
  if (x.ndim() < 1 || x.size(-1) == 0 || x.size() / x.size(-1) != target.size())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("chunked_cross_entropy: inputs of shape {} and targets of shape {}; "
                            "inputs need the targets' shape and one more axis",
                            x.shape().text(), target.shape().text()));
  if (rows_at_once < 1)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("chunked_cross_entropy: {} rows at once; give a positive number",
                            rows_at_once));
  const Tensor rows = x.reshape({-1, x.size(-1)}), wanted = target.reshape({-1});
  if (rows.size(0) <= rows_at_once) return cross_entropy(output(rows), target, options);
  CrossEntropyOptions part = options;
  if (part.reduction == Reduction::mean) part.reduction = Reduction::sum;
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < rows.size(0); first += rows_at_once) {
    const int64_t end = std::min(first + rows_at_once, rows.size(0));
    const auto loss = [&](std::span<const Tensor> in) {
      return cross_entropy(output(in[0]), wanted.slice(0, first, end), part);
    };
    parts.push_back(recompute(loss, {rows.slice(0, first, end)}));
  }
  if (options.reduction == Reduction::none) return concat(parts, 0).reshape(target.shape());
  Tensor total = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) total = total + parts[i];
  if (options.reduction == Reduction::sum) return total;
  return total / sum(cast(wanted != static_cast<double>(options.ignore_index), total.dtype()));
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
  check_same("bce_with_logits", logits, target);
  // log(1 + e^x) - t x without overflow.
  return reduced(relu(logits) - logits * target + log1p(exp(-abs(logits))), reduction);
}

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  check_same("mse_loss", prediction, target);
  return reduced(square(prediction - target), reduction);
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  check_same("l1_loss", prediction, target);
  return reduced(abs(prediction - target), reduction);
}

Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta,
                  Reduction reduction) {
  check_same("huber_loss", prediction, target);
  if (!(delta > 0))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("huber_loss: a delta of {}; give a positive number", delta));
  const Tensor distance = abs(prediction - target), near = minimum(distance, delta);
  return reduced(near * (distance - 0.5 * near), reduction);
}

Tensor kl_divergence(const Tensor& log_prediction, const Tensor& target, Reduction reduction) {
  check_same("kl_divergence", log_prediction, target);
  // 0 log 0 is 0.
  const Tensor own = where(target > 0.0, target * log(where(target > 0.0, target, 1.0)), 0.0);
  const Tensor each = own - target * log_prediction;
  if (reduction == Reduction::mean)
    return sum(each) / static_cast<double>(std::max<int64_t>(1, target.size(0)));
  return reduced(each, reduction);
}

Tensor hinge_loss(const Tensor& score, const Tensor& target, Reduction reduction) {
  check_same("hinge_loss", score, target);
  return reduced(relu(1.0 - score * target), reduction);
}

Tensor cosine_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                   Reduction reduction) {
  check_same("cosine_loss", a, b);
  const Tensor lengths = sqrt(sum(square(a), {-1}) * sum(square(b), {-1}));
  const Tensor cosine = sum(a * b, {-1}) / maximum(lengths, 1e-8);
  return reduced(where(target > 0.0, 1.0 - cosine, relu(cosine - margin)), reduction);
}

}  // namespace prism::nn
