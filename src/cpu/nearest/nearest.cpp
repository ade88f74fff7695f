// Walks the rows in tiles, keeps candidates for each query and ranks them by their exact scores.
#include "cpu/nearest/nearest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "cpu/nearest/keeper.h"
#include "cpu/nearest/score_tile.h"

namespace prism::cpu {
namespace {

// More candidates than asked for, because f32 sums in another order than the exact ones can swap
// neighbours: rows whose exact scores are closer than about 1e-7 of the vectors' lengths.
uint64_t candidates_for(uint64_t k) { return k + 16 + k / 16; }

// 128 KB: half of a small L2 cache. All queries of a block read a tile while it is there.
constexpr uint64_t kTileBytes = 128 << 10;
constexpr uint64_t kQueryBlock = 64;
constexpr uint64_t kRangeLocks = 1024;

float sign_of(Metric metric) { return is_distance(metric) ? -1.0f : 1.0f; }

uint64_t query_bytes(const NearestRows& rows) {
  return rows.width * (rows.metric == Metric::hamming ? 1 : sizeof(float));
}
const std::byte* query_at(const NearestRows& rows, const void* queries, uint64_t q) {
  return static_cast<const std::byte*>(queries) + q * query_bytes(rows);
}

// Scores parts of the matrix for a block of queries.
class Scan {
 public:
  Scan(const NearestRows& rows, const void* queries, uint64_t query_count)
      : rows_(rows),
        queries_(queries),
        query_count_(query_count),
        scores_(query_count * kTileRows),
        weights_(kTileRows) {}

  // Calls use(q, first row, scores, count): a row that is not allowed has the score NaN.
  template <class Use>
  void run(uint64_t begin, uint64_t end, const Use& use) {
    const uint64_t bytes = std::max<uint64_t>(1, rows_.width * dtype_bytes(rows_.type));
    const uint64_t step = std::clamp<uint64_t>(kTileBytes / bytes / 32 * 32, 32, kTileRows);
    for (uint64_t first = begin; first < end;) {
      // Tiles end at multiples of 32, so that words of the bitmap are not shared between them.
      const uint64_t count = std::min((first + step) / 32 * 32, end) - first;
      const uint64_t allowed = count_allowed(first, count);
      if (allowed > 0) score(first, count, allowed, use);
      first += count;
    }
  }

 private:
  uint64_t count_allowed(uint64_t first, uint64_t count) const {
    if (!rows_.allowed) return count;
    uint64_t sum = 0;
    for (uint64_t r = first; r < first + count;) {
      const bool whole = r % 32 == 0 && r + 32 <= first + count;
      sum += whole ? static_cast<uint64_t>(std::popcount(rows_.allowed[r / 32])) : rows_.allows(r);
      r += whole ? 32 : 1;
    }
    return sum;
  }

  template <class Use>
  void score(uint64_t first, uint64_t count, uint64_t allowed, const Use& use) {
    // Few allowed rows are scored one by one; a tile of all rows costs about as much as a quarter
    // of its rows alone.
    if (allowed * 4 >= count) {
      score_part(first, count, 0);
    } else {
      for (uint64_t r = 0; r < count; ++r)
        if (rows_.allows(first + r)) score_part(first + r, 1, r);
    }
    weigh(first, count);
    for (uint64_t q = 0; q < query_count_; ++q) {
      float* const scores = scores_.data() + q * kTileRows;
      if (has_weights_)
        for (uint64_t r = 0; r < count; ++r) scores[r] *= weights_[r];
      use(q, first, scores, count);
    }
  }

  void score_part(uint64_t first, uint64_t count, uint64_t at) {
    const std::byte* const data = rows_.row(first);
    if (rows_.metric == Metric::hamming)
      return hamming_tile(static_cast<const uint8_t*>(queries_), query_count_,
                          reinterpret_cast<const uint8_t*>(data), count, rows_.width,
                          scores_.data() + at);
    score_tile(rows_.metric == Metric::l2, rows_.type, static_cast<const float*>(queries_),
               query_count_, data, rows_.scales ? rows_.scales + first : nullptr, count,
               rows_.width, scores_.data() + at);
    if (rows_.metric == Metric::cosine && !rows_.norms)
      square_tile(rows_.type, data, count, rows_.width, weights_.data() + at);
  }

  // The factor of each score: the inverse length of the row, its scale, or NaN if not allowed.
  void weigh(uint64_t first, uint64_t count) {
    const bool cosine = rows_.metric == Metric::cosine;
    const bool scaled = rows_.metric == Metric::dot && rows_.scales;
    has_weights_ = cosine || scaled || rows_.allowed;
    if (!has_weights_) return;
    for (uint64_t r = 0; r < count; ++r) {
      float weight = 1;
      if (cosine) {
        const float length = rows_.norms ? rows_.norms[first + r] : std::sqrt(weights_[r]);
        weight = length == 0 ? 0 : 1 / length;
      } else if (scaled) {
        weight = rows_.scales[first + r];
      }
      weights_[r] = rows_.allows(first + r) ? weight : std::numeric_limits<float>::quiet_NaN();
    }
  }

  const NearestRows& rows_;
  const void* queries_;
  uint64_t query_count_;
  std::vector<float> scores_, weights_;
  bool has_weights_ = false;
};

double length_of(const NearestRows& rows, const void* query) {
  const auto* x = static_cast<const float*>(query);
  return rows.metric == Metric::cosine
             ? std::sqrt(exact_sum(ExactSum::squares, DType::f32, x, x, 1, rows.width))
             : 1;
}

float exact(const NearestRows& rows, const void* query, double query_length, uint64_t row) {
  if (rows.metric == Metric::hamming) {
    std::vector<float> out(1);
    hamming_tile(static_cast<const uint8_t*>(query), 1,
                 reinterpret_cast<const uint8_t*>(rows.row(row)), 1, rows.width, out.data());
    return out[0];
  }
  const bool cosine = rows.metric == Metric::cosine;
  const double scale = rows.scales && !cosine ? static_cast<double>(rows.scales[row]) : 1.0;
  const auto sum = [&](ExactSum which) {
    return exact_sum(which, rows.type, static_cast<const float*>(query), rows.row(row), scale,
                     rows.width);
  };
  if (rows.metric == Metric::l2) return static_cast<float>(sum(ExactSum::difference));
  const double product = sum(ExactSum::product);
  if (!cosine) return static_cast<float>(product);
  if (query_length == 0) return std::numeric_limits<float>::quiet_NaN();
  const double length =
      rows.norms ? static_cast<double>(rows.norms[row]) : std::sqrt(sum(ExactSum::squares));
  return static_cast<float>(length == 0 ? product * 0 : product / length / query_length);
}

// Parts of the rows that threads take in turn. Every part begins at a multiple of 32.
struct Parts {
  uint64_t each, count;
  Parts(const NearestRows& rows, uint64_t threads) {
    const uint64_t wanted = threads == 1 ? 1 : threads * 4;
    each = std::max<uint64_t>(1024, (rows.count / wanted + 32) / 32 * 32);
    count = (rows.count + each - 1) / each;
  }
};

// The key above which an exact score can be: f32 sums of the scan are within 1e-5 of the exact
// ones, relative to the score, or for cosine to the lengths. Keys of cosines are not divided by the
// query's length.
float loosened_key(Metric metric, float score, double query_length) {
  const double key = static_cast<double>(sign_of(metric) * score) * query_length;
  const double size = std::abs(key) + (metric == Metric::cosine ? query_length : 0);
  return std::nextafter(static_cast<float>(key - 1e-5 * size),
                        -std::numeric_limits<float>::infinity());
}

std::vector<uint64_t> rows_above(ThreadPool& pool, const NearestRows& rows, const void* query,
                                 float threshold) {
  const float sign = sign_of(rows.metric);
  const Parts parts(rows, pool.threads());
  std::vector<std::vector<uint64_t>> found(parts.count);
  pool.parallel_for(parts.count, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t part = begin; part < end; ++part) {
      Scan scan(rows, query, 1);
      uint32_t indices[kTileRows];
      scan.run(part * parts.each, std::min(rows.count, (part + 1) * parts.each),
               [&](uint64_t, uint64_t first, const float* scores, uint64_t count) {
                 const size_t above = indices_above(scores, sign, count, threshold, indices);
                 for (size_t i = 0; i < above; ++i) found[part].push_back(first + indices[i]);
               });
    }
  });
  std::vector<uint64_t> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The best k of the candidates, whose keys of the scan are `worst` or better. If other rows may be
// as good, because more than the spare candidates tie with the last, they are scored too.
std::vector<NearRow> best_of(ThreadPool& pool, const NearestRows& rows, const void* query,
                             const std::vector<uint64_t>& candidates, float worst, uint64_t k) {
  std::vector<NearRow> best = rank_rows(rows, query, candidates);
  if (best.size() < k || candidates.size() < candidates_for(k)) return best;
  const float bound = loosened_key(rows.metric, best[k - 1].score, length_of(rows, query));
  if (worst > bound) best = rank_rows(rows, query, rows_above(pool, rows, query, bound));
  return best;
}

// Keeps the best of the rows in [begin, end) for each query; entries count from `begin`.
void scan_into(const NearestRows& rows, const void* queries, uint64_t query_count, uint64_t begin,
               uint64_t end, float sign, Keeper* keepers) {
  Scan scan(rows, queries, query_count);
  uint32_t indices[kTileRows];
  scan.run(begin, end, [&](uint64_t q, uint64_t first, const float* scores, uint64_t count) {
    const size_t found = indices_above(scores, sign, count, keepers[q].threshold(), indices);
    for (size_t i = 0; i < found; ++i)
      keepers[q].add(scores[indices[i]] * sign, static_cast<uint32_t>(first - begin + indices[i]));
  });
}

void best_of_block(ThreadPool& pool, const NearestRows& rows, const void* queries,
                   uint64_t query_count, uint64_t k, NearRow* out) {
  const uint64_t wanted = candidates_for(k);
  const float sign = sign_of(rows.metric);
  const Parts parts(rows, pool.threads());
  std::vector<Keeper> keepers(parts.count * query_count, Keeper(wanted));
  pool.parallel_for(parts.count, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t part = begin; part < end; ++part) {
      const uint64_t start = part * parts.each;
      scan_into(rows, queries, query_count, start, std::min(rows.count, start + parts.each), sign,
                keepers.data() + part * query_count);
    }
  });
  pool.parallel_for(query_count, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t q = begin; q < end; ++q) {
      std::vector<std::pair<float, uint64_t>> all;  // by descending key, then by row
      for (uint64_t part = 0; part < parts.count; ++part)
        for (const Keeper::Entry& entry : keepers[part * query_count + q].finish())
          all.emplace_back(-entry.key, part * parts.each + entry.row);
      const size_t kept = std::min<size_t>(wanted, all.size());
      std::nth_element(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept), all.end());
      std::vector<uint64_t> candidates(kept);
      float worst = std::numeric_limits<float>::infinity();
      for (size_t i = 0; i < kept; ++i) {
        candidates[i] = all[i].second;
        worst = std::min(worst, -all[i].first);
      }
      const std::vector<NearRow> best =
          best_of(pool, rows, query_at(rows, queries, q), candidates, worst, k);
      std::copy_n(best.begin(), std::min<size_t>(k, best.size()), out + q * k);
    }
  });
}

}  // namespace

std::vector<NearRow> rank_rows(const NearestRows& rows, const void* query,
                               const std::vector<uint64_t>& candidates) {
  // Candidates are far apart: without a prefetch each would begin with the latency of the memory.
  constexpr size_t kAhead = 4, kLine = 64;
  const uint64_t bytes = rows.width * dtype_bytes(rows.type);
  const auto prefetch = [&](size_t i) {
    if (i >= candidates.size()) return;
    const std::byte* const row = rows.row(candidates[i]);
    for (uint64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(row + at, 0, 2);
  };
  for (size_t i = 0; i < kAhead; ++i) prefetch(i);
  const double length = length_of(rows, query);
  std::vector<NearRow> result;
  result.reserve(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    prefetch(i + kAhead);
    const float score = exact(rows, query, length, candidates[i]);
    if (!std::isnan(score)) result.push_back({candidates[i], score});
  }
  std::ranges::sort(
      result, [&](const NearRow& a, const NearRow& b) { return comes_before(rows.metric, a, b); });
  return result;
}

std::vector<NearRow> nearest(ThreadPool& pool, const NearestRows& rows, const void* queries,
                             uint64_t query_count, uint64_t k) {
  std::vector<NearRow> out(query_count * k);
  if (rows.count == 0 || k == 0) return out;
  for (uint64_t q = 0; q < query_count; q += kQueryBlock)
    best_of_block(pool, rows, query_at(rows, queries, q), std::min(kQueryBlock, query_count - q), k,
                  out.data() + q * k);
  return out;
}

std::vector<NearRow> nearest_within(ThreadPool& pool, const NearestRows& rows, const void* query,
                                    float bound) {
  const float sign = sign_of(rows.metric);
  const float threshold = loosened_key(rows.metric, bound, length_of(rows, query));
  std::vector<NearRow> result = rank_rows(rows, query, rows_above(pool, rows, query, threshold));
  std::erase_if(result, [&](const NearRow& each) { return each.score * sign < bound * sign; });
  return result;
}

std::vector<NearRow> nearest_in(ThreadPool& pool, const NearestRows& rows, const void* queries,
                                uint64_t query_count, uint64_t k,
                                const std::vector<RowRange>& ranges) {
  std::vector<NearRow> out(query_count * k);
  const uint64_t wanted = candidates_for(k), bytes = query_bytes(rows);
  const float sign = sign_of(rows.metric);
  // The best of a range for each of its queries; one thread at a time adds to a query's list.
  std::vector<std::vector<Keeper::Entry>> found(query_count);
  std::vector<std::mutex> locks(std::min<uint64_t>(query_count, kRangeLocks));
  pool.parallel_for(ranges.size(), 1, [&](uint64_t first_range, uint64_t last_range) {
    std::vector<std::byte> some;
    for (uint64_t r = first_range; r < last_range; ++r) {
      const RowRange& range = ranges[r];
      for (size_t from = 0; from < range.queries.size(); from += kQueryBlock) {
        const size_t count = std::min<size_t>(kQueryBlock, range.queries.size() - from);
        some.resize(count * bytes);
        for (size_t i = 0; i < count; ++i)
          std::memcpy(some.data() + i * bytes, query_at(rows, queries, range.queries[from + i]),
                      bytes);
        std::vector<Keeper> keepers(count, Keeper(wanted));
        scan_into(rows, some.data(), count, range.begin, range.end, sign, keepers.data());
        for (size_t i = 0; i < count; ++i) {
          const uint32_t q = range.queries[from + i];
          const std::scoped_lock lock(locks[q % locks.size()]);
          for (const Keeper::Entry& entry : keepers[i].finish())
            found[q].push_back({entry.key, static_cast<uint32_t>(range.begin + entry.row)});
        }
      }
    }
  });
  pool.parallel_for(query_count, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t q = begin; q < end; ++q) {
      const size_t kept = std::min<size_t>(wanted, found[q].size());
      std::nth_element(found[q].begin(), found[q].begin() + static_cast<ptrdiff_t>(kept),
                       found[q].end());
      std::vector<uint64_t> candidates(kept);
      for (size_t i = 0; i < kept; ++i) candidates[i] = found[q][i].row;
      const std::vector<NearRow> best = rank_rows(rows, query_at(rows, queries, q), candidates);
      std::copy_n(best.begin(), std::min<size_t>(k, best.size()), out.data() + q * k);
    }
  });
  return out;
}

float exact_score(const NearestRows& rows, const void* query, uint64_t row) {
  return exact(rows, query, length_of(rows, query), row);
}

}  // namespace prism::cpu
