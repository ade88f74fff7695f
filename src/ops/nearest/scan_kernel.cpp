// The first pass of nearest_rows: teams of lanes score rows, and the group keeps the best.
#include <fmt/format.h>

#include "ops/nearest/nearest_kernels.h"
#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kTeams = kNearestGroup / kTeam;
// A team computes this many sums at once, so that after the exchange through shared memory each
// lane holds one total.
constexpr uint32_t kSums = kTeam;
// Between the sums in shared memory: odd, so that a total's parts are in different banks.
constexpr uint32_t kStride = kNearestGroup + 1;

// The list of candidates of one query in this group.
struct Lists {
  Array keys, rows;      // of all groups
  Array lengths, worst;  // shared: entries, and the key that a candidate must be below
  SelectSpace space;
  Value kept, capacity, first;  // first: the start of the group's list of query 0

  Value at(Value query) const { return first + query * group_count(0) * capacity; }

  void add(Value wanted, Value query, Value key, Value row) const {
    if_(wanted && key < worst.load(query), [&] {
      const Value place = at(query) + lengths.atomic_add(query, 1u);
      keys[place] = key;
      rows[place] = row;
    });
  }

  // Drops all but the best `kept` of a list.
  void shorten(Value query) const {
    const Value start = at(query), all = lengths.load(query);
    const Value length = select(all > kept, all, 0u);  // 0: nothing to drop
    barrier();
    const Bound bound = select_bound(space,
                                     {[&](Value i) { return keys.load(start + i); },
                                      [&](Value i) { return rows.load(start + i); }},
                                     length, kept);
    if_(local_id() == 0u && length > 0u, [&] {
      lengths[query] = 0u;
      worst[query] = bound.key;
    });
    barrier();
    // Entries move down only, and never beyond what this round has read.
    for_(0u, capacity, kNearestGroup, [&](Value from) {
      const Value i = from + local_id(), inside = i < length;
      const Value place = start + select(inside, i, 0u);
      const Value key = keys.load(place), row = rows.load(place);
      barrier();
      if_(inside && bound.holds(key, row), [&] {
        const Value to = start + lengths.atomic_add(query, 1u);
        keys[to] = key;
        rows[to] = row;
      });
      barrier();
    });
  }

  void pad(Value query) const {
    const Value start = at(query), length = lengths.load(query);
    for_(length + local_id(), kept, kNearestGroup, [&](Value i) {
      keys[start + i] = constant(u32, kNoKey);
      rows[start + i] = constant(u32, kNoKey);
    });
  }
};

}  // namespace

Value add_term(Metric metric, Value x, Value y, Value sum) {
  if (metric == Metric::hamming) return sum + cast(f32, popcount(x ^ y));
  if (metric != Metric::l2) return fma(x, y, sum);
  const Value apart = x - y;
  return fma(apart, apart, sum);
}

Value scaled_score(Metric metric, Value sum, Value factor) {
  if (metric == Metric::cosine) return select(factor == 0.0f, sum * 0.0f, sum / factor);
  return metric == Metric::dot ? sum * factor : sum;
}

std::string NearestForm::key() const {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", metric_name(metric), dtype_name(type),
                     aligned, has_factors, has_allowed, queries, one_by_one, in_turn, sampled,
                     overflow, has_spans, in_blocks);
}

// Group x: the part of the rows; group y: the block of queries.
ir::Kernel nearest_scan_kernel(const NearestForm& form) {
  return kernel("nearest_scan", kNearestGroup, [&] {
    const bool bits = form.metric == Metric::hamming;
    const In matrix = in("matrix", kernel_type(form.type));
    const In queries = in("queries", bits ? u8 : f32);
    std::optional<In> factors, allowed;
    if (form.has_factors) factors = in("factors", f32);
    if (form.has_allowed) allowed = in("allowed", u32);
    std::optional<In> spans, found;
    if (form.has_spans) spans = in("spans", u32);
    if (form.overflow) found = in("found", u32);
    const Array keys = inout("keys", u32), rows = inout("rows", u32);
    const Value count = param("count", u32), width = param("width", u32),
                units = param("units", u32), part = param("part", u32), kept = param("kept", u32),
                query_count = param("query_count", u32);
    std::optional<Value> room;
    if (form.overflow) room = param("room", u32);
    const uint32_t many = form.queries;
    const Array lengths = shared(u32, many, "lengths"), worst = shared(u32, many, "worst");
    const Value capacity = kept + 2 * kScanPiece, query_first = group_id(1) * many;
    const Lists lists{keys,
                      rows,
                      lengths,
                      worst,
                      SelectSpace(kNearestGroup),
                      kept,
                      capacity,
                      (query_first * group_count(0) + group_id(0)) * capacity};
    const RowUnits reader(form, matrix, width);
    const Value lane = local_id() % kTeam, team = local_id() / kTeam;
    if_(local_id() < many, [&] {
      lengths[local_id()] = 0u;
      worst[local_id()] = constant(u32, kNoKey);
    });
    barrier();

    const uint32_t each = kSums / many, step = kTeams * each;  // rows of a team, of the group
    const Array partial = shared(f32, kSums * kStride, "partial");
    Value begin = group_id(0) * part, last = count;
    if (spans) {
      begin = begin + spans->load(group_id(1) * 2u);
      last = min(count, spans->load(group_id(1) * 2u + 1u));
    }
    Value end = min(begin + part, last);
    if (form.overflow)
      end = select(FilterRoom{*found, *room}.overflows(query_first, many, query_count), end, begin);
    // The last round has no rows; it shortens the lists to their final length.
    for_(begin, end + kScanPiece, kScanPiece, [&](Value piece) {
      for_(piece, min(piece + kScanPiece, end), step, [&](Value base) {
        std::vector<Value> row, scale;
        for (uint32_t r = 0; r < each; ++r) row.push_back(base + r * kTeams + team);
        if (form.metric == Metric::l2 && factors)
          for (uint32_t r = 0; r < each; ++r)
            scale.push_back(factors->load_if(row[r] < end, row[r]));
        std::vector<Var> sums;
        for (uint32_t i = 0; i < kSums; ++i) sums.emplace_back(f32, 0.0f, "sum");
        for_(lane, units, kTeam, [&](Value unit) {
          std::vector<std::vector<Value>> y;
          for (uint32_t r = 0; r < each; ++r) {
            y.push_back(reader.load(row[r] < end, row[r], unit));
            if (!scale.empty())
              for (Value& value : y[r]) value = value * scale[r];
          }
          for (uint32_t q = 0; q < many; ++q) {
            const Value query = min(query_first + q, query_count - 1u);
            const std::vector<Value> x = reader.load_query(queries, query, unit);
            for (uint32_t r = 0; r < each; ++r) {
              Value sum = sums[r * many + q];
              for (size_t i = 0; i < x.size(); ++i) sum = add_term(form.metric, x[i], y[r][i], sum);
              sums[r * many + q] = sum;
            }
          }
        });
        for (uint32_t i = 0; i < kSums; ++i) partial[local_id() + i * kStride] = sums[i];
        barrier();
        // This lane's total: number `lane` of its team.
        Value score = constant(f32, 0.0);
        for (uint32_t i = 0; i < kTeam; ++i)
          score = score + partial.load(lane * kStride + team * kTeam + i);
        barrier();
        const Value query = lane % many, at = base + lane / many * kTeams + team;
        const Value inside = at < end && query_first + query < query_count;
        if (factors && form.metric != Metric::l2)
          score = scaled_score(form.metric, score, factors->load_if(inside, at));
        lists.add(is_allowed(allowed, inside, at), query, nearest_key(score, form.metric), at);
      });
      barrier();
      // The longest list decides for all, so that the whole group agrees.
      const Value longest = group_max(lengths.load(min(local_id(), many - 1u)));
      const Value is_full = longest > select(piece < end, kept + kScanPiece, kept);
      for_(select(is_full, constant(u32, many), constant(u32, 0)),
           [&](Value query) { lists.shorten(query); });
    });
    barrier();
    for_(many, [&](Value query) { lists.pad(query); });
  });
}

}  // namespace prism::ops
