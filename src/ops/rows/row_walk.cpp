// Row traversal in kernels: rows that fit stay in registers, others are read again for each pass.
#include "ops/rows/row_walk.h"

#include <fmt/format.h>

#include "tensor/chain/chain_kernel.h"

namespace prism {

using namespace dsl;

std::string RowWalk::key() const {
  return fmt::format("{}/{}x{}{}{}{} {}", group, lanes, held, by_four ? "v" : "",
                     subgroup ? "s" : "", type == f64 ? "d" : "", subgroup_lanes);
}

std::array<uint32_t, 3> RowWalk::groups(int64_t rows) const {
  return {groups_for(rows, group / lanes), 1, 1};
}

RowWalk walk_for(const Rows& rows, const RowBinding& binding, const DeviceInfo& device) {
  RowWalk walk;
  walk.type = register_type(binding.chain.output);
  const bool wide = walk.type == f64;
  walk.by_four = binding.by_four && !wide;
  const ir::Capabilities& has = device.capabilities;
  if (rows.length <= 512) {
    walk.lanes = 32;
    walk.subgroup = has.subgroup_size == 32 && !wide;
  } else if (has.max_group_size >= 1024 &&
             (rows.length > 8192 || (rows.length >= 4096 && rows.outer <= 128))) {
    walk.group = walk.lanes = 1024;  // very long rows, or too few rows to fill a device
  }
  // Other lengths load single elements; registers would gain less than the extra kernels cost.
  if (walk.by_four) {
    const int64_t fours = (rows.length / 4 + walk.lanes - 1) / walk.lanes;
    for (uint32_t held = 1; held <= 8 && walk.held == 0; held *= 2)
      if (fours <= held) walk.held = held;
  }
  if (has.subgroup_size >= 8 && walk.group % has.subgroup_size == 0 && !wide)
    walk.subgroup_lanes = has.subgroup_size;
  return walk;
}

RowLoop::RowLoop(const RowWalk& walk, RowCode& source)
    : walk_(walk),
      source_(source),
      rows_(param("rows", u32)),
      length_(param("length", u32)),
      lane_(local_id() % walk.lanes),
      row_(group_id() * (walk.group / walk.lanes) + local_id() / walk.lanes) {
  source.declare_params(length_, constant(u32, 1));
  if (walk.subgroup)
    require_subgroup_size(walk.lanes);
  else if (walk.subgroup_lanes)
    require_subgroup_size(walk.subgroup_lanes);
  if (walk.lanes < walk.group && !walk.subgroup) tile_ = shared(walk.type, walk.group, "joined");
}

Value RowLoop::lowest() const {
  return walk_.type == f64 ? constant_bits(f64, 0xfff0000000000000u)
                           : constant_bits(f32, 0xff800000u);
}

void RowLoop::load(double fill) {
  for (uint32_t n = 0; n < walk_.held; ++n) {
    for (uint32_t k = 0; k < 4; ++k)
      held_.emplace_back(f32, fill < -1e38 ? lowest() : constant(f32, fill), "held");
    const Value i = (lane_ + n * walk_.lanes) * 4u;
    if_(row_ < rows_ && i < length_, [&] {
      const auto four = source_.four_at(row_, i);
      for (uint32_t k = 0; k < 4; ++k) held_[n * 4 + k] = four[k];
    });
  }
}

std::vector<Value> RowLoop::shared_ahead(const In& from, DType stored) const {
  std::vector<Value> values;
  if (walk_.held > 2) return values;
  for (uint32_t n = 0; n < walk_.held; ++n) {
    const Value i = (lane_ + n * walk_.lanes) * 4u, four = from.load_if(i < length_, i, 4);
    for (uint32_t k = 0; k < 4; ++k) values.push_back(from_loaded(four[k], stored));
  }
  return values;
}

void RowLoop::each(const Visit& f) {
  if (walk_.held) {
    for (uint32_t n = 0; n < walk_.held; ++n) {
      turn_ = n;
      const Value i = (lane_ + n * walk_.lanes) * 4u;
      if_(row_ < rows_ && i < length_, [&] {
        std::vector<Value> four;
        for (uint32_t k = 0; k < 4; ++k) four.push_back(held_[n * 4 + k]);
        f(four, i);
      });
    }
    return;
  }
  if_(row_ < rows_, [&] {
    if (walk_.by_four) {
      for_(lane_ * 4u, length_, walk_.lanes * 4, [&](Value i) {
        const auto four = source_.four_at(row_, i);
        f({four.begin(), four.end()}, i);
      });
    } else {
      for_(lane_, length_, walk_.lanes, [&](Value i) { f({source_.at(row_, i)}, i); });
    }
  });
}

void RowLoop::replace(const std::function<Value(Value)>& f) {
  for (Var& each : held_) each = f(each);
}

void RowLoop::map(const Map& f) {
  for (uint32_t n = 0; n < walk_.held; ++n) {
    turn_ = n;
    const Value i = (lane_ + n * walk_.lanes) * 4u;
    if_(row_ < rows_ && i < length_, [&] {
      const std::vector<Value> four(held_.begin() + n * 4, held_.begin() + n * 4 + 4);
      const std::vector<Value> results = f(four, i);
      for (uint32_t k = 0; k < 4; ++k) held_[n * 4 + k] = results[k];
    });
  }
}

void RowLoop::every_four(const std::function<void(Value, Value, Value)>& f) {
  for (uint32_t n = 0; n < walk_.held; ++n) {
    const Value quad = lane_ + n * walk_.lanes;
    const auto held = [&](uint32_t k) -> Value { return held_[n * 4 + k]; };
    f(row_ < rows_ && quad * 4u < length_, quad, vec(held(0), held(1), held(2), held(3)));
  }
}

void RowLoop::store(const Array& y, DType stored, const Map& f, const TailCode& tail) {
  each([&](const std::vector<Value>& x, Value i) {
    const Value place = row_ * length_ + i;
    std::vector<Value> results = f(x, i);
    if (results.size() == 4)
      results = tail.apply_four(results, row_, i, place);
    else
      results[0] = tail.apply(results[0], row_, i, place);
    for (Value& each : results) each = to_stored(each, stored);
    if (results.size() == 4)
      y.store(place, vec(results[0], results[1], results[2], results[3]));
    else
      y[place] = results[0];
  });
}

Value RowLoop::join(ReduceOp op, Value value) {
  if (walk_.lanes == walk_.group && walk_.subgroup_lanes) return join_subgroups(op, value);
  if (walk_.lanes == walk_.group) return group_reduce(op, value);
  if (walk_.subgroup) return subgroup_reduce(op, value);
  const Value lane = local_id();
  (*tile_)[lane] = value;
  barrier();
  for (uint32_t half = walk_.lanes / 2; half >= 1; half /= 2) {
    if_(lane_ < half, [&] {
      const Value a = tile_->load(lane), b = tile_->load(lane + half);
      (*tile_)[lane] = op == ReduceOp::add ? a + b : max(a, b);
    });
    barrier();
  }
  const Value result = tile_->load(lane - lane_);
  barrier();
  return result;
}

// The same order as group_reduce. The partial results have their own shared memory, so no second
// barrier is needed before it is reused.
Value RowLoop::join_subgroups(ReduceOp op, Value value) {
  const uint32_t size = walk_.subgroup_lanes, count = walk_.group / size;
  const Value partial = subgroup_reduce(op, value);
  if (count == 1) return partial;
  const Array parts = shared(f32, count, "parts");
  if_(subgroup_lane() == 0u, [&] { parts[subgroup_id()] = partial; });
  barrier();
  const Value none = op == ReduceOp::add ? number(0) : lowest();
  Value total = none;
  for (uint32_t first = 0; first < count; first += size) {
    const Value at = subgroup_lane() + first, part = parts.load(min(at, count - 1));
    const Value there = first + size <= count ? part : select(at < count, part, none);
    total = op == ReduceOp::add ? total + there : max(total, there);
  }
  return subgroup_reduce(op, total);
}

void RowLoop::once(const std::function<void()>& f) { if_(lane_ == 0u && row_ < rows_, f); }

std::vector<Value> shared_elements(const In& from, DType stored, DType type, Value i,
                                   size_t count) {
  if (count == 1) {
    const Value element = load_element(from, i, stored);
    return {element.element() == type ? element : cast(type, element)};
  }
  const Value four = from.load(i, 4);
  std::vector<Value> result;
  for (uint32_t k = 0; k < 4; ++k) result.push_back(from_loaded(four[k], stored));
  return result;
}

}  // namespace prism
