// Splits products into tasks: few activation rows use whole dot products over ranges of weight
// rows (with one scale in a lane where there is a kernel for that), many use panels of weight rows
// and tiles of activation rows.
#include "cpu/products/quantised_product.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>

#include "cpu/products/expanded_rows.h"
#include "prism/error.h"

namespace prism::cpu {
namespace {

// Weight bytes per dot-product task: half a microsecond of work.
constexpr uint64_t kTaskBytes = 16 << 10;
// Activation rows per panel task: their results stay in the L2 cache.
constexpr uint64_t kPanelTaskRows = 384;

// Activation rows that use the same weight matrix.
struct Group {
  const uint8_t* weights = nullptr;
  std::vector<uint32_t> x_rows;
  std::vector<float*> y;  // one per x_rows
  PackedActivations packed;
  LaneActivations in_lanes;
  uint64_t tasks = 0, rows_per_task = 0, tiles_per_task = 0;
};

QuantisedKernels::Lanes lanes_of(const QuantisedKernels& kernels, BlockType type) {
  return kernels.lanes ? kernels.lanes[static_cast<int>(type)] : nullptr;
}

uint64_t few_rows_of(const QuantisedKernels& kernels, BlockType type) {
  if (!lanes_of(kernels, type)) return kQuantisedRowsAtOnce;
  return type == BlockType::q8_0 || type == BlockType::iq4_xs ? kMostByteLaneRows : kMostLaneRows;
}

class Product {
 public:
  Product(const QuantisedKernels& kernels, const QuantisedWeights& weights,
          const ActivationsView& x)
      : kernels_(kernels),
        weights_(weights),
        x_(x),
        row_bytes_(weights.row_bytes()),
        read_row_bytes_(is_read_in_place(weights.type) ? row_bytes_
                                                       : x.k / 32 * sizeof(ExpandedBlock)),
        lanes_(lanes_of(kernels, weights.type)),
        few_rows_(few_rows_of(kernels, weights.type)) {}

  bool by_panels(const Group& group) const {
    return kernels_.panel_rows > 0 && group.x_rows.size() > few_rows_;
  }

  // Plans the group's tasks for the pool's number of threads.
  void prepare(ThreadPool& pool, Group& group) const {
    const uint64_t rows = weights_.rows;
    if (by_panels(group)) {
      pack_activations(pool, x_, group.x_rows.data(), group.x_rows.size(), kernels_.tile_rows,
                       quantised_group(weights_.type), kernels_.flip, group.packed);
      group.rows_per_task = kernels_.panel_rows;
      group.tiles_per_task = kPanelTaskRows / kernels_.tile_rows;
    } else {
      const uint64_t share = (rows + pool.threads() - 1) / pool.threads();
      const uint64_t fitting = kTaskBytes / std::max<uint64_t>(row_bytes_, 1);
      group.rows_per_task = std::max<uint64_t>(1, std::min(share, fitting));
      if (lanes_) {
        const auto pack = block_info(weights_.type).elements == 256 ? pack_half_lanes : pack_lanes;
        pack(x_, group.x_rows.data(), group.x_rows.size(), group.in_lanes);
        group.rows_per_task = (group.rows_per_task + 3) / 4 * 4;  // as many as kernels take at once
      }
    }
    group.tasks = ceil_divide(rows, group.rows_per_task) * tile_parts(group);
  }

  void run(const Group& group, uint64_t task) const {
    const uint64_t parts = tile_parts(group);
    const uint64_t first = task / parts * group.rows_per_task;
    run_rows(group, first, std::min(first + group.rows_per_task, weights_.rows), task % parts);
  }

 private:
  static uint64_t ceil_divide(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

  uint64_t tile_parts(const Group& group) const {
    return by_panels(group) ? ceil_divide(group.packed.tiles.size(), group.tiles_per_task) : 1;
  }

  void run_rows(const Group& group, uint64_t first, uint64_t last, uint64_t part) const {
    if (by_panels(group))
      run_panel(group, first, last, part);
    else if (lanes_)
      run_lanes(group, first, last);
    else
      run_dots(group, first, last);
  }

  void run_lanes(const Group& group, uint64_t first, uint64_t last) const {
    const LaneActivations& x = group.in_lanes;
    const ExpandTask how =
        is_read_in_place(weights_.type) ? ExpandTask{} : expand_task(weights_.type, nullptr, 0);
    QuantisedLanesTask task{};
    task.how = &how;
    task.weights = group.weights + first * row_bytes_;
    task.row_bytes = row_bytes_;
    task.rows = last - first;
    task.k = x_.k;
    task.span = x.span;
    const uint64_t count = group.x_rows.size();
    const uint64_t passes = ceil_divide(count, kQuantisedLaneRows);
    for (uint64_t pass = 0; pass < passes; ++pass) {
      const uint64_t begin = pass * count / passes, end = (pass + 1) * count / passes;
      // Kernels exist for few counts: the last row is repeated.
      task.count =
          static_cast<uint32_t>(end - begin <= 4 ? end - begin : (end - begin + 1) / 2 * 2);
      for (uint64_t n = 0; n < task.count; ++n) {
        const uint64_t row = std::min(begin + n, end - 1), lane = row * x.groups * x.lanes;
        task.values[n] = x.values.data() + row * x.groups * 256;
        task.scales[n] = x.scales.data() + lane;
        task.scaled_sums[n] = x.scaled_sums.data() + lane;
        task.negative_sums[n] = x.negative_sums.data() + lane;
        task.y[n] = group.y[row] + first;
      }
      lanes_(task);
    }
  }

  // The rows as kernels read them: those of the file, or copies that live until the next call.
  const void* readable(const Group& group, uint64_t first, uint64_t last) const {
    const uint8_t* rows = group.weights + first * row_bytes_;
    if (is_read_in_place(weights_.type)) return rows;
    thread_local std::vector<ExpandedBlock> expanded;
    expanded.resize((last - first) * (x_.k / 32));
    expand_blocks(kernels_, weights_.type, rows, (last - first) * x_.k, expanded.data());
    return expanded.data();
  }

  void run_dots(const Group& group, uint64_t first, uint64_t last) const {
    QuantisedRowsTask task{};
    const bool expanding = !is_read_in_place(weights_.type) && kernels_.rows_expanding;
    const bool in_place = is_read_in_place(weights_.type) || expanding;
    const ExpandTask how = expanding ? expand_task(weights_.type, nullptr, 0) : ExpandTask{};
    task.row_bytes = in_place ? row_bytes_ : read_row_bytes_;
    task.k = x_.k;
    const bool per_16 = quantised_group(weights_.type) == 16;
    const uint64_t count = group.x_rows.size();
    // With more activation rows than fit into one pass, the passes run one after another while the
    // weights are in cache. Expanded weights stay there, too.
    const uint64_t step =
        count <= kQuantisedRowsAtOnce && in_place
            ? last - first
            : std::max<uint64_t>(1, (16 << 10) / std::max<uint64_t>(read_row_bytes_, 1));
    for (uint64_t row = first; row < last; row += step) {
      task.rows = std::min(step, last - row);
      task.weights =
          in_place ? group.weights + row * row_bytes_ : readable(group, row, row + task.rows);
      for (uint64_t begin = 0; begin < count; begin += kQuantisedRowsAtOnce) {
        task.count = static_cast<uint32_t>(std::min<uint64_t>(kQuantisedRowsAtOnce, count - begin));
        for (uint32_t n = 0; n < task.count; ++n) {
          const uint64_t from = group.x_rows[begin + n];
          task.values[n] = x_.row_values(from);
          task.scales[n] = x_.row_scales(from);
          task.sums[n] = per_16 ? x_.row_sums16(from) : x_.row_sums32(from);
          task.scaled_sums[n] = x_.row_scaled_sums(from);
          task.y[n] = group.y[begin + n] + row;
        }
        if (expanding)
          kernels_.rows_expanding(task, how);
        else
          kernels_.rows[kernel_of(weights_.type)](task);
      }
    }
  }

  void run_panel(const Group& group, uint64_t first, uint64_t last, uint64_t part) const {
    thread_local std::vector<float> memory;
    constexpr uint64_t kAlignment = 64 / sizeof(float);
    memory.resize(kPanelTaskRows * kernels_.panel_rows + kAlignment);
    const auto misaligned = reinterpret_cast<uintptr_t>(memory.data()) / sizeof(float) % kAlignment;
    QuantisedPanelTask task{};
    task.weights = readable(group, first, last);
    task.row_bytes = read_row_bytes_;
    task.rows = last - first;
    task.k = x_.k;
    const uint64_t first_tile = part * group.tiles_per_task;
    task.tiles = group.packed.tiles.data() + first_tile;
    task.tile_count = std::min(group.tiles_per_task, group.packed.tiles.size() - first_tile);
    task.scale_elements = group.packed.scale_elements;
    task.sum_elements = group.packed.sum_elements;
    task.values = group.packed.values.data();
    task.scales = group.packed.scales.data();
    task.sums = group.packed.sums.data();
    task.y = group.y.data();
    task.column = first;
    task.scratch = memory.data() + (kAlignment - misaligned) % kAlignment;
    kernels_.panel[kernel_of(weights_.type)](task);
  }

  const QuantisedKernels& kernels_;
  const QuantisedWeights& weights_;
  const ActivationsView& x_;
  const uint64_t row_bytes_;       // in the file
  const uint64_t read_row_bytes_;  // as kernels read it
  const QuantisedKernels::Lanes lanes_;
  const uint64_t few_rows_;
};

void run_groups(const QuantisedKernels& kernels, ThreadPool& pool, const QuantisedWeights& weights,
                const ActivationsView& x, std::vector<Group>& groups) {
  if (weights.rows == 0) return;
  const Product product(kernels, weights, x);
  std::vector<uint64_t> ends;  // cumulative task counts of the groups
  uint64_t tasks = 0;
  for (Group& group : groups) {
    product.prepare(pool, group);
    ends.push_back(tasks += group.tasks);
  }
  // Guided scheduling: each thread takes a fraction of the remaining tasks. Long runs of
  // neighbouring weights come first, which read faster; short ones at the end keep the threads
  // balanced.
  std::atomic<uint64_t> next{0};
  pool.parallel_for(pool.threads(), 1, [&](uint64_t, uint64_t) {
    for (uint64_t begin = next; begin < tasks;) {
      const uint64_t end = begin + std::max<uint64_t>(1, (tasks - begin) / (2 * pool.threads()));
      if (!next.compare_exchange_weak(begin, end)) continue;
      for (uint64_t task = begin; task < end; ++task) {
        const auto at = std::upper_bound(ends.begin(), ends.end(), task) - ends.begin();
        const Group& group = groups[static_cast<size_t>(at)];
        product.run(group, task - (ends[static_cast<size_t>(at)] - group.tasks));
      }
      begin = next;
    }
  });
}

// Groups reused by each calling thread.
std::vector<Group>& kept_groups(uint64_t count) {
  thread_local std::vector<Group> groups;
  groups.resize(count);
  return groups;
}

QuantisedActivations& kept_activations() {
  thread_local QuantisedActivations activations;
  return activations;
}

void set_all_rows(Group& group, const QuantisedWeights& weights, uint64_t rows, float* y,
                  uint64_t y_stride) {
  group.weights = static_cast<const uint8_t*>(weights.data);
  group.x_rows.resize(rows);
  std::iota(group.x_rows.begin(), group.x_rows.end(), 0u);
  group.y.resize(rows);
  for (uint64_t i = 0; i < rows; ++i) group.y[i] = y + i * y_stride;
}

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "quantised product: " + message);
}

void check_stride(const char* what, uint64_t rows, uint64_t stride, uint64_t length) {
  if (rows > 1 && stride < length) {
    fail(std::string(what) + " has rows of " + std::to_string(length) + " elements only " +
         std::to_string(stride) + " apart; they must not overlap");
  }
}

void check_activations(const QuantisedWeights& weights, const ActivationsView& x) {
  const BlockInfo& info = block_info(weights.type);
  if (x.k != weights.k) {
    fail("activations have rows of " + std::to_string(x.k) + " elements, weights rows of " +
         std::to_string(weights.k));
  }
  if (const uint32_t group = activation_group(weights.type); x.scale_elements != group) {
    fail("activations were quantised in groups of " + std::to_string(x.scale_elements) +
         ", weights of type " + info.name + " need " + std::to_string(group) +
         "; quantise them for this type");
  }
}

}  // namespace

uint64_t few_rows(BlockType type) { return few_rows_of(best_quantised_kernels(), type); }

void quantised_product_with(const QuantisedKernels& kernels, ThreadPool& pool,
                            const QuantisedWeights& weights, const ActivationsView& x, float* y,
                            uint64_t y_stride) {
  check_activations(weights, x);
  check_stride("y", x.rows, y_stride, weights.rows);
  if (x.rows == 0) return;
  std::vector<Group>& groups = kept_groups(1);
  set_all_rows(groups[0], weights, x.rows, y, y_stride);
  run_groups(kernels, pool, weights, x, groups);
}

void quantised_product(ThreadPool& pool, const QuantisedWeights& weights, const ActivationsView& x,
                       float* y, uint64_t y_stride) {
  quantised_product_with(best_quantised_kernels(), pool, weights, x, y, y_stride);
}

void quantised_product(ThreadPool& pool, BlockType type, const void* weights, uint64_t rows,
                       uint64_t k, const float* x, uint64_t x_rows, uint64_t x_stride, float* y,
                       uint64_t y_stride) {
  check_stride("x", x_rows, x_stride, k);
  QuantisedActivations& rounded = kept_activations();
  quantise_activations(pool, type, x, x_rows, k, x_stride, rounded);
  quantised_product(pool, QuantisedWeights{type, weights, rows, k}, rounded, y, y_stride);
}

void quantised_product_rows(const QuantisedWeights& weights, uint64_t first, uint64_t last,
                            const ActivationsView& x, float* y, uint64_t y_stride) {
  if (first > last || last > weights.rows) {
    fail("rows " + std::to_string(first) + " to " + std::to_string(last) + " of " +
         std::to_string(weights.rows));
  }
  static ThreadPool alone(1);
  const QuantisedWeights part{
      weights.type, static_cast<const uint8_t*>(weights.data) + first * weights.row_bytes(),
      last - first, weights.k};
  check_stride("y", x.rows, y_stride, weights.rows);
  quantised_product(alone, part, x, y + first, y_stride);
}

void quantised_expert_product(ThreadPool& pool, BlockType type, const void* weights,
                              uint64_t experts, uint64_t rows, uint64_t k, const float* x,
                              uint64_t x_rows, uint64_t x_stride, uint64_t uses,
                              const int32_t* expert_of, float* y, uint64_t y_stride) {
  check_stride("x", x_rows, x_stride, k);
  QuantisedActivations& rounded = kept_activations();
  quantise_activations(pool, type, x, x_rows, k, x_stride, rounded);
  quantised_expert_product(pool, QuantisedWeights{type, weights, rows, k}, experts, rounded, uses,
                           expert_of, y, y_stride);
}

void quantised_expert_product(ThreadPool& pool, const QuantisedWeights& one, uint64_t experts,
                              const ActivationsView& x, uint64_t uses, const int32_t* expert_of,
                              float* y, uint64_t y_stride) {
  check_activations(one, x);
  check_stride("y", x.rows * uses, y_stride, one.rows);
  std::vector<uint32_t> counts(experts, 0);
  for (uint64_t o = 0; o < x.rows * uses; ++o) {
    if (expert_of[o] < 0 || static_cast<uint64_t>(expert_of[o]) >= experts) {
      fail("row " + std::to_string(o) + " goes to expert " + std::to_string(expert_of[o]) +
           ", there are " + std::to_string(experts));
    }
    ++counts[static_cast<size_t>(expert_of[o])];
  }
  std::vector<uint32_t> group_of(experts, 0);
  uint32_t used = 0;
  for (uint64_t expert = 0; expert < experts; ++expert)
    if (counts[expert] > 0) group_of[expert] = used++;
  std::vector<Group>& groups = kept_groups(used);
  for (Group& group : groups) {
    group.x_rows.clear();
    group.y.clear();
  }
  for (uint64_t o = 0; o < x.rows * uses; ++o) {
    const auto expert = static_cast<uint64_t>(expert_of[o]);
    Group& group = groups[group_of[expert]];
    group.weights = static_cast<const uint8_t*>(one.data) + expert * one.rows * one.row_bytes();
    group.x_rows.push_back(static_cast<uint32_t>(o / uses));
    group.y.push_back(y + o * y_stride);
  }
  run_groups(best_quantised_kernels(), pool, one, x, groups);
}

}  // namespace prism::cpu
