// Scans all rows of a segment.
#include <algorithm>

#include "search/methods/searcher.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

std::vector<std::byte> query_for(DType type, std::span<const float> query) {
  if (type != DType::b1) {
    const auto bytes = std::as_bytes(query);
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::byte> bits((query.size() + 7) / 8);
  for (size_t i = 0; i < query.size(); ++i)
    if (query[i] > 0) bits[i / 8] |= std::byte(1 << (i % 8));
  return bits;
}

std::vector<std::byte> scan_queries(const Wanted& wanted) {
  std::vector<std::byte> all;
  for (uint64_t q = 0; q < wanted.query_count(); ++q) {
    const auto bytes = query_for(wanted.type, wanted.query(q));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

Found exact_search(const Wanted& wanted) {
  return rescored(wanted, cpu::nearest(cpu_pool(), wanted.rows, scan_queries(wanted).data(),
                                       wanted.query_count(), wanted.candidates()));
}

Found scan_rows(const cpu::NearestRows& rows, std::span<const float> queries, uint64_t k) {
  constexpr uint64_t kQueries = 64;  // that a thread takes at once
  const uint64_t count = queries.size() / rows.width;
  Found all(count * k);
  cpu_pool().parallel_for((count + kQueries - 1) / kQueries, 1, [&](uint64_t first, uint64_t last) {
    for (uint64_t begin = first * kQueries; begin < std::min(count, last * kQueries);
         begin += kQueries) {
      const Found some = cpu::nearest(cpu_pool(), rows, queries.data() + begin * rows.width,
                                      std::min(kQueries, count - begin), k);
      std::ranges::copy(some, all.begin() + static_cast<ptrdiff_t>(begin * k));
    }
  });
  return all;
}

Found rescored(const Wanted& wanted, Found found) {
  if (!wanted.exact) return found;
  const uint64_t each = wanted.candidates();
  Found best(wanted.query_count() * wanted.count);
  cpu_pool().parallel_for(wanted.query_count(), 1, [&](uint64_t first, uint64_t last) {
    for (uint64_t q = first; q < last; ++q) {
      std::vector<uint64_t> rows;
      for (uint64_t i = 0; i < each; ++i)
        if (found[q * each + i].is_row()) rows.push_back(found[q * each + i].row);
      const Found ranked = cpu::rank_rows(*wanted.exact, wanted.query(q).data(), rows);
      std::copy_n(ranked.begin(), std::min<uint64_t>(wanted.count, ranked.size()),
                  best.begin() + static_cast<ptrdiff_t>(q * wanted.count));
    }
  });
  return best;
}

}  // namespace prism::search
