// Scans ranges of rows on a device, each for the queries that want it.
//
// The queries of a range are put side by side, in blocks that read its rows together. A pair is a
// query in a block: it gets results of its own, and the host joins those of each query.
#include <algorithm>
#include <bit>
#include <numeric>

#include "prism/error.h"
#include "prism/ops/index.h"
#include "search/methods/device_rows.h"
#include "search/methods/device_values.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

namespace {

// Pairs of one launch. Each needs 8 KiB on the device for the candidates of its scan.
constexpr uint64_t kMostPairs = 1 << 15;
// The CPU chooses the lists of fewer queries in less time than a launch takes.
constexpr uint64_t kLeastQueries = 64;
constexpr uint32_t kNoQuery = ~uint32_t{0};
constexpr auto kBlock = static_cast<uint64_t>(kSpanQueries);

// What one launch computes.
struct Batch {
  std::vector<uint32_t> queries;  // of each pair; kNoQuery fills blocks
  std::vector<int32_t> spans;     // of each block: first row and end
  uint64_t longest = 0;

  void add_block(const cpu::RowRange& range, uint64_t first) {
    for (uint64_t i = first; i < first + kBlock; ++i)
      queries.push_back(i < range.queries.size() ? range.queries[i] : kNoQuery);
    spans.push_back(static_cast<int32_t>(range.begin));
    spans.push_back(static_cast<int32_t>(range.end));
    longest = std::max(longest, range.end - range.begin);
  }
  // Sizes are powers of two, so that there are few plans.
  void fill_up() {
    queries.resize(std::bit_ceil(queries.size()), kNoQuery);
    spans.resize(queries.size() / kBlock * 2, 0);
    longest = std::bit_ceil(longest);
  }
};

// The parts of the ranges between two rows, as numbers of rows from `first` on.
std::vector<cpu::RowRange> clipped(const std::vector<cpu::RowRange>& ranges, uint64_t first,
                                   uint64_t end) {
  std::vector<cpu::RowRange> all;
  for (const cpu::RowRange& range : ranges) {
    const uint64_t from = std::max(range.begin, first), to = std::min(range.end, end);
    if (from < to) all.push_back({from - first, to - first, range.queries});
  }
  return all;
}

std::vector<Batch> batches(const std::vector<cpu::RowRange>& ranges) {
  std::vector<Batch> all;
  for (const cpu::RowRange& range : ranges)
    for (uint64_t q = 0; q < range.queries.size(); q += kBlock) {
      if (all.empty() || all.back().queries.size() == kMostPairs) all.emplace_back();
      all.back().add_block(range, q);
    }
  for (Batch& each : all) each.fill_up();
  return all;
}

// Results of pairs, and the query of each pair.
struct PairResults {
  std::vector<uint32_t> queries;
  Found found;  // [pairs][each]

  void add(std::span<const uint32_t> more, const Found& results) {
    queries.insert(queries.end(), more.begin(), more.end());
    found.insert(found.end(), results.begin(), results.end());
  }
  // The best `each` of every query.
  Found best(Metric metric, uint64_t query_count, uint64_t each) const {
    std::vector<uint64_t> end(query_count + 1, 0);
    for (const uint32_t query : queries)
      if (query != kNoQuery) ++end[query + 1];
    std::partial_sum(end.begin(), end.end(), end.begin());
    std::vector<uint64_t> next(end.begin(), end.end() - 1), pairs(end.back());
    for (uint64_t i = 0; i < queries.size(); ++i)
      if (queries[i] != kNoQuery) pairs[next[queries[i]]++] = i;
    Found all(query_count * each);
    cpu_pool().parallel_for(query_count, 16, [&](uint64_t first, uint64_t last) {
      Found rows;
      for (uint64_t q = first; q < last; ++q) {
        rows.clear();
        for (uint64_t i = end[q]; i < end[q + 1]; ++i)
          for (uint64_t j = pairs[i] * each; j < (pairs[i] + 1) * each; ++j)
            if (found[j].is_row()) rows.push_back(found[j]);
        const auto count = static_cast<ptrdiff_t>(std::min<uint64_t>(each, rows.size()));
        std::partial_sort(rows.begin(), rows.begin() + count, rows.end(),
                          [&](const cpu::NearRow& a, const cpu::NearRow& b) {
                            return cpu::comes_before(metric, a, b);
                          });
        std::copy_n(rows.begin(), count, all.begin() + static_cast<ptrdiff_t>(q * each));
      }
    });
    return all;
  }
};

Found on_cpu(const Wanted& wanted, const std::vector<cpu::RowRange>& ranges) {
  return cpu::nearest_in(cpu_pool(), wanted.rows, scan_queries(wanted).data(), wanted.query_count(),
                         wanted.candidates(), ranges);
}

}  // namespace

Found DeviceRows::scan_centers(uint64_t identity, const cpu::NearestRows& centers,
                               std::span<const float> queries, uint64_t k) {
  const auto width = static_cast<int64_t>(centers.width);
  const uint64_t count = queries.size() / centers.width;
  if (count < kLeastQueries || k > static_cast<uint64_t>(kMaximumNearest))
    return scan_rows(centers, queries, k);
  const std::scoped_lock lock(mutex_);
  try {
    Tensor& matrix = centers_[identity];
    if (!matrix)
      matrix = from_bytes({centers.data, centers.count * centers.width * sizeof(float)},
                          {static_cast<int64_t>(centers.count), width}, DType::f32, device_)
                   .eval();
    const Tensor asked = upload_values(queries, {static_cast<int64_t>(count), width}, device_);
    const Nearest best = nearest_rows(centers.metric, asked, matrix, static_cast<int64_t>(k));
    return read_results({best.scores, best.indices}, 0);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    return scan_rows(centers, queries, k);
  }
}

Found DeviceRows::scan_ranges(uint64_t identity, const Wanted& wanted,
                              const std::vector<cpu::RowRange>& ranges) {
  const std::scoped_lock lock(mutex_);
  const uint64_t k = wanted.candidates(), rows = wanted.rows.count;
  const Metric metric = wanted.rows.metric;
  used_cpu_ = k > static_cast<uint64_t>(kMaximumNearest);
  if (used_cpu_) return rescored(wanted, on_cpu(wanted, ranges));
  const Resident& resident = upload(identity, false, wanted);
  PairResults results;
  try {
    const Tensor queries = query_tensor(wanted, device_).eval();
    for (const Part& part : resident.parts) {
      const Tensor allowed = wanted.rows.allowed ? allowed_rows(part, wanted).eval() : Tensor();
      for (const Batch& batch : batches(clipped(ranges, part.first, part.first + part.rows))) {
        NearestInputs inputs = inputs_of(metric, part.factors, allowed);
        inputs.spans =
            from_vector(batch.spans, {static_cast<int64_t>(batch.spans.size() / 2), 2}, device_);
        inputs.longest_span = static_cast<int64_t>(batch.longest);
        std::vector<int32_t> chosen;
        for (const uint32_t query : batch.queries)
          chosen.push_back(query == kNoQuery ? 0 : static_cast<int32_t>(query));
        const Tensor gathered = gather_rows(
            queries, from_vector(chosen, {static_cast<int64_t>(chosen.size())}, device_));
        const Nearest best =
            nearest_rows(metric, gathered, part.matrix, static_cast<int64_t>(k), inputs);
        results.add(batch.queries, read_results({best.scores, best.indices}, part.first));
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    used_cpu_ = true;
    return rescored(wanted, on_cpu(wanted, ranges));
  }
  used_cpu_ = resident.rows < rows;
  if (used_cpu_) {
    std::vector<cpu::RowRange> rest = clipped(ranges, resident.rows, rows);
    for (cpu::RowRange& range : rest) {
      range.begin += resident.rows;
      range.end += resident.rows;
    }
    std::vector<uint32_t> all(wanted.query_count());
    std::iota(all.begin(), all.end(), 0);
    results.add(all, on_cpu(wanted, rest));
  }
  return rescored(wanted, results.best(metric, wanted.query_count(), k));
}

}  // namespace prism::search
