// The later passes of nearest_rows: joins lists, scores candidates again, ranks them.
#include <algorithm>
#include <bit>

#include "ops/nearest/nearest_kernels.h"
#include "ops/rows/sort_pairs.h"
#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

// Group x: the piece; group y: the query. A piece is `lists` lists of `kept` pairs, each `stride`
// pairs after the one before. Writes one list. overflow: does nothing for a query whose filter had
// room.
ir::Kernel nearest_merge_kernel(bool overflow) {
  return kernel("nearest_merge", kNearestGroup, [&] {
    const In keys = in("keys", u32), rows = in("rows", u32);
    std::optional<In> found;
    if (overflow) found = in("found", u32);
    const Array keys_out = out("keys_out", u32), rows_out = out("rows_out", u32);
    const Value all = param("all", u32), lists = param("lists", u32), stride = param("stride", u32),
                kept = param("kept", u32);
    const SelectSpace space(kNearestGroup);
    const Array taken = shared(u32, 1, "taken");
    const Value first = group_id(0) * lists, count = min(lists, all - first) * kept;
    const auto body = [&] {
      const Value start = (group_id(1) * all + first) * stride;
      const auto place = [&](Value i) { return start + i / kept * stride + i % kept; };
      const PairSource pairs{[&](Value i) { return keys[place(i)]; },
                             [&](Value i) { return rows[place(i)]; }};
      if_(local_id() == 0u, [&] { taken[0u] = 0u; });
      const Bound bound = select_bound(space, pairs, count, kept);
      const Value to = (group_id(1) * group_count(0) + group_id(0)) * kept;
      for_(local_id(), count, kNearestGroup, [&](Value i) {
        const Value key = pairs.key(i), row = pairs.row(i);
        if_(key != kNoKey && bound.holds(key, row), [&] {
          const Value at = to + taken.atomic_add(0u, 1u);
          keys_out[at] = key;
          rows_out[at] = row;
        });
      });
      barrier();
      for_(taken.load(0u) + local_id(), kept, kNearestGroup, [&](Value i) {
        keys_out[to + i] = constant(u32, kNoKey);
        rows_out[to + i] = constant(u32, kNoKey);
      });
    };
    if (overflow)
      if_(FilterRoom{*found, param("room", u32)}.overflows(group_id(1), 1, group_count(1)), body);
    else
      body();
  });
}

namespace {

// A sum and its rounding errors.
struct Compensated {
  Var high, low;
  Compensated() : high(f32, 0.0f, "high"), low(f32, 0.0f, "low") {}
  void add(Value value, Value error) {
    const Value before = high, sum = before + value, part = sum - before;
    low += ((before - (sum - part)) + (value - part)) + error;
    high = sum;
  }
  void add_product(Value a, Value b) {
    const Value product = a * b;
    add(product, fma(a, b, -product));
  }
  // The total over the lanes of a team, in all of them. Called by the whole group.
  Value total(const Array& highs, const Array& lows, uint32_t team) {
    highs[local_id()] = high;
    lows[local_id()] = low;
    barrier();
    const Value first = local_id() / team * team;
    Compensated all;
    for_(team, [&](Value i) { all.add(highs.load(first + i), lows.load(first + i)); });
    barrier();
    return Value(all.high) + Value(all.low);
  }
};

}  // namespace

uint32_t rescore_team(int64_t units) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(std::bit_ceil(static_cast<uint64_t>(units) / 4), 8, 32));
}

// Group x: candidates, one for each team of lanes; group y: the query. Writes their keys;
// in_blocks: the candidates are all rows of the blocks of some rows, and they are written, too.
ir::Kernel nearest_rescore_kernel(const NearestForm& form, uint32_t team) {
  return kernel("nearest_rescore", kNearestGroup, [&] {
    const bool bits = form.metric == Metric::hamming, cosine = form.metric == Metric::cosine;
    const In matrix = in("matrix", kernel_type(form.type));
    const In queries = in("queries", bits ? u8 : f32);
    std::optional<In> factors;
    if (form.has_factors) factors = in("factors", f32);
    std::optional<In> allowed, keys;
    if (form.in_blocks && form.has_allowed) allowed = in("allowed", u32);
    if (!form.in_blocks) keys = in("keys", u32);
    const In rows = in("rows", u32);
    const Array keys_out = out("keys_out", u32);
    std::optional<Array> rows_out;
    if (form.in_blocks) rows_out = out("rows_out", u32);
    const Value width = param("width", u32), units = param("units", u32),
                stride = param("stride", u32), kept = param("kept", u32);
    const RowUnits reader(form, matrix, width);
    const Value query = group_id(1), lane = local_id() % team;
    const Value slot = group_id(0) * (kNearestGroup / team) + local_id() / team;
    const Value inside = slot < kept, chosen = select(inside, slot, 0u);
    Value row = rows[form.in_blocks ? chosen / stride : query * stride + chosen], wanted = inside;
    if (form.in_blocks) {
      const Value count = param("count", u32), is_row = row != kNoKey;
      row = row / stride * stride + chosen % stride;
      wanted = is_allowed(allowed, wanted && is_row && row < count, row);
    } else {
      wanted = wanted && keys->load(query * stride + chosen) != kNoKey;
    }
    Value scale = constant(f32, 1.0);
    if (factors) scale = factors->load_if(wanted, row);
    Compensated sum, query_squares;
    for_(lane, units, team, [&](Value unit) {
      const std::vector<Value> y = reader.load(wanted, row, unit);
      const std::vector<Value> x = reader.load_query(queries, query, unit);
      for (size_t i = 0; i < x.size(); ++i) {
        if (bits) {
          sum.add(cast(f32, popcount(x[i] ^ y[i])), constant(f32, 0.0));
        } else if (form.metric == Metric::l2) {
          const Value apart = factors ? fma(-y[i], scale, x[i]) : x[i] - y[i];
          sum.add_product(apart, apart);
        } else {
          sum.add_product(x[i], y[i]);
          if (cosine) query_squares.add_product(x[i], x[i]);
        }
      }
    });
    const Array highs = shared(f32, kNearestGroup, "highs"),
                lows = shared(f32, kNearestGroup, "lows");
    Value score = sum.total(highs, lows, team);
    Value has_score = wanted;
    if (cosine) {
      const Value squares = query_squares.total(highs, lows, team);
      has_score = wanted && squares > 0.0f;
      score = select(scale == 0.0f, score * 0.0f, score / scale / sqrt(squares));
    } else if (factors && form.metric == Metric::dot) {
      score = score * scale;
    }
    if_(lane == 0u && inside, [&] {
      keys_out[query * kept + slot] =
          select(has_score, nearest_key(score, form.metric), constant(u32, kNoKey));
      if (rows_out) (*rows_out)[slot] = row;
    });
  });
}

// Group x: the query. The rank of a candidate is the number of candidates before it.
ir::Kernel nearest_rank_kernel(Metric metric) {
  return kernel("nearest_rank", kNearestGroup, [&] {
    const In keys = in("keys", u32), rows = in("rows", u32);
    const Array scores = out("scores", f32), indices = out("indices", i32);
    const Value stride = param("stride", u32), kept = param("kept", u32), k = param("k", u32);
    const Value query = group_id(0);
    // Candidates without a row come last, in the order of their slots.
    const auto row_at = [&](Value slot, Value key) {
      return select(key == kNoKey, slot, rows[query * stride + slot]);
    };
    for_(local_id(), kept, kNearestGroup, [&](Value slot) {
      const Value key = keys[query * kept + slot], row = row_at(slot, key);
      Var rank(u32, 0u, "rank");
      for_(kept, [&](Value other) {
        const Value other_key = keys[query * kept + other];
        rank += select(comes_before(other_key, row_at(other, other_key), key, row), 1u, 0u);
      });
      const Value at = rank;
      if_(at < k, [&] {
        scores[query * k + at] = score_of_key(key, metric);
        indices[query * k + at] = select(key == kNoKey, constant(i32, -1), bitcast(i32, row));
      });
    });
  });
}

}  // namespace prism::ops
