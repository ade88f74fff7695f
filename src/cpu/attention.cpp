// Flash-style attention: processes blocks of keys for a few queries of one key/value head at a
// time, keeping running maxima and sums. Long caches with few queries are split over keys, and the
// partial results merged.
#include "cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cpu/attention_rows.h"
#include "cpu/elementwise_parts.h"
#include "cpu/highway_config.h"
#include "cpu/products/matmul_kernels.h"
#include "prism/error.h"
// Highway after its configuration.
#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>

namespace prism::cpu {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
// (Query, head) pairs that share a pass over the keys: enough to amortise transposing the keys, few
// enough for their sums to stay in the L2 cache.
constexpr size_t kRows = 64;
// From this many rows on, transposing a block of keys is cheaper than single dot products.
constexpr size_t kPackRows = 12;
constexpr size_t kKeys = 128;        // per block, for packed products
constexpr size_t kFewKeys = 64;      // per block, for dot products: 32 KB of f32 at dim 128
constexpr size_t kAhead = 12;        // prefetch distance in cache rows
constexpr size_t kLeastSplit = 256;  // keys; below, merging costs more than it gains
// Up to this many queries of a sequence have the results that each has alone, bit for bit, so that
// tokens checked together are those of single steps (llm/generate/speculation.h). Their arithmetic
// depends only on the positions of keys: kernel, blocks and pieces are those of one query.
constexpr size_t kFewQueries = 12;

struct Task {
  const AttentionSpan* span;
  size_t kv_head, first_query, queries;
  size_t first_key, last_key;  // range of keys visible to any of the queries
  size_t first_piece = 0, pieces = 0;
};

// A part of a task's keys. Results of pieces are merged in order.
struct Piece {
  size_t task, first_key, last_key;
};

// The running result of a task's rows: [rows] maxima, [rows] sums, [rows][value_dim] weighted
// values.
struct Partial {
  float *largest, *sums, *values;
  Partial(float* memory, size_t rows)
      : largest(memory), sums(memory + rows), values(memory + 2 * rows) {}
  static size_t elements(size_t rows, size_t dim) { return rows * (dim + 2); }
};

class Worker {
 public:
  Worker(const Attention& options, const float* q, const void* k, const void* v)
      : options_(options),
        q_(q),
        k_(static_cast<const uint8_t*>(k)),
        v_(static_cast<const uint8_t*>(v)),
        kernels_(matmul_kernels<float>()),
        group_(options.heads / options.kv_heads) {}

  size_t rows_of(const Task& task) const { return task.queries * group_; }
  size_t group() const { return group_; }
  bool is_packed(const Task& task) const {
    return (task.queries <= kFewQueries ? group_ : rows_of(task)) >= kPackRows;
  }

  // Accumulates keys [first, last) of a task into `partial`.
  void run(const Task& task, KeyRange keys, Partial partial) {
    const size_t rows = rows_of(task), dim = options_.dim, width = kernels_.columns;
    const size_t value_dim = options_.value_dim;
    const bool packed = is_packed(task);
    const size_t depth_blocks = (dim + kMatmulDepth - 1) / kMatmulDepth;
    const size_t most = packed ? kKeys : kFewKeys;
    const size_t padded_dim = (value_dim + width - 1) / width * width;
    const size_t padded_keys = (kKeys + width - 1) / width * width;
    const size_t q_elements = depth_blocks * rows * kMatmulStride;
    const size_t widest = std::max(dim, value_dim);
    float* q =
        attention_scratch(q_elements + rows * kMatmulStride + (most * widest + 15) / 16 * 16 +
                          std::max(padded_dim * kKeys, padded_keys * std::min(dim, kMatmulDepth)));
    float* scores = q + q_elements;
    float* converted = scores + rows * kMatmulStride;
    float* panels = converted + (most * widest + 15) / 16 * 16;
    std::fill_n(partial.largest, rows, kNothing);
    std::fill_n(partial.sums, rows, 0.0f);
    std::fill_n(partial.values, rows * value_dim, 0.0f);
    gather_queries(task, packed, q);
    for (size_t first = keys.first, count = 0; first < keys.last; first += count) {
      count = std::min(most - first % most, keys.last - first);
      gather(k_, options_.k, dim, task, first, count, converted);
      if (packed) {
        packed_scores(q, rows, converted, count, panels, scores);
      } else {
        // Whole groups of four: the kernel adds the products of single keys in another order.
        const size_t padded_count = (count + 3) / 4 * 4;
        std::fill(converted + count * dim, converted + padded_count * dim, 0.0f);
        kernels_.dots(q, rows, converted, dim, padded_count, dim, scores, kMatmulStride);
      }
      for (size_t row = 0; row < rows; ++row)
        weigh(task, row, first, count, scores + row * kMatmulStride, partial);
      gather(v_, options_.v, value_dim, task, first, count, converted);
      add_values(scores, rows, converted, count, panels, partial.values);
    }
  }

  void finish(const Task& task, Partial partial, float* out) const {
    const size_t dim = options_.value_dim;
    for (size_t row = 0; row < rows_of(task); ++row) {
      const size_t head = task.kv_head * group_ + row % group_;
      float largest = partial.largest[row], sum = partial.sums[row], factor = 1;
      if (options_.sinks) {
        const float with_sink = std::max(largest, options_.sinks[head]);
        factor = std::exp(largest - with_sink);
        sum = sum * factor + std::exp(options_.sinks[head] - with_sink);
      }
      factor = sum == 0 ? 0 : factor / sum;
      const float* values = partial.values + row * dim;
      float* to = out +
                  (task.span->first_row + task.first_query + row / group_) * options_.out_row +
                  head * options_.out_head;
      for (size_t i = 0; i < dim; ++i) to[i] = values[i] * factor;
    }
  }

 private:
  void gather_queries(const Task& task, bool packed, float* q) const {
    const size_t rows = rows_of(task), dim = options_.dim;
    for (size_t row = 0; row < rows; ++row) {
      const size_t query = task.span->first_row + task.first_query + row / group_;
      const float* from =
          q_ + query * options_.q_row + (task.kv_head * group_ + row % group_) * options_.q_head;
      if (!packed) {
        std::copy_n(from, dim, q + row * dim);
        continue;
      }
      for (size_t block = 0, k0 = 0; k0 < dim; ++block, k0 += kMatmulDepth)
        std::copy_n(from + k0, std::min(kMatmulDepth, dim - k0),
                    q + (block * rows + row) * kMatmulStride);
    }
  }

  // Keys or values [count][dim] in f32. f32 caches are copied too: rows a power of two apart would
  // map to the same L1 set.
  void gather(const uint8_t* cache, const Attention::Strides& strides, size_t dim, const Task& task,
              size_t first, size_t count, float* to) const {
    const auto gather_rows = [&](size_t slot, size_t begin, size_t rows, float* into) {
      const uint8_t* from =
          cache + slot * strides.slot + begin * strides.position + task.kv_head * strides.head;
      copy_rows(from, strides.position, dim, rows, into);
    };
    if (!options_.table) return gather_rows(task.span->slot, first, count, to);
    const int32_t* const table = options_.table + task.span->slot * options_.table_row;
    while (count > 0) {
      const size_t within = first % options_.block, part = std::min(count, options_.block - within);
      gather_rows(static_cast<size_t>(table[first / options_.block]), within, part, to);
      first += part;
      count -= part;
      to += part * dim;
    }
  }

  // Rows that are `step` bytes apart.
  void copy_rows(const uint8_t* from, size_t step, size_t dim, size_t count, float* to) const {
    const size_t bytes = options_.cache.row_bytes(dim);
    for (size_t j = 0; j < count; ++j, from += step, to += dim) {
      // Rows of other heads are interleaved, so the hardware prefetcher does not predict the next
      // row.
      for (size_t line = 0; line < bytes; line += 64) hwy::Prefetch(from + kAhead * step + line);
      if (options_.cache == DType::f16)
        f32_from_f16(reinterpret_cast<const uint16_t*>(from), to, dim);
      else if (options_.cache == DType::bf16)
        f32_from_bf16(reinterpret_cast<const uint16_t*>(from), to, dim);
      else if (options_.cache == DType::f32)
        std::memcpy(to, from, dim * sizeof(float));
      else
        f32_from_q8_0(from, to, dim);
    }
  }

  void packed_scores(const float* q, size_t rows, const float* k, size_t count, float* panels,
                     float* scores) const {
    const size_t dim = options_.dim, width = kernels_.columns;
    for (size_t block = 0, k0 = 0; k0 < dim; ++block, k0 += kMatmulDepth) {
      const size_t depth = std::min(kMatmulDepth, dim - k0);
      for (size_t j = 0; j < count; j += width) {
        float* panel = panels + j * depth;
        const size_t columns = std::min(width, count - j);
        if (columns < width) std::fill_n(panel, width * depth, 0.0f);
        kernels_.transpose(k + j * dim + k0, dim, columns, depth, panel, width);
      }
      kernels_.multiply(q + block * rows * kMatmulStride, rows, panels, count, depth, scores,
                        kMatmulStride, block == 0 ? 0.0f : 1.0f);
    }
  }

  void add_values(const float* scores, size_t rows, const float* v, size_t count, float* panels,
                  float* values) const {
    const size_t dim = options_.value_dim, width = kernels_.columns;
    if (dim % width == 0) {
      kernels_.multiply_in_place(scores, rows, v, dim, dim, count, values, dim, 1.0f);
      return;
    }
    std::fill_n(panels + dim / width * width * count, width * count, 0.0f);
    for (size_t j = 0; j < count; ++j)
      for (size_t i = 0; i < dim; i += width)
        std::memcpy(panels + i * count + j * width, v + j * dim + i,
                    std::min(width, dim - i) * sizeof(float));
    kernels_.multiply(scores, rows, panels, dim, count, values, dim, 1.0f);
  }

  // Turns the scores of one row over keys [first, first + count) into weights; 0 for invisible
  // keys.
  void weigh(const Task& task, size_t row, size_t first, size_t count, float* scores,
             Partial partial) const {
    const size_t query = task.first_query + row / group_;
    const KeyRange range = seen_keys(options_, *task.span, query);
    const size_t begin = std::clamp(range.first, first, first + count) - first;
    const size_t end = std::clamp(range.last, first + begin, first + count) - first;
    std::fill(scores, scores + begin, 0.0f);
    std::fill(scores + end, scores + count, 0.0f);
    if (begin == end) return;
    const size_t head = task.kv_head * group_ + row % group_;
    const float* mask = options_.mask
                            ? options_.mask + (task.span->first_row + query) * options_.mask_row +
                                  head * options_.mask_head + first + begin
                            : nullptr;
    float biased[kKeys];
    if (options_.slopes) {
      const auto position = static_cast<float>(task.span->keys - task.span->queries + query);
      const auto start = static_cast<float>(first + begin);
      for (size_t j = 0; j < end - begin; ++j)
        biased[j] = (mask ? mask[j] : 0.0f) -
                    options_.slopes[head] * std::fabs(start + static_cast<float>(j) - position);
      mask = biased;
    }
    const float highest =
        finish_scores(scores + begin, end - begin, options_.scale, options_.soft_cap, mask);
    float& largest = partial.largest[row];
    if (highest > largest) {
      const float factor = std::exp(largest - highest);
      partial.sums[row] *= factor;
      if (partial.sums[row] != 0)
        scale_row(partial.values + row * options_.value_dim, options_.value_dim, factor);
      largest = highest;
    }
    if (largest == kNothing) {  // all keys so far are masked, or the scores are NaN
      for (size_t j = begin; j < end; ++j)
        if (std::isnan(scores[j])) partial.sums[row] = scores[j];
      std::fill(scores + begin, scores + end, 0.0f);
    } else {
      partial.sums[row] += weights_of_scores(scores + begin, end - begin, largest);
    }
  }

  const Attention& options_;
  const float* q_;
  const uint8_t *k_, *v_;
  const MatmulKernels<float> kernels_;
  const size_t group_;
};

// Adds `from` to `into`, row by row.
void merge(Partial into, Partial from, size_t rows, size_t dim) {
  for (size_t row = 0; row < rows; ++row) {
    const float largest = std::max(into.largest[row], from.largest[row]);
    if (largest == kNothing) continue;
    const float a = std::exp(into.largest[row] - largest);
    const float b = std::exp(from.largest[row] - largest);
    into.largest[row] = largest;
    into.sums[row] = into.sums[row] * a + from.sums[row] * b;
    float* x = into.values + row * dim;
    const float* y = from.values + row * dim;
    for (size_t i = 0; i < dim; ++i) x[i] = x[i] * a + y[i] * b;
  }
}

void check(const Attention& o) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, "attention on the CPU: " + what);
  };
  if (o.heads == 0 || o.kv_heads == 0 || o.heads % o.kv_heads != 0)
    refuse(std::to_string(o.heads) + " query heads over " + std::to_string(o.kv_heads) +
           " key/value heads; a multiple is needed");
  const ElementType q8_0 = BlockType::q8_0;
  if (o.cache != DType::f32 && o.cache != DType::f16 && o.cache != DType::bf16 && o.cache != q8_0)
    refuse(std::string("the cache is ") + o.cache.name() + "; use f32, f16, bf16 or q8_0");
  for (const size_t dim : {o.dim, o.value_dim})
    if (dim == 0 || (o.cache == q8_0 && dim % 32 != 0))
      refuse("heads of " + std::to_string(dim) + " elements; q8_0 needs a multiple of 32");
}

}  // namespace

float* attention_scratch(size_t elements) {
  static thread_local hwy::AlignedFreeUniquePtr<float[]> memory;
  static thread_local size_t size = 0;
  if (size < elements) {
    memory = hwy::AllocateAligned<float>(elements);
    size = memory ? elements : 0;
    if (!memory)
      throw Error(ErrorCode::kOutOfMemory,
                  "attention: no memory for " + std::to_string(elements * 4) + " bytes of scratch");
  }
  return memory.get();
}

KeyRange seen_keys(const Attention& options, const AttentionSpan& span, size_t query) {
  const size_t position = span.keys - span.queries + query, window = options.window;
  if (options.chunked) {
    const size_t first = position / window * window;
    return {first, options.causal ? position + 1 : std::min<size_t>(first + window, span.keys)};
  }
  const size_t last = options.causal ? position + 1
                      : window != 0  ? std::min<size_t>(position + window, span.keys)
                                     : span.keys;
  return {window != 0 && position + 1 > window ? position + 1 - window : 0, last};
}

void attention(ThreadPool& pool, const Attention& options, const float* q, const void* k,
               const void* v, const AttentionSpan* spans, size_t sequences, float* out) {
  check(options);
  Worker worker(options, q, k, v);
  const size_t most_queries = std::max<size_t>(1, kRows / worker.group()), dim = options.value_dim;
  std::vector<Task> tasks;
  for (size_t s = 0; s < sequences; ++s) {
    const AttentionSpan& span = spans[s];
    if (span.queries > span.keys && (options.causal || options.window > 0 || options.slopes))
      throw Error(ErrorCode::kInvalidArgument,
                  "attention on the CPU: sequence " + std::to_string(s) + " has " +
                      std::to_string(span.queries) + " queries and " + std::to_string(span.keys) +
                      " keys; the keys must include those of the queries");
    for (size_t head = 0; head < options.kv_heads; ++head)
      for (size_t first = 0; first < span.queries; first += most_queries) {
        const size_t count = std::min<size_t>(most_queries, span.queries - first);
        const KeyRange begin = seen_keys(options, span, first);
        const KeyRange end = seen_keys(options, span, first + count - 1);
        tasks.push_back({&span, head, first, count, begin.first, end.last});
      }
  }
  if (tasks.empty()) return;
  const bool splits = tasks.size() < 2 * pool.threads();  // keys, over threads
  std::vector<Piece> pieces;
  for (size_t t = 0; t < tasks.size(); ++t) {
    Task& task = tasks[t];
    task.first_piece = pieces.size();
    const size_t keys = task.last_key - task.first_key;
    if (task.queries <= kFewQueries) {
      for (size_t first = task.first_key; first < task.last_key;) {
        const size_t last = std::min(task.last_key, (first / kLeastSplit + 1) * kLeastSplit);
        pieces.push_back({t, first, last});
        first = last;
      }
    } else {
      const size_t most = (2 * pool.threads() + tasks.size() - 1) / tasks.size();
      const size_t count = splits ? std::clamp<size_t>(keys / kLeastSplit, 1, most) : 1;
      for (size_t i = 0; i < count; ++i)
        pieces.push_back(
            {t, task.first_key + keys * i / count, task.first_key + keys * (i + 1) / count});
    }
    task.pieces = pieces.size() - task.first_piece;
  }
  size_t rows = 0;
  for (const Task& task : tasks) rows = std::max(rows, worker.rows_of(task));
  const size_t elements = Partial::elements(rows, dim);
  const auto run = [&](const Piece& piece, float* memory) {
    const Task& task = tasks[piece.task];
    const Partial partial(memory, worker.rows_of(task));
    worker.run(task, {piece.first_key, piece.last_key}, partial);
    return partial;
  };
  if (!splits || pieces.size() == tasks.size()) {
    pool.parallel_for(tasks.size(), 1, [&](uint64_t first, uint64_t last) {
      static thread_local std::vector<float> own;
      if (own.size() < 2 * elements) own.resize(2 * elements);
      for (uint64_t t = first; t < last; ++t) {
        const Task& task = tasks[t];
        const Partial into = run(pieces[task.first_piece], own.data());
        for (size_t i = 1; i < task.pieces; ++i)
          merge(into, run(pieces[task.first_piece + i], own.data() + elements),
                worker.rows_of(task), dim);
        worker.finish(task, into, out);
      }
    });
    return;
  }
  std::vector<float> partials(elements * pieces.size());
  pool.parallel_for(pieces.size(), 1, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) run(pieces[i], partials.data() + i * elements);
  });
  for (const Task& task : tasks) {
    const auto partial = [&](size_t i) {
      return Partial(partials.data() + (task.first_piece + i) * elements, worker.rows_of(task));
    };
    for (size_t i = 1; i < task.pieces; ++i)
      merge(partial(0), partial(i), worker.rows_of(task), dim);
    worker.finish(task, partial(0), out);
  }
}

}  // namespace prism::cpu
