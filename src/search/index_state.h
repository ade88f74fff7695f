// The state behind search::Index.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "search/filter.h"
#include "search/index_file.h"
#include "search/methods/device_rows.h"

namespace prism::search {

// Where a vector is.
struct Location {
  uint32_t segment = 0, row = 0;
};

// Finds vectors by id. Built when first needed, because opening a file must not read all ids.
class IdMap {
 public:
  void build(const std::vector<Segment>& segments);
  std::optional<Location> find(const Id& id) const;
  void set(const Id& id, Location location);
  void erase(const Id& id);

 private:
  std::unordered_map<uint64_t, Location> numbers_;
  std::unordered_map<std::string, Location> texts_;
};

// A candidate of a search over all segments.
struct Candidate {
  Location at;
  float score;
};

struct Index::State {
  explicit State(const IndexOptions& given) : options(given) {}

  IndexOptions options;
  std::vector<Segment> segments;  // those of the file first
  size_t placed = 0;              // segments in the file
  std::optional<OpenFile> file;
  std::unique_ptr<UpdatedFile> writing;  // null: read only, or in memory
  Attachments attachments;
  bool is_changed = false;
  BuildOptions built;                     // for segments that commit() adds
  std::unique_ptr<DeviceRows> on_device;  // null: on the CPU

  // Guards everything above. The map of ids has its own lock, because reading builds it.
  mutable std::shared_mutex mutex;
  mutable std::mutex ids_mutex;
  mutable std::optional<IdMap> ids;

  // Ends before everything above is destroyed.
  std::future<void> compaction;

  std::optional<Location> find(const Id& id) const;
  IdMap& id_map() const;
  void remove(const Id& id, Location at);
  void add(const Id& id, std::span<const float> vector, const Fields& fields);
  // All numbers are finite, and so are their products. name(row): in messages.
  void check_vectors(const char* doing, std::span<const float> vectors,
                     const std::function<std::string(size_t)>& name) const;
  void check_queries(std::span<const float> queries) const;  // one or several
  // Also whether the type can hold the numbers.
  void check_stored(const Id& id, std::span<const float> vector) const;
  void check_id(const Id& id) const;
  Fields checked(const Fields& fields) const;  // numbers converted to the type of the field
  void check_writable() const;
  void open(const std::string& path);
  Segment joined() const;  // all vectors in one segment, in the order of additions
  void replace_all(
      Segment segment,
      std::span<const Segment> more = {});  // in memory, and in the file if there is one
  void run_compaction();
  void build_committed();  // structures for large segments that are not in the file
  Method method() const;   // of the largest segment that has one
  const Segment* largest_with_method() const;
  uint64_t alive() const;

  // The best `count` of each query, best first, and how they were found.
  struct Best {
    std::vector<std::vector<Candidate>> candidates;
    std::string how;
  };
  Found search_segment(size_t s, bool scans, const Wanted& wanted) const;
  Best best(std::span<const float> queries, uint64_t count, const SearchOptions& given) const;
  SearchResult result_of(const std::vector<Candidate>& candidates, uint64_t k,
                         const std::string& how) const;
  // The best of each value of the field, k at most; candidates without the field stand alone.
  std::vector<Candidate> grouped(const std::vector<Candidate>& candidates, const std::string& field,
                                 uint64_t k) const;
  std::string shown(const std::string& methods) const;  // with metric and type
};

// The segment with the structures of a method; without them if it is small.
Segment with_method(Segment segment, const IndexOptions& options, const BuildOptions& how);

}  // namespace prism::search
