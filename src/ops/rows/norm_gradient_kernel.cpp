// Kernels of the gradients of norms. A subgroup or a group has whole rows in registers, and adds
// the gradients of weight and bias over all its rows; a second launch adds those of all groups in
// order.
#include "ops/rows/norm_gradient_kernel.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/kernel.h"
#include "tensor/chain/chain_kernel.h"

namespace prism {

using namespace dsl;

namespace {

constexpr uint32_t kGroup = 256;
constexpr uint32_t kMostOwn = 32;  // elements of a row in a lane: four values each, in registers
constexpr uint32_t kColumns = 32;  // of a group that adds the sums of groups

struct Variant {
  bool centred = true, weight = true;
  DType g = DType::f32;
  uint32_t lanes = 32;  // of a row: a subgroup of 32, or the group
  uint32_t unit = 4;    // elements of a load
  uint32_t units = 1;   // loads of a lane
  std::string key() const {
    return fmt::format("norm_gradient {} {} {} {} {} {}", centred, weight, dtype_name(g), lanes,
                       unit, units);
  }
};

Variant variant_of(int64_t length) {
  Variant v;
  v.unit = length % 4 == 0 ? 4 : 1;
  v.lanes = length <= int64_t{32} * kMostOwn ? 32 : kGroup;
  const int64_t each = int64_t{v.unit} * v.lanes;
  v.units = static_cast<uint32_t>(std::max<int64_t>(1, (length + each - 1) / each));
  return v;
}

ir::Kernel rows_kernel(const Variant& v) {
  return kernel("norm_gradient", kGroup, [&] {
    const bool alone = v.lanes == kGroup;
    if (!alone) require_subgroup_size(v.lanes);
    const In x = in("x", f32), g = in("g", v.g);
    std::optional<In> weight;
    if (v.weight) weight = in("weight", f32);
    const Array slopes = out("slopes", f32), parts = out("parts", f32);
    const Value rows = param("rows", u32), length = param("length", u32),
                turns = param("turns", u32), epsilon = param("epsilon", f32);
    const uint32_t owners = kGroup / v.lanes, own = v.unit * v.units;
    const Value lane = local_id() % v.lanes, owner = local_id() / v.lanes;
    const Value count = cast(f32, length);
    const auto total = [&](Value one) { return alone ? group_sum(one) : subgroup_sum(one); };
    const auto column = [&](uint32_t u) { return (lane + u * v.lanes) * v.unit; };
    const auto elements = [&](const In& from, Value wanted, Value at) {
      const Value loaded = from.load_if(wanted, at, v.unit);
      std::vector<Value> result;
      for (uint32_t i = 0; i < v.unit; ++i) {
        const Value one = v.unit == 1 ? loaded : loaded[i];
        result.push_back(one.element() == f32 ? one : cast(f32, one));
      }
      return result;
    };
    std::vector<Var> weight_sums, bias_sums;
    for (uint32_t i = 0; i < own; ++i) {
      weight_sums.emplace_back(f32, 0.0f, "weight_sum");
      bias_sums.emplace_back(f32, 0.0f, "bias_sum");
    }
    for_(turns, [&](Value turn) {
      const Value row = (turn * group_count(0) + group_id()) * owners + owner;
      std::vector<Value> wanted, normed, given;
      for (uint32_t u = 0; u < v.units; ++u) {
        wanted.push_back(row < rows && column(u) < length);
        const Value at = row * length + column(u);
        for (const Value each : elements(x, wanted[u], at)) normed.push_back(each);
        for (const Value each : elements(g, wanted[u], at)) given.push_back(each);
      }
      const auto sum_of = [&](const std::function<Value(uint32_t)>& f) {
        Value sum = f(0);
        for (uint32_t i = 1; i < own; ++i) sum = sum + f(i);
        return total(sum) / count;
      };
      if (v.centred) {
        const Value mean = sum_of([&](uint32_t i) { return normed[i]; });
        for (uint32_t i = 0; i < own; ++i)
          normed[i] = select(wanted[i / v.unit], normed[i] - mean, 0.0f);
      }
      const Value spread = sum_of([&](uint32_t i) { return normed[i] * normed[i]; });
      const Value scale = 1.0f / sqrt(spread + epsilon);
      std::vector<Value> weighted = given;
      for (uint32_t u = 0; u < v.units; ++u) {
        const std::vector<Value> by =
            weight ? elements(*weight, column(u) < length, column(u)) : std::vector<Value>();
        for (uint32_t i = u * v.unit; i < (u + 1) * v.unit; ++i) {
          normed[i] = normed[i] * scale;
          if (weight) weighted[i] = given[i] * by[i % v.unit];
          weight_sums[i] = fma(given[i], normed[i], weight_sums[i]);
          bias_sums[i] += given[i];
        }
      }
      const Value along = sum_of([&](uint32_t i) { return weighted[i] * normed[i]; });
      const Value mean =
          v.centred ? sum_of([&](uint32_t i) { return weighted[i]; }) : constant(f32, 0.0);
      for (uint32_t u = 0; u < v.units; ++u) {
        std::vector<Value> results;
        for (uint32_t i = u * v.unit; i < (u + 1) * v.unit; ++i)
          results.push_back(scale * (weighted[i] - normed[i] * along - mean));
        const Value at = row * length + column(u);
        slopes.store_if(
            wanted[u], at,
            v.unit == 1 ? results[0] : vec(results[0], results[1], results[2], results[3]));
      }
    });
    // parts: [group][weight, bias][length].
    const auto place = [&](uint32_t which, Value at) {
      return (group_id() * 2u + which) * length + at;
    };
    if (alone) {
      for (uint32_t i = 0; i < own; ++i) {
        const Value at = column(i / v.unit) + i % v.unit;
        parts.store_if(at < length, place(0, at), weight_sums[i]);
        parts.store_if(at < length, place(1, at), bias_sums[i]);
      }
      return;
    }
    auto tile = shared(f32, kGroup, "tile");
    for (uint32_t which = 0; which < 2; ++which)
      for (uint32_t i = 0; i < own; ++i) {
        barrier();
        tile[local_id()] = which == 0 ? weight_sums[i] : bias_sums[i];
        barrier();
        if_(owner == 0u, [&] {
          Value sum = tile.load(lane);
          for (uint32_t o = 1; o < owners; ++o) sum = sum + tile.load(lane + o * v.lanes);
          const Value at = column(i / v.unit) + i % v.unit;
          parts.store_if(at < length, place(which, at), sum);
        });
      }
  });
}

// Adds the parts of all groups. Group x: 32 columns. Group y: weight or bias.
ir::Kernel sums_kernel() {
  return kernel("norm_gradient_sums", kGroup, [] {
    const In parts = in("parts", f32);
    const Array weight = out("weight", f32), bias = out("bias", f32);
    const Value length = param("length", u32), count = param("count", u32);
    auto tile = shared(f32, kGroup, "tile");
    const Value at = group_id(0) * kColumns + local_id() % kColumns;
    Var sum(f32, 0.0f, "sum");
    if_(at < length, [&] {
      for_(local_id() / kColumns, count, kGroup / kColumns,
           [&](Value part) { sum += parts[(part * 2u + group_id(1)) * length + at]; });
    });
    tile[local_id()] = sum;
    barrier();
    if_(local_id() < kColumns && at < length, [&] {
      Value all = tile.load(local_id());
      for (uint32_t i = 1; i < kGroup / kColumns; ++i)
        all = all + tile.load(local_id() + i * kColumns);
      weight.store_if(group_id(1) == 0u, at, all);
      bias.store_if(group_id(1) == 1u, at, all);
    });
  });
}

}  // namespace

bool has_norm_gradient_kernel(int64_t row_length) {
  return row_length > 0 && row_length <= int64_t{kGroup} * kMostOwn;
}

void launch_norm_gradient(DeviceCall& call, bool centred, double epsilon) {
  const DeviceView &x = call.input(0), &g = call.input(1);
  const int64_t length = x.layout.shape[-1], rows = x.elements() / length;
  Variant v = variant_of(length);
  v.centred = centred;
  v.weight = call.input_count() > 2;
  v.g = g.type.plain();
  const int64_t owners = kGroup / v.lanes;
  // Two groups for each compute unit hide their waits, and leave few parts to add.
  const int64_t most = 2 * std::max<int64_t>(1, call.info().compute_units);
  const int64_t groups = std::clamp<int64_t>((rows + owners - 1) / owners, 1, most);
  const int64_t turns = (rows + groups * owners - 1) / (groups * owners);
  const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
  const DeviceView parts = call.scratch({groups, 2, length}, DType::f32);
  std::vector<DeviceView> buffers = {x, g};
  if (v.weight) buffers.push_back(call.input(2));
  buffers.push_back(call.output(0));
  buffers.push_back(parts);
  call.launch(v.key(), [&] { return rows_kernel(v); }, {word(groups), 1, 1}, buffers,
              {word(rows), word(length), word(turns), static_cast<float>(epsilon)});
  call.launch("norm_gradient_sums", sums_kernel, {groups_for(length, kColumns), 2, 1},
              {parts, call.output(1), call.output(2)}, {word(length), word(groups)});
}

}  // namespace prism
