// nearest_rows for one query: finds the best row of each block of rows, then looks only into the
// best blocks.
//
// The k best rows are in the k blocks whose best rows are the best. So one pass over the matrix
// keeps two words for each block, at the speed of the memory: no lane waits for another one's
// sums, and nothing is selected.
#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "ops/nearest/nearest_kernels.h"
#include "ops/products/spread_sums.h"
#include "ops/rows/sort_pairs.h"
#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kSubgroup = 32;
// Elements of the query in the registers of a lane.
constexpr uint32_t kQueryElements = 64;
// Units of rows that a lane loads at once: 32 subgroups of a compute unit have 128 KiB under way
// then.
constexpr uint32_t kUnitsAhead = 8;

// The units of the query that a lane multiplies with those of each row.
std::vector<std::vector<Value>> query_units(const RowUnits& reader, const In& queries,
                                            const BlockCut& cut, Value lane, Value units) {
  std::vector<std::vector<Value>> all;
  for (uint32_t j = 0; j < cut.units; ++j) {
    const Value unit = lane + j * cut.lanes;
    all.push_back(reader.load_query(queries, constant(u32, 0), min(unit, units - 1u)));
    if (cut.is_whole) continue;
    for (Value& x : all.back()) x = select(unit < units, x, constant(x.element(), 0));
  }
  return all;
}

}  // namespace

std::optional<BlockCut> block_cut(const NearestForm& form, uint32_t units) {
  if (!form.aligned || form.has_spans || units == 0) return std::nullopt;
  BlockCut cut;
  const auto each = [&](uint32_t lanes) { return (units + lanes - 1) / lanes; };
  for (const uint32_t lanes : {16u, 8u})
    if (each(lanes) * lanes < each(cut.lanes) * cut.lanes) cut.lanes = lanes;
  cut.units = each(cut.lanes);
  cut.is_whole = cut.units * cut.lanes == units;
  const uint32_t elements = form.metric == Metric::hamming ? 4 : RowUnits::elements(form.type);
  if (cut.units * elements > kQueryElements) return std::nullopt;
  cut.rows = std::clamp(std::bit_floor(kUnitsAhead / cut.units), 1u, 4u);
  return cut;
}

// Each subgroup: a block. Writes its best key and the row of that. No subgroup waits for another.
ir::Kernel nearest_blocks_kernel(const NearestForm& form, const BlockCut& cut) {
  return kernel("nearest_blocks", kNearestGroup, [&] {
    require_subgroup_size(kSubgroup);
    const bool bits = form.metric == Metric::hamming;
    const In matrix = in("matrix", kernel_type(form.type));
    const In queries = in("queries", bits ? u8 : f32);
    std::optional<In> factors, allowed;
    if (form.has_factors) factors = in("factors", f32);
    if (form.has_allowed) allowed = in("allowed", u32);
    const Array keys = out("keys", u32), rows = out("rows", u32);
    const Value count = param("count", u32), width = param("width", u32),
                units = param("units", u32), block = param("block", u32);
    const RowUnits reader(form, matrix, width);
    // Lanes of a row are apart, so that its sums are spread over all of them.
    const uint32_t side_by_side = kSubgroup / cut.lanes;
    const Value beside = subgroup_lane() % side_by_side, lane = subgroup_lane() / side_by_side;
    const Value number = group_id(0) * kBlocksOfGroup + subgroup_id(), first = number * block;
    const uint32_t step = cut.rows_at_once();
    const auto x = query_units(reader, queries, cut, lane, units);
    const auto row_of = [&](Value from, uint32_t r) {
      return first + from + beside + r * side_by_side;
    };
    // The row whose total this lane gets.
    const auto own_row = [&](Value from) {
      return first + from + beside + subgroup_lane() / (kSubgroup / cut.rows) * side_by_side;
    };
    // Memory is read a turn ahead. Rows: their units [rows][units].
    const auto load_row = [&](Value from, uint32_t r) {
      const Value row = row_of(from, r);
      Value wanted = from < block;
      if (allowed) wanted = wanted && is_allowed(allowed, row < count, row);
      std::vector<Value> words;
      for (uint32_t j = 0; j < cut.units; ++j) {
        const Value unit = lane + j * cut.lanes;
        words.push_back(reader.load_words(cut.is_whole ? wanted : wanted && unit < units,
                                          min(row, count - 1u), unit));
      }
      return words;
    };
    std::vector<Var> held;
    for (uint32_t r = 0; r < cut.rows; ++r)
      for (const Value& four : load_row(constant(u32, 0), r)) held.emplace_back(four, "held");
    // Factors, and with a bitmap whether the own row is allowed.
    const bool scales_rows = form.has_factors && form.metric == Metric::l2;
    const auto load_more = [&](Value from) {
      std::vector<Value> words;
      for (uint32_t r = 0; scales_rows && r < cut.rows; ++r)
        words.push_back(factors->load(min(row_of(from, r), count - 1u)));
      const Value own = own_row(from);
      if (factors && !scales_rows) words.push_back(factors->load(min(own, count - 1u)));
      if (allowed)
        words.push_back(select(is_allowed(allowed, own < count, own), constant(u32, 1), 0u));
      return words;
    };
    std::vector<Var> held_more;
    for (const Value& each : load_more(constant(u32, 0))) held_more.emplace_back(each, "held_more");
    const auto sum_of = [&](std::span<const Value> row, const std::optional<Value>& scale) {
      Value sum = constant(f32, 0.0);
      for (uint32_t j = 0; j < cut.units; ++j) {
        const std::vector<Value> elements = reader.elements_of(row[j]);
        for (size_t i = 0; i < elements.size(); ++i)
          sum = add_term(form.metric, x[j][i], scale ? elements[i] * *scale : elements[i], sum);
      }
      return sum;
    };
    Var best_key(u32, kNoKey, "best_key"), best_row(u32, kNoKey, "best_row");
    for_(0u, block, step, [&](Value from) {
      const std::vector<Value> more(held_more.begin(), held_more.end());
      const std::vector<Value> next = load_more(from + step);
      for (size_t i = 0; i < next.size(); ++i) held_more[i] = next[i];
      // Each row gives its registers to the one that follows it.
      std::vector<Value> sums;
      for (uint32_t r = 0; r < cut.rows; ++r) {
        const auto first_held = held.begin() + r * cut.units;
        const std::vector<Value> y(first_held, first_held + cut.units);
        sums.push_back(sum_of(y, scales_rows ? std::optional(more[r]) : std::nullopt));
        const std::vector<Value> words = load_row(from + step, r);
        for (uint32_t j = 0; j < cut.units; ++j) held[r * cut.units + j] = words[j];
      }
      Value score = spread_sums(sums, side_by_side).held[0];
      if (factors && !scales_rows) score = scaled_score(form.metric, score, more[0]);
      const Value own = own_row(from);
      const Value own_allowed = allowed ? more.back() != 0u : own < count;
      const Value key = select(own_allowed, nearest_key(score, form.metric), constant(u32, kNoKey));
      const Value is_better = key < Value(best_key);  // rows of a lane come in their order
      best_row = select(is_better, own, best_row);
      best_key = select(is_better, key, best_key);
    });
    const Value key = subgroup_reduce(ReduceOp::min, best_key);
    const Value is_best = Value(best_key) == key;
    const Value row =
        subgroup_reduce(ReduceOp::min, select(is_best, best_row, constant(u32, kNoKey)));
    if_(subgroup_lane() == 0u && first < count, [&] {
      keys[number] = key;
      rows[number] = row;
    });
  });
}

// One group. Writes the best rows of the `kept` best blocks; kNoKey for blocks without a row.
ir::Kernel nearest_pick_kernel(uint32_t lanes, uint32_t held) {
  return kernel("nearest_pick", lanes, [&] {
    const In keys = in("keys", u32), rows = in("rows", u32);
    const Array picked = out("picked", u32);
    const Value count = param("count", u32), kept = param("kept", u32);
    const SelectSpace space(lanes);
    const Array taken = shared(u32, 1, "taken");
    if_(local_id() == 0u, [&] { taken[0u] = 0u; });
    const PairSource pairs = held_pairs(keys, rows, lanes, held, count);
    const Bound bound = select_bound(space, pairs, count, kept);
    for_each_pair(pairs, lanes, count, [&](Value i, Value key) {
      if_(key != kNoKey && key <= bound.key, [&] {
        const Value row = rows[i];
        if_(bound.holds(key, row), [&] { picked[taken.atomic_add(0u, 1u)] = row; });
      });
    });
    barrier();
    for_(taken.load(0u) + local_id(), kept, lanes,
         [&](Value i) { picked[i] = constant(u32, kNoKey); });
  });
}

// One group. Writes the k best of `count` pairs in order; `room` is at least k.
ir::Kernel nearest_best_kernel(Metric metric, uint32_t lanes, uint32_t held, uint32_t room) {
  return kernel("nearest_best", lanes, [&] {
    const In keys = in("keys", u32), rows = in("rows", u32);
    const Array scores = out("scores", f32), indices = out("indices", i32);
    const Value count = param("count", u32), k = param("k", u32);
    const SelectSpace space(lanes);
    const Array taken = shared(u32, 1, "taken"), best_keys = shared(u32, room, "best_keys"),
                best_rows = shared(u32, room, "best_rows");
    if_(local_id() == 0u, [&] { taken[0u] = 0u; });
    const PairSource pairs = held_pairs(keys, rows, lanes, held, count);
    const Bound bound = select_bound(space, pairs, count, k);
    for_each_pair(pairs, lanes, count, [&](Value i, Value key) {
      if_(key != kNoKey && key <= bound.key, [&] {
        const Value row = rows[i];
        if_(bound.holds(key, row), [&] {
          const Value at = taken.atomic_add(0u, 1u);
          best_keys[at] = key;
          best_rows[at] = row;
        });
      });
    });
    barrier();
    const Value found = taken.load(0u);
    // The rank of a row is the number of rows before it.
    for_(local_id(), found, lanes, [&](Value i) {
      const Value key = best_keys.load(i), row = best_rows.load(i);
      Var rank(u32, 0u, "rank");
      for_(found, [&](Value other) {
        const Value is_before =
            comes_before(best_keys.load(other), best_rows.load(other), key, row);
        rank += select(is_before, 1u, 0u);
      });
      const Value at = rank;
      scores[at] = score_of_key(key, metric);
      indices[at] = bitcast(i32, row);
    });
    for_(found + local_id(), k, lanes, [&](Value i) {
      scores[i] = score_of_key(constant(u32, kNoKey), metric);
      indices[i] = constant(i32, -1);
    });
  });
}

}  // namespace prism::ops
