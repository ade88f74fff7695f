// Searcher: one method of finding the nearest rows of a segment.
//
// Every segment can be scanned (exact_search). A segment may also have a searcher, which finds most
// of the nearest rows with less work. It is made once, for rows that do not change any more, and is
// kept in sections of the file. How many it finds with which effort was measured when it was made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpu/nearest/nearest.h"
#include "prism/search.h"
#include "search/section.h"

namespace prism::search {

// What a searcher looks for.
struct Wanted {
  cpu::NearestRows rows;                  // as scans read them; `allowed` may be null
  std::optional<cpu::NearestRows> exact;  // a precise copy that ranks the results
  DType type = DType::f32;                // of the stored vectors
  uint64_t allowed = 0;                   // how many rows are allowed
  std::span<const float> queries;         // [queries][width]
  uint64_t width = 0, count = 0;          // count: results for each query
  uint64_t effort = 0;
  uint64_t oversample = 1;  // candidates of a scan for each result, if there is a precise copy

  uint64_t query_count() const { return queries.size() / width; }
  std::span<const float> query(uint64_t q) const { return queries.subspan(q * width, width); }
  uint64_t candidates() const { return exact ? count * oversample : count; }
  // The effort that finds as many allowed rows as `effort` would find if all were.
  uint64_t effort_for_allowed() const {
    return allowed == 0 ? effort : (effort * rows.count + allowed / 2) / allowed;
  }
};

// A query as scans of the type read it: f32, or the bits of b1.
std::vector<std::byte> query_for(DType type, std::span<const float> query);
std::vector<std::byte> scan_queries(const Wanted& wanted);

// The results of each query, best first: [queries][count].
using Found = std::vector<cpu::NearRow>;

// Finds the k nearest of some rows of f32 for each query: [queries][k].
using RowScan =
    std::function<Found(const cpu::NearestRows& rows, std::span<const float> queries, uint64_t k)>;

// One line of the measured curve: the share of the k nearest rows that were found.
struct EffortPoint {
  uint64_t k = 0, effort = 0;
  double recall = 0, microseconds = 0;  // for each query of a batch
};

struct Curve {
  std::vector<EffortPoint> points;  // by k, then by effort
  double exact_microseconds = 0;    // a query of an exact search of the same rows

  // The least effort that finds at least the share `recall` of k results, between measured points;
  // nothing if no measured effort does.
  std::optional<EffortPoint> least(uint64_t k, double recall) const;
  std::string text() const;                   // JSON
  static Curve parse(std::string_view text);  // throws kCorruptFile
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  virtual Method method() const = 0;
  virtual const char* effort_name() const = 0;
  virtual uint64_t largest_effort() const = 0;
  // Whether a scan of the allowed rows is less work.
  virtual bool prefers_scan(const Wanted& wanted) const = 0;
  virtual Found search(const Wanted& wanted) const = 0;
  // The ranges of rows that search() scans and the queries of each; nothing if it does not scan
  // ranges. A device can scan them instead, and also `scan` what chooses them.
  virtual std::optional<std::vector<cpu::RowRange>> scanned(const Wanted&, const RowScan&) const {
    return std::nullopt;
  }
  virtual std::vector<NamedSection> sections() const = 0;

  Curve curve;
};

// Scans all allowed rows.
Found exact_search(const Wanted& wanted);
// The rows of a RowScan on the CPU.
Found scan_rows(const cpu::NearestRows& rows, std::span<const float> queries, uint64_t k);
// Ranks candidates [queries][wanted.candidates()] of a scan by the precise copy, if there is one.
Found rescored(const Wanted& wanted, Found found);

// Searches with growing effort for rows that the searcher does not know (or may not return: all but
// these are allowed) and sets its curve.
void measure(Searcher& searcher, Wanted all, std::span<const uint32_t> held_back,
             const std::function<std::vector<float>(uint64_t)>& row);

}  // namespace prism::search
