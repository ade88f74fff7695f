// DeviceRows: the vectors of an index on a device, uploaded once and searched there.
//
// A segment is uploaded in parts. Parts are known by the identity of their segment, so that a
// change of the file uploads only what is new. Parts that do not fit into the device's memory are
// scanned on the CPU at the same time. Bitmaps of allowed rows are uploaded with each search.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prism/compile.h"
#include "prism/device.h"
#include "prism/tensor.h"
#include "search/methods/searcher.h"

namespace prism::search {

class DeviceRows {
 public:
  explicit DeviceRows(const Device& device) : device_(device) {}

  // Uploads what is missing of the rows and drops segments that are not among `present`.
  void keep_only(const std::set<uint64_t>& present);
  // A scan of the rows of a segment. `is_growing`: rows are still added at its end; those after the
  // first search are uploaded when there are many.
  Found scan(uint64_t identity, bool is_growing, const Wanted& wanted);
  // The same over ranges of the rows, each for some of the queries. A range is read once for all of
  // its queries.
  Found scan_ranges(uint64_t identity, const Wanted& wanted,
                    const std::vector<cpu::RowRange>& ranges);

  // The nearest of few rows that belong to a segment and never change: the centers of its lists.
  Found scan_centers(uint64_t identity, const cpu::NearestRows& centers,
                     std::span<const float> queries, uint64_t k);

  uint64_t uploaded_bytes() const { return uploaded_bytes_; }  // in all uploads so far
  // Which share of the last search the device did, for people: "cuda:0", "cuda:0 and cpu".
  std::string shown() const;
  const Device& device() const { return device_; }

 private:
  struct Part {
    uint64_t first = 0, rows = 0;
    Tensor matrix, factors;  // no factors: empty
    std::map<std::string, CompiledFunction> searches;
  };
  // The last rows of a part may also be in the next one, which begins at a word of a bitmap.
  struct Resident {
    std::vector<Part> parts;
    uint64_t rows = 0;      // from the start of the segment, in all parts
    uint64_t searched = 0;  // rows of the segment at the last search
    bool is_full = false;   // the device had no memory for more
  };

  Resident& upload(uint64_t identity, bool is_growing, const Wanted& wanted);
  // Nothing if there is no memory for it.
  std::optional<Part> upload_part(const cpu::NearestRows& rows);
  Found scan_resident(Resident& resident, const Wanted& wanted);
  // has_scores: the scores of the results are wanted, too.
  Found scan_part(Part& part, const Wanted& wanted, const Tensor& queries, bool has_scores);
  Tensor allowed_rows(const Part& part, const Wanted& wanted) const;

  Device device_;
  std::mutex mutex_;
  std::map<uint64_t, Resident> residents_;
  std::map<uint64_t, Tensor> centers_;  // of segments
  uint64_t uploaded_bytes_ = 0;
  bool used_cpu_ = false;
};

}  // namespace prism::search
