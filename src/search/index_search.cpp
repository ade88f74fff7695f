// Searches the segments of an index and merges their results.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "cpu/nearest/nearest.h"
#include "prism/error.h"
#include "search/index_state.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

namespace {

constexpr uint64_t kMaximumResults = 2048;

bool comes_before(Metric metric, const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return is_distance(metric) ? a.score < b.score : a.score > b.score;
  if (a.at.segment != b.at.segment) return a.at.segment < b.at.segment;
  return a.at.row < b.at.row;
}

void keep_best(Metric metric, std::vector<Candidate>& candidates, uint64_t wanted) {
  std::ranges::sort(candidates, [&](const Candidate& a, const Candidate& b) {
    return comes_before(metric, a, b);
  });
  if (candidates.size() > wanted) candidates.resize(wanted, {{}, 0});
}

}  // namespace

std::vector<std::vector<Candidate>> Index::State::best(std::span<const float> queries,
                                                       uint64_t wanted, const Filter& filter,
                                                       uint64_t oversample) const {
  const uint64_t count = queries.size() / options.width;
  std::vector<std::vector<Candidate>> all(count);
  std::vector<std::byte> converted;
  for (uint64_t q = 0; q < count; ++q) {
    const auto bytes = query_for(options.type, queries.subspan(q * options.width, options.width));
    converted.insert(converted.end(), bytes.begin(), bytes.end());
  }
  const bool rescores = options.rescore.has_value();
  const uint64_t scanned = rescores ? wanted * std::max<uint64_t>(1, oversample) : wanted;
  const Metric scan_metric = options.type == DType::b1 ? Metric::hamming : options.metric;
  for (size_t s = 0; s < segments.size(); ++s) {
    const Segment& segment = segments[s];
    cpu::NearestRows rows = segment.scan_rows();
    std::vector<uint32_t> allowed;
    if (!filter.is_empty() || segment.removed() > 0) {
      allowed = allowed_rows(segment, filter);
      rows.allowed = allowed.data();
    }
    const uint64_t k = std::min(scanned, segment.rows());
    const std::vector<cpu::NearRow> found =
        cpu::nearest(cpu_pool(), rows, converted.data(), count, k);
    for (uint64_t i = 0; i < found.size(); ++i)
      if (found[i].is_row())
        all[i / k].push_back(
            {{static_cast<uint32_t>(s), static_cast<uint32_t>(found[i].row)}, found[i].score});
  }
  for (uint64_t q = 0; q < count; ++q) {
    keep_best(scan_metric, all[q], scanned);
    if (!rescores) continue;
    for (Candidate& each : all[q])
      each.score = cpu::exact_score(*segments[each.at.segment].exact_rows(),
                                    queries.data() + q * options.width, each.at.row);
    std::erase_if(all[q], [](const Candidate& each) { return std::isnan(each.score); });
    keep_best(options.metric, all[q], wanted);
  }
  return all;
}

std::vector<Candidate> Index::State::grouped(const std::vector<Candidate>& candidates,
                                             const std::string& field, uint64_t k) const {
  std::vector<Candidate> kept;
  std::set<FieldValue> seen;
  for (const Candidate& each : candidates) {
    const Segment& segment = segments[each.at.segment];
    const Column* const column = segment.column(field);
    if (column && column->has(each.at.row) &&
        !seen.insert(segment.field(*column, each.at.row)).second)
      continue;
    kept.push_back(each);
    if (kept.size() == k) break;
  }
  return kept;
}

SearchResult Index::State::result_of(const std::vector<Candidate>& candidates, uint64_t k) const {
  SearchResult result;
  result.how = how();
  for (const Candidate& each : candidates) {
    if (result.hits.size() == k) break;
    result.hits.push_back({segments[each.at.segment].id(each.at.row), each.score});
  }
  return result;
}

std::string Index::State::how() const {
  const std::string rescored =
      options.rescore ? fmt::format(", rescored in {}", dtype_name(*options.rescore)) : "";
  return fmt::format("exact, {} {}{}", metric_name(options.metric), dtype_name(options.type),
                     rescored);
}

std::vector<SearchResult> Index::search_batch(std::span<const float> queries,
                                              const SearchOptions& given) const {
  const std::shared_lock lock(state_->mutex);
  const uint64_t width = state_->options.width;
  if (queries.size() % width != 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("search: {} numbers for queries of {}", queries.size(), width));
  if (given.k > kMaximumResults)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("search: k is {}; it must be at most {}", given.k, kMaximumResults));
  state_->check_vector("search", queries);
  const uint64_t count = queries.size() / width;
  std::vector<SearchResult> results(count);
  if (given.group_by.empty()) {
    const auto best = state_->best(queries, given.k, given.filter, given.oversample);
    for (uint64_t q = 0; q < count; ++q) results[q] = state_->result_of(best[q], given.k);
    return results;
  }
  // More and more candidates, until there are enough groups or no more vectors.
  const uint64_t alive = state_->alive();
  for (uint64_t q = 0; q < count; ++q) {
    for (uint64_t wanted = given.k * 4;; wanted *= 4) {
      const auto best =
          state_->best(queries.subspan(q * width, width), wanted, given.filter, given.oversample);
      const auto groups = state_->grouped(best[0], given.group_by, given.k);
      results[q] = state_->result_of(groups, given.k);
      if (groups.size() >= given.k || wanted >= alive) break;
    }
  }
  return results;
}

SearchResult Index::search(std::span<const float> query, const SearchOptions& given) const {
  if (query.size() != state_->options.width)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("search: the query has {} numbers, the index {}", query.size(),
                            state_->options.width));
  return search_batch(query, given)[0];
}

SearchResult Index::search(std::initializer_list<float> query, const SearchOptions& given) const {
  return search(std::span(query.begin(), query.size()), given);
}

SearchResult Index::search_within(std::span<const float> query, float bound,
                                  const Filter& filter) const {
  const std::shared_lock lock(state_->mutex);
  const State& state = *state_;
  if (query.size() != state.options.width)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("search: the query has {} numbers, the index {}", query.size(),
                            state.options.width));
  state.check_vector("search", query);
  std::vector<Candidate> all;
  for (size_t s = 0; s < state.segments.size(); ++s) {
    const Segment& segment = state.segments[s];
    const std::optional<cpu::NearestRows> exact = segment.exact_rows();
    cpu::NearestRows rows = exact ? *exact : segment.scan_rows();
    const std::vector<uint32_t> allowed = allowed_rows(segment, filter);
    rows.allowed = allowed.data();
    const auto bytes = query_for(exact ? DType::f32 : state.options.type, query);
    for (const cpu::NearRow& found : cpu::nearest_within(cpu_pool(), rows, bytes.data(), bound))
      all.push_back({{static_cast<uint32_t>(s), static_cast<uint32_t>(found.row)}, found.score});
  }
  keep_best(state.options.metric, all, all.size());
  return state.result_of(all, all.size());
}

}  // namespace prism::search
