// How a kernel traverses rows: the elements of each lane, whether the row stays in registers, and
// the reduction over the lanes of a row. For rows with inner 1, in f32 or f64.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/rows/row_source.h"
#include "ops/tail.h"
#include "prism/kernel.h"

namespace prism {

struct RowWalk {
  DType type = DType::f32;  // of the computation
  uint32_t group = 256;     // lanes
  uint32_t lanes = 256;     // per row
  uint32_t held = 0;        // groups of four that a lane keeps; 0: the row is read again
  bool by_four = false;     // loads and stores of four neighbours
  bool subgroup = false;    // one subgroup per row
  // The subgroup size if groups consist of whole subgroups of at least eight lanes, else 0.
  uint32_t subgroup_lanes = 0;

  std::string key() const;
  std::array<uint32_t, 3> groups(int64_t rows) const;
};

RowWalk walk_for(const Rows& rows, const RowBinding& binding, const DeviceInfo& device);

// Used inside a kernel after the buffers are declared. Declares "rows", "length" and the source's
// parameters.
class RowLoop {
 public:
  RowLoop(const RowWalk& walk, RowCode& source);

  dsl::Value row() const { return row_; }
  dsl::Value length() const { return length_; }
  dsl::Value number(double value) const { return dsl::constant(walk_.type, value); }
  dsl::Value lowest() const;  // -infinity
  bool holds() const { return walk_.held > 0; }
  // Loads the row into registers if the walk holds it; elements beyond the row are `fill`.
  void load(double fill);
  // Prefetches this lane's elements of a vector that all rows share: four for each turn of each().
  // Call it before the row is loaded. Empty if the row is not held, or if both would not fit the
  // registers.
  std::vector<dsl::Value> shared_ahead(const dsl::In& from, DType stored) const;
  size_t turn() const { return turn_; }  // of the current each(), map() or store()
  // Calls f for this lane's elements: one or four values, and the index of the first.
  using Visit = std::function<void(const std::vector<dsl::Value>&, dsl::Value)>;
  void each(const Visit& f);
  // Replaces each held element by f of it; does nothing if the row is not held.
  void replace(const std::function<dsl::Value(dsl::Value)>& f);
  // Applies f and the tail to each element and stores it in y, whose rows are contiguous.
  using Map = std::function<std::vector<dsl::Value>(const std::vector<dsl::Value>&, dsl::Value)>;
  void store(const dsl::Array& y, DType stored, const Map& f,
             const TailCode& tail = TailCode(nullptr));
  // For a held row: replaces its elements by f of them.
  void map(const Map& f);
  // For a held row: calls f(wanted, quad, four) for each four elements of this lane. Fours beyond
  // the row have wanted false; they are visited so that all lanes of the group take part.
  void every_four(
      const std::function<void(dsl::Value wanted, dsl::Value quad, dsl::Value four)>& f);
  // Reduces over the lanes of a row; every lane gets the result. All lanes of the group must call.
  dsl::Value join(dsl::ReduceOp op, dsl::Value value);
  // Runs on one lane of each existing row.
  void once(const std::function<void()>& f);

 private:
  dsl::Value join_subgroups(dsl::ReduceOp op, dsl::Value value);

  const RowWalk walk_;
  const RowCode& source_;
  dsl::Value rows_, length_, lane_, row_;
  std::vector<dsl::Var> held_;
  size_t turn_ = 0;
  std::optional<dsl::Array> tile_;
};

// Loads `count` elements, starting at i, of a vector that all rows share, as `type`.
std::vector<dsl::Value> shared_elements(const dsl::In& from, DType stored, DType type, dsl::Value i,
                                        size_t count);

}  // namespace prism
