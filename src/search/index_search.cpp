// Searches the segments of an index and merges their results.
#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpu/nearest/nearest.h"
#include "prism/error.h"
#include "search/index_state.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

namespace {

constexpr uint64_t kMaximumResults = 2048;
constexpr uint64_t kQueriesAtOnce = 64;  // whose results a thread joins

bool comes_before(Metric metric, const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return is_distance(metric) ? a.score < b.score : a.score > b.score;
  if (a.at.segment != b.at.segment) return a.at.segment < b.at.segment;
  return a.at.row < b.at.row;
}

uint64_t count_bits(const std::vector<uint32_t>& words) {
  uint64_t sum = 0;
  for (const uint32_t word : words) sum += static_cast<uint64_t>(std::popcount(word));
  return sum;
}

// Among a million rows of 768 normal numbers, twice as many candidates in i8 as results had all of
// the right ones; bits are far coarser.
uint64_t oversample_for(DType type) { return type == DType::b1 ? 8 : 3; }

void keep_best(Metric metric, std::vector<Candidate>& candidates, uint64_t wanted) {
  std::ranges::sort(candidates, [&](const Candidate& a, const Candidate& b) {
    return comes_before(metric, a, b);
  });
  if (candidates.size() > wanted) candidates.resize(wanted, {{}, 0});
}

}  // namespace

namespace {

// How one segment is searched.
struct Choice {
  bool scans = true;
  uint64_t effort = 0;
  std::string how = "exact";
};

Choice choose(const Segment& segment, const Wanted& wanted, const SearchOptions& given) {
  const Searcher* const searcher = segment.searcher();
  const bool wants_all = !given.method && given.recall >= 1;
  if (!searcher || wants_all || given.method == Method::exact) return {};
  Choice choice;
  const std::optional<EffortPoint> measured = searcher->curve.least(wanted.count, given.recall);
  const bool is_set = given.method && given.effort > 0;
  if (!is_set && !measured) return {};
  choice.effort = std::min(is_set ? given.effort : measured->effort, searcher->largest_effort());
  Wanted with_effort = wanted;
  with_effort.effort = choice.effort;
  // Without a filter the measured times decide; with one, the work that is expected.
  const bool is_slower = measured && wanted.allowed == wanted.rows.count &&
                         measured->microseconds >= searcher->curve.exact_microseconds;
  choice.scans = searcher->prefers_scan(with_effort) || (!given.method && is_slower);
  if (choice.scans) return {};
  choice.how = fmt::format("{}, {} {}", method_name(searcher->method()), searcher->effort_name(),
                           choice.effort);
  if (!is_set) choice.how += fmt::format(" (recall {:.2f} when it was built)", measured->recall);
  return choice;
}

}  // namespace

Found Index::State::search_segment(size_t s, bool scans, const Wanted& wanted) const {
  const Segment& segment = segments[s];
  if (!on_device) return scans ? exact_search(wanted) : segment.searcher()->search(wanted);
  if (!scans) {
    const uint64_t identity = segment.identity();
    const auto ranges = segment.searcher()->scanned(
        wanted, [&](const cpu::NearestRows& rows, std::span<const float> queries, uint64_t k) {
          return on_device->scan_centers(identity, rows, queries, k);
        });
    return ranges ? on_device->scan_ranges(identity, wanted, *ranges)
                  : segment.searcher()->search(wanted);
  }
  return on_device->scan(segment.identity(), s >= placed, wanted);
}

Index::State::Best Index::State::best(std::span<const float> queries, uint64_t count,
                                      const SearchOptions& given) const {
  // The results of a segment: `each` of every query, best first.
  struct Part {
    uint32_t segment;
    uint64_t each;
    Found found;
  };
  std::vector<Part> parts;
  std::vector<std::string> hows;
  if (on_device) {
    std::set<uint64_t> present;
    for (const Segment& segment : segments) present.insert(segment.identity());
    on_device->keep_only(present);
  }
  for (size_t s = 0; s < segments.size(); ++s) {
    const Segment& segment = segments[s];
    Wanted wanted = segment.wanted();
    std::vector<uint32_t> allowed;
    if (!given.filter.is_empty()) {
      allowed = allowed_rows(segment, given.filter);
      wanted.rows.allowed = allowed.data();
      wanted.allowed = count_bits(allowed);
    }
    wanted.queries = queries;
    wanted.count = std::min(count, segment.rows());
    wanted.oversample = given.oversample > 0 ? given.oversample : oversample_for(options.type);
    if (wanted.allowed == 0 || wanted.count == 0) continue;
    Choice choice = choose(segment, wanted, given);
    wanted.effort = choice.effort;
    parts.push_back(
        {static_cast<uint32_t>(s), wanted.count, search_segment(s, choice.scans, wanted)});
    if (on_device && (choice.scans || segment.searcher()->method() == Method::ivf))
      choice.how += " on " + on_device->shown();
    if (std::ranges::find(hows, choice.how) == hows.end()) hows.push_back(choice.how);
  }
  Best best;
  best.candidates.resize(queries.size() / options.width);
  cpu_pool().parallel_for(best.candidates.size(), kQueriesAtOnce, [&](uint64_t q, uint64_t last) {
    for (; q < last; ++q) {
      std::vector<Candidate>& all = best.candidates[q];
      for (const Part& part : parts)
        for (const cpu::NearRow& row : std::span(part.found).subspan(q * part.each, part.each))
          if (row.is_row())
            all.push_back({{part.segment, static_cast<uint32_t>(row.row)}, row.score});
      keep_best(options.metric, all, count);
    }
  });
  best.how = shown(hows.empty() ? "exact" : fmt::format("{}", fmt::join(hows, "; ")));
  return best;
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

SearchResult Index::State::result_of(const std::vector<Candidate>& candidates, uint64_t k,
                                     const std::string& how) const {
  SearchResult result;
  result.how = how;
  result.hits.reserve(std::min<uint64_t>(k, candidates.size()));
  for (const Candidate& each : candidates) {
    if (result.hits.size() == k) break;
    result.hits.push_back({segments[each.at.segment].id(each.at.row), each.score});
  }
  return result;
}

std::string Index::State::shown(const std::string& methods) const {
  const std::string rescored =
      options.rescore ? fmt::format(", rescored in {}", dtype_name(*options.rescore)) : "";
  return fmt::format("{}, {} {}{}", methods, metric_name(options.metric), dtype_name(options.type),
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
  if (!(given.recall > 0 && given.recall <= 1))
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("search: a recall of {}; it must be above 0 and at most 1", given.recall));
  if (given.method && *given.method != Method::exact && *given.method != state_->method())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("search: the index has no {}, its method is {}; use build()",
                            method_name(*given.method), method_name(state_->method())));
  state_->check_queries(queries);
  const uint64_t count = queries.size() / width;
  std::vector<SearchResult> results(count);
  if (given.group_by.empty()) {
    const State::Best best = state_->best(queries, given.k, given);
    cpu_pool().parallel_for(count, kQueriesAtOnce, [&](uint64_t q, uint64_t last) {
      for (; q < last; ++q) results[q] = state_->result_of(best.candidates[q], given.k, best.how);
    });
    return results;
  }
  // More and more candidates, until there are enough groups or no more vectors.
  const uint64_t alive = state_->alive();
  for (uint64_t q = 0; q < count; ++q) {
    for (uint64_t wanted = given.k * 4;; wanted *= 4) {
      const State::Best best = state_->best(queries.subspan(q * width, width), wanted, given);
      const auto groups = state_->grouped(best.candidates[0], given.group_by, given.k);
      results[q] = state_->result_of(groups, given.k, best.how);
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

SearchResult Index::search(std::span<const float> query, uint64_t k, SearchOptions options) const {
  options.k = k;
  return search(query, options);
}

void Index::set_device(const std::string& name) {
  const Device device = Device::named(name);
  const std::unique_lock lock(state_->mutex);
  state_->on_device = device.info().is_cpu ? nullptr : std::make_unique<DeviceRows>(device);
}

SearchResult Index::search_within(std::span<const float> query, float bound,
                                  const Filter& filter) const {
  const std::shared_lock lock(state_->mutex);
  const State& state = *state_;
  if (query.size() != state.options.width)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("search: the query has {} numbers, the index {}", query.size(),
                            state.options.width));
  state.check_queries(query);
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
  return state.result_of(all, all.size(), state.shown("exact"));
}

}  // namespace prism::search
