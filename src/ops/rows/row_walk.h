// How a kernel walks through rows: which lanes take which elements, whether the row stays in
// registers, and how lanes of one row join what they have. For rows with inner 1, in f32 or f64.
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
  DType type = DType::f32;  // of the elements as they are computed with
  uint32_t group = 256;     // lanes
  uint32_t lanes = 256;     // of a row
  uint32_t held = 0;        // fours of a row that a lane keeps; 0: the row is read again
  bool by_four = false;     // loads and stores of four neighbours
  bool subgroup = false;    // a row's lanes are a subgroup
  // Lanes of the device's own subgroups, where the group is made of whole ones that hold what eight
  // lanes exchange; 0: none.
  uint32_t subgroup_lanes = 0;

  std::string key() const;
  std::array<uint32_t, 3> groups(int64_t rows) const;
};

RowWalk walk_for(const Rows& rows, const RowBinding& binding, const DeviceInfo& device);

// Inside a kernel, after the buffers are declared: declares "rows", "length" and the source's
// parameters.
class RowLoop {
 public:
  RowLoop(const RowWalk& walk, RowCode& source);

  dsl::Value row() const { return row_; }
  dsl::Value length() const { return length_; }
  dsl::Value number(double value) const { return dsl::constant(walk_.type, value); }
  dsl::Value lowest() const;  // -infinity
  bool holds() const { return walk_.held > 0; }
  // Reads the row into registers where the walk holds it; elements beyond it read as `fill`.
  void load(double fill);
  // Of a vector that all rows share: the elements that go with those this lane holds, four a turn
  // of each(), to be asked for before the row itself. Nothing where the lane holds none, or so many
  // that both would not fit its registers.
  std::vector<dsl::Value> shared_ahead(const dsl::In& from, DType stored) const;
  size_t turn() const { return turn_; }  // of the each(), map() or store() under way
  // f for this lane's elements in turn: values and the index of the first. One or four values.
  using Visit = std::function<void(const std::vector<dsl::Value>&, dsl::Value)>;
  void each(const Visit& f);
  // Puts f of each element in its place among the registers; where nothing is held, does nothing.
  void replace(const std::function<dsl::Value(dsl::Value)>& f);
  // Stores f of each element in y, rows one after another, with what tail makes of it.
  using Map = std::function<std::vector<dsl::Value>(const std::vector<dsl::Value>&, dsl::Value)>;
  void store(const dsl::Array& y, DType stored, const Map& f,
             const TailCode& tail = TailCode(nullptr));
  // Where the row is in registers: puts f of its elements in their place.
  void map(const Map& f);
  // Where the row is in registers: f(wanted, quad, four) for each four of this lane, and for those
  // beyond the row, which are not wanted: all lanes of the group arrive.
  void every_four(
      const std::function<void(dsl::Value wanted, dsl::Value quad, dsl::Value four)>& f);
  // What the lanes of a row have together; every lane gets it. All lanes of the group arrive.
  dsl::Value join(dsl::ReduceOp op, dsl::Value value);
  // For one lane of each row that there is.
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

// The elements i, i + 1, ... of a vector that all rows share, in `type`: as many as `count`.
std::vector<dsl::Value> shared_elements(const dsl::In& from, DType stored, DType type, dsl::Value i,
                                        size_t count);

}  // namespace prism
