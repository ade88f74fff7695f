// Flash-style gradient of attention: a thread owns all heads that share a key/value head of one
// sequence, and walks blocks of queries and keys.
#include "cpu/attention_gradient.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "cpu/attention_rows.h"
#include "cpu/products/matmul_kernels.h"
#include "cpu/rows.h"

namespace prism::cpu {
namespace {

static_assert(kMaxGradientDim <= kMatmulDepth);

// Queries and keys of a block: its scores and their slopes take 2 x 25 KB in the L2 cache. A
// multiple of every panel width.
constexpr size_t kBlock = 64;

size_t padded(size_t n, size_t width) { return (n + width - 1) / width * width; }

class Worker {
 public:
  Worker(const Attention& options, const AttentionGradient& data)
      : options_(options),
        data_(data),
        kernels_(matmul_kernels<float>()),
        width_(kernels_.columns),
        group_(options.heads / options.kv_heads),
        dim_(padded(options.dim, width_)),
        value_dim_(padded(options.value_dim, width_)),
        keys_(padded(data.keys, kBlock)) {}

  // The gradients of one key/value head and of the query heads that share it.
  void run(size_t sequence, size_t kv_head) {
    float* next = attention_scratch(3 * keys_ * (dim_ + value_dim_) + 5 * kBlock * kMatmulStride +
                                    kBlock * (2 * dim_ + value_dim_ + 2));
    const auto take = [&next](size_t elements) { return std::exchange(next, next + elements); };
    k_ = take(keys_ * dim_);
    v_ = take(keys_ * value_dim_);
    turned_k_ = take(keys_ * dim_);
    turned_v_ = take(keys_ * value_dim_);
    k_slopes_ = take(keys_ * dim_);
    v_slopes_ = take(keys_ * value_dim_);
    packed_q_ = take(kBlock * kMatmulStride);
    packed_slopes_ = take(kBlock * kMatmulStride);
    weights_ = take(kBlock * kMatmulStride);
    score_slopes_ = take(kBlock * kMatmulStride);
    turned_ = take(kBlock * kMatmulStride);
    q_ = take(kBlock * dim_);
    out_slopes_ = take(kBlock * value_dim_);
    q_slopes_ = take(kBlock * dim_);
    shifts_ = take(kBlock);
    totals_ = take(kBlock);
    load_keys(sequence, kv_head);
    for (size_t head = kv_head * group_; head < (kv_head + 1) * group_; ++head)
      for (size_t first = 0; first < data_.queries; first += kBlock)
        add_queries(sequence, head, first, std::min(kBlock, data_.queries - first));
    const size_t row = sequence * data_.keys * options_.kv_heads + kv_head;
    store_rows(k_slopes_, dim_, data_.keys, options_.dim, data_.k_gradient + row * options_.dim,
               options_.kv_heads * options_.dim);
    store_rows(v_slopes_, value_dim_, data_.keys, options_.value_dim,
               data_.v_gradient + row * options_.value_dim, options_.kv_heads * options_.value_dim);
  }

 private:
  // Rows with a stride in elements, padded with zeros to whole panels.
  static void load_rows(const float* from, size_t stride, size_t rows, size_t columns, float* to,
                        size_t to_stride) {
    for (size_t i = 0; i < rows; ++i, from += stride, to += to_stride) {
      std::memcpy(to, from, columns * sizeof(float));
      std::fill(to + columns, to + to_stride, 0.0f);
    }
  }
  static void store_rows(const float* from, size_t from_stride, size_t rows, size_t columns,
                         float* to, size_t stride) {
    for (size_t i = 0; i < rows; ++i)
      std::memcpy(to + i * stride, from + i * from_stride, columns * sizeof(float));
  }

  // Keys and values as rows, and transposed into panels for products with q and the slopes of out.
  void load_keys(size_t sequence, size_t kv_head) {
    const auto load = [&](const float* from, const Attention::Strides& strides, size_t columns,
                          size_t to_stride, float* rows, float* panels) {
      from += (sequence * strides.slot + kv_head * strides.head) / sizeof(float);
      load_rows(from, strides.position / sizeof(float), data_.keys, columns, rows, to_stride);
      std::fill(rows + data_.keys * to_stride, rows + keys_ * to_stride, 0.0f);
      for (size_t j = 0; j < keys_; j += width_)
        kernels_.transpose(rows + j * to_stride, to_stride, width_, columns, panels + j * columns,
                           width_);
    };
    load(data_.k, options_.k, options_.dim, dim_, k_, turned_k_);
    load(data_.v, options_.v, options_.value_dim, value_dim_, v_, turned_v_);
    std::fill_n(k_slopes_, keys_ * dim_, 0.0f);
    std::fill_n(v_slopes_, keys_ * value_dim_, 0.0f);
  }

  void add_queries(size_t sequence, size_t head, size_t first, size_t rows) {
    const size_t row = sequence * data_.queries + first, dim = options_.dim,
                 value_dim = options_.value_dim;
    const float* q = data_.q + row * options_.q_row + head * options_.q_head;
    load_rows(q, options_.q_row, rows, dim, q_, dim_);
    load_rows(data_.out_gradient + row * data_.gradient_row + head * data_.gradient_head,
              data_.gradient_row, rows, value_dim, out_slopes_, value_dim_);
    for (size_t i = 0; i < rows; ++i) {
      std::memcpy(packed_q_ + i * kMatmulStride, q_ + i * dim_, dim * sizeof(float));
      std::memcpy(packed_slopes_ + i * kMatmulStride, out_slopes_ + i * value_dim_,
                  value_dim * sizeof(float));
    }
    std::fill_n(q_slopes_, rows * dim_, 0.0f);
    const AttentionSpan span{0, static_cast<uint32_t>(data_.queries),
                             static_cast<uint32_t>(data_.keys), 0};
    for (size_t i = 0; i < rows; ++i) seen_[i] = seen_keys(options_, span, first + i);
    const size_t begin = seen_[0].first / kBlock * kBlock, end = seen_[rows - 1].last;
    find_shifts(begin, end, rows);
    // The scores of a single block are still there, and it has all terms of the totals.
    const bool single = end - begin <= kBlock;
    const float* out = data_.out + row * options_.out_row + head * options_.out_head;
    for (size_t i = 0; i < rows && !single; ++i)
      totals_[i] = static_cast<float>(
          row_dot(out + i * options_.out_row, out_slopes_ + i * value_dim_, value_dim));
    for (size_t key = begin; key < end; key += kBlock) {
      if (!single) scores_of(key, rows);
      add_keys(key, std::min(kBlock, end - key), rows, single);
    }
    store_rows(q_slopes_, dim_, rows, dim, data_.q_gradient + (row * options_.heads + head) * dim,
               options_.heads * dim);
  }

  void scores_of(size_t key, size_t rows) {
    kernels_.multiply(packed_q_, rows, turned_k_ + key * options_.dim, kBlock, options_.dim,
                      weights_, kMatmulStride, 0.0f);
  }

  // The part of a block from key on that a row sees.
  KeyRange seen_of(size_t row, size_t key) const {
    const size_t first = std::clamp(seen_[row].first, key, key + kBlock) - key;
    return {first, std::clamp(seen_[row].last, key + first, key + kBlock) - key};
  }

  // Sets the elements of keys that a row does not see. Whole blocks are faster than parts of them.
  static void hide(KeyRange seen, float value, float* row) {
    std::fill(row, row + seen.first, value);
    std::fill(row + seen.last, row + kBlock, value);
  }
  // A score that gets no weight.
  float hidden_score() const {
    return std::copysign(std::numeric_limits<float>::infinity(), -options_.scale);
  }

  // The logarithm of each row's softmax denominator, from a pass over the scores.
  void find_shifts(size_t begin, size_t end, size_t rows) {
    float largest[kBlock], sums[kBlock];
    alignas(64) float copy[kBlock];
    std::fill_n(largest, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sums, rows, 0.0f);
    for (size_t key = begin; key < end; key += kBlock) {
      scores_of(key, rows);
      for (size_t i = 0; i < rows; ++i) {
        const KeyRange range = seen_of(i, key);
        if (range.first == range.last) continue;
        std::copy_n(weights_ + i * kMatmulStride, kBlock, copy);
        hide(range, hidden_score(), copy);
        const float highest =
            std::max(largest[i], finish_scores(copy, kBlock, options_.scale, 0, nullptr));
        sums[i] *= std::exp(largest[i] - highest);
        largest[i] = highest;
        sums[i] += weights_of_scores(copy, kBlock, highest);
      }
    }
    for (size_t i = 0; i < rows; ++i) shifts_[i] = largest[i] + std::log(sums[i]);
  }

  // Adds what a block of keys contributes; weights_ has its scores.
  void add_keys(size_t key, size_t count, size_t rows, bool single) {
    kernels_.multiply(packed_slopes_, rows, turned_v_ + key * options_.value_dim, kBlock,
                      options_.value_dim, score_slopes_, kMatmulStride, 0.0f);
    for (size_t i = 0; i < rows; ++i) {
      float* weights = weights_ + i * kMatmulStride;
      float* slopes = score_slopes_ + i * kMatmulStride;
      const KeyRange range = seen_of(i, key);
      hide(range, hidden_score(), weights);
      finish_scores(weights, kBlock, options_.scale, 0, nullptr);
      weights_of_scores(weights, kBlock, shifts_[i]);
      hide(range, 0, slopes);
      if (single) totals_[i] = static_cast<float>(row_dot(weights, slopes, kBlock));
      slopes_of_scores(weights, slopes, kBlock, totals_[i], options_.scale);
    }
    kernels_.multiply_in_place(score_slopes_, rows, k_ + key * dim_, dim_, dim_, count, q_slopes_,
                               dim_, 1.0f);
    kernels_.transpose(weights_, kMatmulStride, rows, count, turned_, kMatmulStride);
    kernels_.multiply_in_place(turned_, count, out_slopes_, value_dim_, value_dim_, rows,
                               v_slopes_ + key * value_dim_, value_dim_, 1.0f);
    kernels_.transpose(score_slopes_, kMatmulStride, rows, count, turned_, kMatmulStride);
    kernels_.multiply_in_place(turned_, count, q_, dim_, dim_, rows, k_slopes_ + key * dim_, dim_,
                               1.0f);
  }

  const Attention& options_;
  const AttentionGradient& data_;
  const MatmulKernels<float> kernels_;
  const size_t width_, group_;
  const size_t dim_, value_dim_, keys_;  // padded
  // Rows of keys and values, the same transposed into panels, and their gradients.
  float *k_ = nullptr, *v_ = nullptr, *turned_k_ = nullptr, *turned_v_ = nullptr;
  float *k_slopes_ = nullptr, *v_slopes_ = nullptr;
  // A block of queries and of the gradient of out, as rows and as the left side of products.
  float *q_ = nullptr, *out_slopes_ = nullptr, *packed_q_ = nullptr, *packed_slopes_ = nullptr;
  float* q_slopes_ = nullptr;
  float *weights_ = nullptr, *score_slopes_ = nullptr;  // of a block: [queries][keys]
  float* turned_ = nullptr;                             // one of them, transposed
  float* shifts_ = nullptr;                             // a weight is exp(scale * score - shift)
  float* totals_ = nullptr;  // the sum of weight times slope of a row; also out . its gradient
  KeyRange seen_[kBlock] = {};
};

}  // namespace

void attention_gradient(ThreadPool& pool, const Attention& options, const AttentionGradient& data) {
  pool.parallel_for(data.sequences * options.kv_heads, 1, [&](uint64_t first, uint64_t last) {
    Worker worker(options, data);
    for (uint64_t i = first; i < last; ++i) worker.run(i / options.kv_heads, i % options.kv_heads);
  });
}

}  // namespace prism::cpu
