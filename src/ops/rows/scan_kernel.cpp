// The kernel of running sums. A lane sums several groups of four neighbours, so that many loads are
// in flight. Subgroups, or shared memory with doubling distances, scan the lanes' sums.
#include "ops/rows/scan_kernel.h"

#include <algorithm>

#include <fmt/format.h>

#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

Value zero_of(DType type) { return is_float(type) ? constant(type, 0.0) : constant(type, 0); }

// For each turn, the sum of the elements before this lane's four; and the sum of the piece.
struct Sums {
  std::vector<Value> before;
  Value all;
};

// One barrier per piece: the subgroups' sums are double-buffered.
class BySubgroups {
 public:
  BySubgroups(const ScanCut& cut, DType type)
      : cut_(cut),
        count_(cut.group / cut.subgroup),
        zero_(zero_of(type)),
        parts_(shared(type, 2 * cut.turns * count_, "parts")),
        place_(u32, 0u, "place") {}

  Sums of(const std::vector<Value>& totals) {
    const Value lane = subgroup_lane(), place = place_;
    Sums sums{{}, zero_};
    for (const Value& each : totals)
      sums.before.push_back(subgroup_scan(ReduceOp::add, each, true));
    if_(lane == cut_.subgroup - 1, [&] {
      for (uint32_t t = 0; t < cut_.turns; ++t)
        parts_[place + t * count_ + subgroup_id()] = sums.before[t] + totals[t];
    });
    barrier();
    // One subgroup scan covers as many turns as it has lanes for.
    Value all = zero_;
    const uint32_t at_once = std::min(cut_.turns, cut_.subgroup / count_);
    for (uint32_t first = 0; first < cut_.turns; first += at_once) {
      const uint32_t parts = at_once * count_;
      const Value loaded = parts_.load(place + first * count_ + min(lane, parts - 1));
      const Value part = select(lane < parts, loaded, zero_);
      const Value earlier = subgroup_scan(ReduceOp::add, part, true);
      for (uint32_t t = 0; t < at_once; ++t) {
        const Value others = subgroup_shuffle(earlier, subgroup_id() + t * count_);
        sums.before[first + t] = all + (others + sums.before[first + t]);
      }
      all = all + subgroup_shuffle(earlier + part, constant(u32, parts - 1));
    }
    sums.all = all;
    place_ = cut_.turns * count_ - place;
    return sums;
  }

 private:
  const ScanCut& cut_;
  uint32_t count_;
  Value zero_;
  Array parts_;
  Var place_;
};

class ByDoubling {
 public:
  ByDoubling(const ScanCut& cut, DType type)
      : cut_(cut), zero_(zero_of(type)), sums_(shared(type, 2 * cut.turns * cut.group, "sums")) {}

  Sums of(const std::vector<Value>& totals) {
    const Value lane = local_id();
    const uint32_t all = cut_.turns * cut_.group;
    for (uint32_t t = 0; t < cut_.turns; ++t) sums_[lane + t * cut_.group] = totals[t];
    barrier();
    // Double buffering needs only one barrier per step.
    uint32_t half = 0;
    for (uint32_t distance = 1; distance < cut_.group; distance *= 2) {
      const uint32_t other = all - half;
      for (uint32_t t = 0; t < cut_.turns; ++t) {
        const uint32_t from = half + t * cut_.group;
        const Value before = sums_.load(select(lane >= distance, lane - distance, lane) + from);
        const Value mine = sums_.load(lane + from);
        sums_[lane + (other + t * cut_.group)] = select(lane >= distance, before + mine, mine);
      }
      barrier();
      half = other;
    }
    Sums sums{{}, zero_};
    for (uint32_t t = 0; t < cut_.turns; ++t) {
      const uint32_t from = half + t * cut_.group;
      const Value before = sums_.load(select(lane > 0u, lane - 1u, 0u) + from);
      sums.before.push_back(sums.all + select(lane > 0u, before, zero_));
      sums.all = sums.all + sums_.load(constant(u32, from + cut_.group - 1));
    }
    barrier();
    return sums;
  }

 private:
  const ScanCut& cut_;
  Value zero_;
  Array sums_;
};

}  // namespace

std::string ScanCut::key() const {
  return fmt::format("{}x{}{} {}", group, turns, by_four ? "v" : "", subgroup);
}

ScanCut scan_cut(const Rows& rows, const RowBinding& source, DType stored,
                 const DeviceInfo& device) {
  const ir::Capabilities& has = device.capabilities;
  const bool wide = dtype_bytes(register_type(source.chain.output)) > 4;
  ScanCut cut;
  cut.by_four = source.by_four && dtype_bytes(kernel_type(stored)) <= 4;
  // The subgroups' sums must fit one subgroup.
  const auto by_subgroups = [&](uint32_t group) {
    const uint32_t size = has.subgroup_size;
    return !wide && size >= 8 && group % size == 0 && group / size <= size;
  };
  if (by_subgroups(cut.group)) cut.subgroup = has.subgroup_size;
  // Long rows, too few to fill a device.
  if (rows.length > 8192 && rows.outer <= 128 && has.max_group_size >= 1024 && by_subgroups(1024))
    cut.group = 1024;
  while (cut.turns < (wide ? 2u : 4u) && cut.piece() < rows.length) cut.turns *= 2;
  return cut;
}

ir::Kernel cumsum_kernel(const RowBinding& source, DType stored, bool reverse, const ScanCut& cut) {
  return kernel("cumsum", cut.group, [&] {
    if (cut.subgroup) require_subgroup_size(cut.subgroup);
    RowCode x(source);
    const Array y = out("y", kernel_type(stored));
    const Value length = param("length", u32);
    x.declare_params(length, constant(u32, 1));
    const DType type = register_type(source.chain.output);
    const Value zero = zero_of(type), row = group_id();
    const auto place = [&](Value i) { return reverse ? length - 1u - i : i; };

    // Four elements from i on. Loads are clamped to the row; elements beyond it are zeros.
    const auto four_from = [&](Value i) -> std::vector<Value> {
      std::vector<Value> four;
      if (cut.by_four) {
        const Value at = min(i, length - 4u);
        const auto loaded = x.four_at(row, reverse ? length - 4u - at : at);
        four.assign(loaded.begin(), loaded.end());
        if (reverse) four.assign(loaded.rbegin(), loaded.rend());
      } else {
        for (uint32_t k = 0; k < 4; ++k) four.push_back(x.at(row, place(min(i + k, length - 1u))));
      }
      for (uint32_t k = 0; k < 4; ++k)
        four[k] = select(cut.by_four ? i < length : i + k < length, four[k], zero);
      return four;
    };
    const auto store = [&](Value i, const std::vector<Value>& sums) {
      std::vector<Value> made;
      for (const Value& each : sums) made.push_back(to_stored(each, stored));
      if (cut.by_four) {
        if (reverse) std::swap(made[0], made[3]), std::swap(made[1], made[2]);
        if_(i < length, [&] {
          y.store(row * length + (reverse ? length - 4u - i : i),
                  vec(made[0], made[1], made[2], made[3]));
        });
        return;
      }
      for (uint32_t k = 0; k < 4; ++k)
        if_(i + k < length, [&] { y[row * length + place(i + k)] = made[k]; });
    };

    const auto walk = [&](auto lanes) {
      Var carry(type, zero, "carry");
      for_(0u, length, cut.piece(), [&](Value first) {
        std::vector<std::vector<Value>> running;
        const auto own = [&](uint32_t t) { return first + (local_id() + t * cut.group) * 4u; };
        for (uint32_t t = 0; t < cut.turns; ++t) running.push_back(four_from(own(t)));
        std::vector<Value> totals;
        for (std::vector<Value>& four : running) {
          for (uint32_t k = 1; k < 4; ++k) four[k] = four[k - 1] + four[k];
          totals.push_back(four[3]);
        }
        const Sums sums = lanes.of(totals);
        for (uint32_t t = 0; t < cut.turns; ++t) {
          const Value base = carry + sums.before[t];
          for (Value& each : running[t]) each = base + each;
          store(own(t), running[t]);
        }
        carry += sums.all;
      });
    };
    if (cut.subgroup)
      walk(BySubgroups(cut, type));
    else
      walk(ByDoubling(cut, type));
  });
}

}  // namespace prism::ops
