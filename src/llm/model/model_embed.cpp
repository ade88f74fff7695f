// Embeds and classifies texts: pools their hidden states and applies what follows in the file.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "llm/model/finite.h"
#include "llm/model/model_state.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/softmax.h"

namespace prism::llm {

namespace {

using Progress = std::function<bool(size_t done, size_t all)>;
using PooledBatch = std::function<std::vector<float>(std::span<const SequencePart> parts)>;

// Runs texts in batches of similar length in the side slots. `work` returns the rows of a batch,
// one for each text and all of the same length.
std::vector<std::vector<float>> in_batches(Model& model,
                                           std::span<const std::vector<int32_t>> texts,
                                           const Progress& progress, const PooledBatch& work) {
  std::vector<std::vector<float>> results(texts.size());
  // Batches of equal lengths have equal numbers of rows, so their plans are reused.
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return texts[i].size(); });
  const SideWork side(model.cache());
  for (size_t done = 0; done < order.size();) {
    std::vector<SequencePart> parts;
    auto left = static_cast<size_t>(model.batch_rows());
    for (const size_t i : std::span(order).subspan(done)) {
      const std::vector<int32_t>& text = texts[i];
      const auto slot = static_cast<int32_t>(model.side_slot() + std::ssize(parts));
      if (std::ssize(parts) == model.cache().side_slots()) break;
      // Without blocks for its first text a batch fails; other texts wait for the next batch.
      const bool has_blocks = model.cache().reserve(slot, 0, static_cast<int64_t>(text.size()));
      if (!parts.empty() && (text.size() > left || !has_blocks)) break;
      parts.push_back({slot, 0, text, Wanted::all});
      left -= std::min(left, text.size());
    }
    const std::vector<float> rows = work(parts);
    const size_t width = rows.size() / parts.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto row = rows.begin() + static_cast<ptrdiff_t>(i * width);
      results[order[done++]].assign(row, row + static_cast<ptrdiff_t>(width));
    }
    side.return_blocks();
    if (progress && !progress(done, order.size()))
      throw Error(ErrorCode::kInvalidArgument, "embed: stopped by its caller");
  }
  return results;
}

Tensor through(const Tensor& rows, const Linear& by) {
  return by ? linear(rows, by.weight, by.bias) : rows;
}

}  // namespace

// The hidden states of a batch. A text longer than a batch is computed in several: the rows of a
// causal model do not depend on later ones.
std::vector<float> Model::State::hidden_rows(std::span<const SequencePart> parts) {
  const auto most = static_cast<size_t>(options.batch_rows);
  const std::span<const int32_t> tokens = parts.front().tokens;
  if (parts.size() > 1 || tokens.size() <= most || !config.is_causal(0))
    return run(parts, Result::hidden).to_vector<float>();
  std::vector<float> rows;
  for (size_t first = 0; first < tokens.size(); first += most) {
    const SequencePart part{parts.front().slot, static_cast<int32_t>(first),
                            tokens.subspan(first, std::min(most, tokens.size() - first)),
                            Wanted::all};
    const std::vector<float> some = run(std::span(&part, 1), Result::hidden).to_vector<float>();
    rows.insert(rows.end(), some.begin(), some.end());
  }
  return rows;
}

std::vector<float> Model::State::pooled(Model& model, std::span<const SequencePart> parts,
                                        Pooling pooling) {
  const auto width = static_cast<size_t>(config.width);
  const std::vector<float> values = hidden_rows(parts);
  std::vector<float> results;
  const float* row = values.data();
  for (const SequencePart& part : parts) {
    const size_t count = part.tokens.size();
    if (!all_finite({row, count * width})) throw not_finite_error(model, part.slot, part.tokens);
    std::vector<float> sum(width);
    if (pooling == Pooling::first || pooling == Pooling::last) {
      const float* from = row + (pooling == Pooling::first ? 0 : (count - 1) * width);
      sum.assign(from, from + width);
    } else {
      for (size_t i = 0; i < count; ++i)
        for (size_t c = 0; c < width; ++c) sum[c] += row[i * width + c] / static_cast<float>(count);
    }
    results.insert(results.end(), sum.begin(), sum.end());
    row += count * width;
  }
  return results;
}

Tensor Model::State::classified(const Tensor& rows) const {
  const HeadWeights& head = weights.head;
  Tensor x = rows;
  if (head.inner) {
    x = through(x, head.inner);
    x = config.head.activation == HeadActivation::gelu   ? gelu(x)
        : config.head.activation == HeadActivation::relu ? relu(x)
                                                         : tanh(x);
  }
  if (head.norm) x = layer_norm(x, head.norm.weight, head.norm.bias, config.norm_epsilon);
  x = through(x, head.out);
  return config.head.softmax ? softmax(x, -1) : x;
}

Tensor Model::State::densified(const Tensor& rows) const {
  Tensor x = rows;
  for (const Linear& each : weights.head.dense) x = through(x, each);
  return x;
}

std::vector<std::vector<float>> Model::embed(std::span<const std::vector<int32_t>> texts,
                                             const Progress& progress) {
  return in_batches(*this, texts, progress, [&](std::span<const SequencePart> parts) {
    std::vector<float> rows = state_->pooled(*this, parts, config().pooling);
    if (state_->weights.head.dense.empty()) return rows;
    const Shape shape = {std::ssize(parts), config().width};
    return state_->densified(from_vector(rows, shape, placement().output)).to_vector<float>();
  });
}

bool Model::makes_logits() const { return static_cast<bool>(state_->weights.output); }

bool Model::classifies() const { return static_cast<bool>(state_->weights.head); }

std::vector<std::vector<float>> Model::classify(std::span<const std::vector<int32_t>> texts,
                                                const Progress& progress) {
  if (!classifies())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("classify: the file of {} has no classification head (cls.weight or "
                            "cls.output.weight); use a model that was trained to rank or classify "
                            "texts, such as bge-reranker-v2-m3",
                            config().name.empty() ? config().architecture : config().name));
  return in_batches(*this, texts, progress, [&](std::span<const SequencePart> parts) {
    const Shape shape = {std::ssize(parts), config().width};
    const Tensor rows =
        from_vector(state_->pooled(*this, parts, config().head.pooling), shape, placement().output);
    return state_->classified(rows).to_vector<float>();
  });
}

}  // namespace prism::llm
