// The kernels of nearest_rows and what they share. Private to the op.
//
// scan:    each group scores a part of the rows for a few queries and keeps a list of candidates
// merge:   joins lists until each query has one
// rescore: scores the candidates again with compensated sums
// rank:    writes the k best in order
//
// On devices with matrix fragments, dot products with many f16 or bf16 rows are filtered instead:
// prepare: writes the queries in the type of the rows
// inverse: for cosine, 1 / norm of each row, and zeros up to the end of the last tile
// filter:  of a sample of the rows: a product, whose sums are stored
// limit:   what the best of the sample reach is a limit for every query
// filter:  a product whose sums are candidates where they reach the limit, and are not stored
// scan, merge: again, for queries with more candidates than there is room for; rare
// choose:  keeps the best candidates
//
// One query with rows of at most 64 elements for each lane of a subgroup takes the blocks of rows:
// blocks:  the best row of each block
// pick:    the blocks whose best rows are the best
// rescore: scores all rows of these blocks with compensated sums
// best:    writes the k best in order
//
// A candidate is a key and a row. Smaller keys are better; rows break ties. Lists are padded with
// kNoKey.
#pragma once

#include <algorithm>
#include <optional>

#include "ops/products/product_kernels.h"
#include "prism/kernel.h"
#include "prism/metric.h"
#include "tensor/plan/device_call.h"

namespace prism::ops {

inline constexpr uint32_t kNearestGroup = 256;
inline constexpr uint32_t kTeam =
    8;  // lanes that share a row: together they load 128 bytes at once
inline constexpr uint32_t kNoKey = 0xffffffffu;
// A group scores this many rows between checks of the length of its list.
inline constexpr uint32_t kScanPiece = 512;

// What kernels are specialised for.
struct NearestForm {
  Metric metric;
  DType type;               // of the matrix
  bool aligned;             // rows begin at multiples of 16 bytes
  bool has_factors;         // norms for cosine, scales for others
  bool has_allowed;         // a bitmap
  uint32_t queries;         // that one group scores
  bool one_by_one = false;  // filter: by the layout of fragments
  bool in_turn = false;     // filter, one by one: a group has several tiles of rows
  bool sampled = false;     // filter: every `spacing`-th row only, and all sums are stored
  bool overflow = false;    // scan: only for queries whose filter had no room
  bool has_spans = false;   // scan: each block of queries has a range of rows
  bool in_blocks = false;   // rescore: all rows of the blocks of some rows

  std::string key() const;
};

// Reads a row in units of 16 bytes.
class RowUnits {
 public:
  RowUnits(const NearestForm& form, const dsl::In& matrix, dsl::Value width)
      : form_(form), matrix_(matrix), width_(width) {}
  static uint32_t elements(DType type) { return static_cast<uint32_t>(16 / dtype_bytes(type)); }
  // Unit `unit` of the row as f32 values, or as words of bits for hamming; zeros if not wanted.
  std::vector<dsl::Value> load(dsl::Value wanted, dsl::Value row, dsl::Value unit) const;
  // The same in two steps, for aligned rows: four words, and their elements.
  dsl::Value load_words(dsl::Value wanted, dsl::Value row, dsl::Value unit) const;
  std::vector<dsl::Value> elements_of(dsl::Value four) const;
  // The same elements of a query.
  std::vector<dsl::Value> load_query(const dsl::In& queries, dsl::Value query,
                                     dsl::Value unit) const;

 private:
  std::vector<dsl::Value> load_bytes(const dsl::In& from, dsl::Value wanted, dsl::Value row,
                                     dsl::Value unit) const;
  NearestForm form_;
  dsl::In matrix_;
  dsl::Value width_;
};

// The key of a score; kNoKey if the score is NaN or infinitely bad.
dsl::Value nearest_key(dsl::Value score, Metric metric);
dsl::Value score_of_key(dsl::Value key, Metric metric);

// Whether the row is inside, and allowed where there is a bitmap.
dsl::Value is_allowed(const std::optional<dsl::In>& allowed, dsl::Value inside, dsl::Value row);

// The shared memory of a selection by a group of so many lanes, at least 256.
struct SelectSpace {
  explicit SelectSpace(uint32_t group);
  uint32_t lanes;
  dsl::Array words;
};
// Adds the term of x and y to the sum of a row.
dsl::Value add_term(Metric metric, dsl::Value x, dsl::Value y, dsl::Value sum);
// The score of a sum and the factor of its row: a norm for cosine, a scale for dot.
dsl::Value scaled_score(Metric metric, dsl::Value sum, dsl::Value factor);

// A pair such that exactly `kept` of the pairs come before it or are equal to it. Called by the
// whole group. `count` is at least `kept`; pairs are different.
struct Bound {
  dsl::Value key, row;
  dsl::Value holds(dsl::Value other_key, dsl::Value other_row) const;
};
struct PairSource {
  std::function<dsl::Value(dsl::Value)> key, row;
  // The keys local_id(), local_id() + lanes, ... if lanes keep them in registers.
  std::vector<dsl::Value> held_keys = {};
};
// Pairs of two buffers; `held` keys of each lane are read at once, or none if that is 0.
PairSource held_pairs(const dsl::In& keys, const dsl::In& rows, uint32_t lanes, uint32_t held,
                      dsl::Value count);
// use(i, key) for each pair, by one of the lanes.
void for_each_pair(const PairSource& pairs, uint32_t lanes, dsl::Value count,
                   const std::function<void(dsl::Value, dsl::Value)>& use);
Bound select_bound(const SelectSpace& space, const PairSource& pairs, dsl::Value count,
                   dsl::Value kept);
// The key alone, of keys that may be equal.
dsl::Value select_key(const SelectSpace& space, const std::function<dsl::Value(dsl::Value)>& key,
                      dsl::Value count, dsl::Value kept);

// The number of candidates that the filter found for each query, and its room for them.
struct FilterRoom {
  dsl::In found;
  dsl::Value capacity;
  // Whether any of `count` queries from `first` on has more; the same in the whole group.
  dsl::Value overflows(dsl::Value first, uint32_t count, dsl::Value queries) const;
};

ir::Kernel nearest_scan_kernel(const NearestForm& form);
ir::Kernel nearest_merge_kernel(bool overflow);
// How a query is written for products: in the type of the rows, or as a sum of several numbers of
// that type.
uint32_t nearest_query_parts(DType query, DType row);
ir::Kernel nearest_prepare_kernel(const FragmentProduct& tiling);
ir::Kernel nearest_inverse_kernel();
ir::Kernel nearest_limit_kernel(Metric metric, uint32_t lanes);
ir::Kernel nearest_filter_kernel(const NearestForm& form, const FragmentProduct& tiling);
ir::Kernel nearest_choose_kernel(uint32_t lanes);
// Lanes that share a candidate: few units for each, because a lane waits for one after the other.
uint32_t rescore_team(int64_t units);
ir::Kernel nearest_rescore_kernel(const NearestForm& form, uint32_t team);
ir::Kernel nearest_rank_kernel(Metric metric);

inline constexpr uint32_t kBlocksOfGroup = kNearestGroup / 32;
// How subgroups of 32 lanes read the rows of blocks.
struct BlockCut {
  uint32_t lanes = 32;    // that share a row
  uint32_t units = 1;     // of each row in a lane
  uint32_t rows = 1;      // that a lane reads at once, a power of two
  bool is_whole = false;  // all lanes have that many units
  uint32_t rows_at_once() const { return rows * (32 / lanes); }  // of a subgroup
};
// Nothing if the query does not fit into registers or rows are not aligned.
std::optional<BlockCut> block_cut(const NearestForm& form, uint32_t units);
ir::Kernel nearest_blocks_kernel(const NearestForm& form, const BlockCut& cut);
// held: the keys that each lane keeps in registers, enough for all, or 0.
ir::Kernel nearest_pick_kernel(uint32_t lanes, uint32_t held);
ir::Kernel nearest_best_kernel(Metric metric, uint32_t lanes, uint32_t held, uint32_t room);

// All launches of one use of the op.
struct NearestLaunch {
  Metric metric;
  int64_t k;
  DType query_type;  // what the queries were before they became f32
  DeviceView queries, matrix;
  std::optional<DeviceView> factors, allowed, spans;
  int64_t longest_span;  // with spans
  DeviceView scores, indices;

  void emit(DeviceCall& call) const;

 private:
  struct Lists;
  struct Filter;
  int64_t query_count() const { return queries.layout.shape[0]; }
  int64_t rows() const { return matrix.layout.shape[0]; }
  int64_t scanned_rows() const { return spans ? std::min(longest_span, rows()) : rows(); }
  int64_t width() const { return matrix.layout.shape[1]; }
  int64_t kept() const;
  NearestForm form() const;
  std::optional<FragmentProduct> tiling(const DeviceInfo& device) const;
  Lists scan(DeviceCall& call, const NearestForm& form, int64_t count, int64_t part,
             const Filter* filter) const;
  Lists merge(DeviceCall& call, Lists from, const Filter* filter) const;
  Lists filter(DeviceCall& call, const FragmentProduct& tiling) const;
  // Of one query: the rows of a block; nothing if a scan is better.
  std::optional<int64_t> block_rows() const;
  void search_blocks(DeviceCall& call, int64_t block) const;
  int64_t units() const {
    return (width() * static_cast<int64_t>(matrix.type.block_bytes()) + 15) / 16;
  }
};

}  // namespace prism::ops
