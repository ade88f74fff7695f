// Products of few rows with any weights, bound by reading the weights once: the kernels, and the
// epilogue of the sums of vector_sums.h.
#include <algorithm>

#include <fmt/format.h>

#include "ops/products/cache_tail.h"
#include "ops/products/product_kernels.h"
#include "ops/products/rounded_rows.h"
#include "ops/products/spread_sums.h"
#include "ops/products/vector_sums.h"
#include "ops/products/weight_units.h"
#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

namespace {

void check(const VectorProduct& p) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("vector_product of {} weights: {}", p.weight.name(), what));
  };
  if (p.x_rows < 1 || p.x_rows > 8) fail(fmt::format("{} rows of x; 1 to 8", p.x_rows));
  if (p.experts && p.x_rows != 1) fail("experts take one row of x at a time");
  if (p.subgroups % p.split != 0)
    fail(fmt::format("{} subgroups do not share rows by {}", p.subgroups, p.split));
  const auto makes = [&](TailAccess access) { return access == TailAccess::made; };
  if (p.pair != (p.tail && std::ranges::any_of(p.tail->access, makes)))
    fail("a pair of matrices is what a tail takes two products of");
  if (sums_of(p) > VectorProduct::kWarp)
    fail(fmt::format("{} sums a lane; at most {}", sums_of(p), VectorProduct::kWarp));
  const uint32_t batch =
      VectorProduct::kWarp * p.split * p.units_ahead * WeightReader::unit_elements(p.weight);
  if (p.weight.is_block() && !p.rounded && p.k_tile % batch != 0)
    fail(fmt::format("a tile of {} elements; a multiple of {}", p.k_tile, batch));
  if (p.at_once && p.weight.is_block() && !p.rounded) fail("rows at once by rounded rows only");
  if (!p.rounds && p.turns != 1) fail(fmt::format("{} turns; only to round results", p.turns));
  if (p.rounds && (p.rows_of_group() % VectorProduct::kWarp != 0 || p.experts || p.y != f32 ||
                   (p.weight.is_block() && !p.rounded)))
    fail(fmt::format("results of {} rows a group are not rounded", p.rows_of_group()));
  if ((p.unscaled && (!p.rounds || p.rows_of_group() != VectorProduct::kWarp || p.x_rows != 1)) ||
      (p.scale_epsilon && (!p.rounded || p.experts || p.x_rows != 1)))
    fail("norms are done for one rounded row");
}

std::string name_of(const VectorProduct& p) {
  std::string name = fmt::format("vector_product_{}_{}_{}_x{}", p.weight.name(), dtype_name(p.x),
                                 dtype_name(p.y), p.x_rows);
  if (p.pair) name += "_pair";
  if (p.tail) name += "_tail";
  if (p.experts) name += "_experts";
  if (!p.aligned) name += "_unaligned";
  if (p.weight.is_block()) name += p.rounded ? "_rounded" : p.shuffles ? "" : "_atomics";
  if (p.rounds) name += fmt::format("_rounds{}", p.turns);
  if (p.unscaled) name += "_unscaled";
  if (p.scale_epsilon) name += "_scales";
  return name + fmt::format("_{}s{}r{}u{}{}", p.subgroups, p.split, p.rows_each, p.units_ahead,
                            !p.at_once  ? ""
                            : p.x_first ? "_at_once_x"
                                        : "_at_once");
}

// Adds up each of a lane's sums over its subgroup and stores the totals from `at` on.
void store_totals(const std::vector<Var>& sums, const Array& totals, Value at) {
  const SpreadSums spread = spread_sums({sums.begin(), sums.end()});
  if_(spread.mine && spread.first < static_cast<uint32_t>(sums.size()),
      [&] { totals[at + spread.first] = spread.held[0]; });
}

// The sums of all subgroups, in shared memory.
class Totals {
 public:
  // scale: of all of them.
  Totals(const std::vector<Var>& sums, uint32_t subgroups, std::optional<Value> scale)
      : count_(static_cast<uint32_t>(sums.size())),
        parts_(shared(f32, uint64_t(subgroups) * count_, "parts")),
        scale_(std::move(scale)) {
    store_totals(sums, parts_, subgroup_id() * count_);
    barrier();
  }
  // That of a number, of all subgroups that share its row with this one.
  Value of(const VectorProduct& p, Value number) const {
    Value total = constant(f32, 0.0);
    for (uint32_t s = 0; s < p.split; ++s)
      total = total + parts_.load((subgroup_id() / p.split * p.split + s) * count_ + number);
    return scale_ ? total * *scale_ : total;
  }

 private:
  uint32_t count_;
  Array parts_;
  std::optional<Value> scale_;
};

// Each of the first lanes finishes a pair of results, those of two weight rows.
void finish_pairs(const VectorProduct& p, const Operands& o, Value group, const Totals& totals) {
  const Value lane = subgroup_lane(), pair = lane / p.x_rows, i = lane % p.x_rows;
  const Value first = first_row_of(p, group) + pair * 2u;
  const Value mine =
      lane < p.rows_each / 2 * p.x_rows && first < o.n && subgroup_id() % p.split == 0u;
  if_(mine && i < o.row_count, [&] {
    const auto [one, other] = o.cache->rows(first);
    const auto result = [&](uint32_t half, Value row) {
      const Value total = totals.of(p, (pair * 2u + half) * p.x_rows + i);
      return o.tail.apply(total, i, row, i * o.y_stride + row);
    };
    const Value a = result(0, one), b = result(1, other);
    o.cache->store_pair(o.number, i, o.n, first, a, b);
  });
}

// Each of the first lanes finishes one result.
void finish(const VectorProduct& p, const Operands& o, Value group, const Totals& totals) {
  if (o.rotates()) return finish_pairs(p, o, group, totals);
  const uint32_t results = p.rows_each * p.x_rows;
  const Value lane = subgroup_lane();
  // sums lie [stream][i], so result j is row j / x_rows of the weights and row j % x_rows of x.
  const Value r = first_row_of(p, group) + lane / p.x_rows, i = lane % p.x_rows;
  const Value mine = lane < results && r < o.n && subgroup_id() % p.split == 0u;
  const Value place = p.experts ? group_id(1) * o.y_stride + r : i * o.y_stride + r;
  const std::optional<Value> known = expert_is_known(o);
  if_(p.experts ? mine : mine && i < o.row_count, [&] {
    const Value own = totals.of(p, lane);
    std::optional<Value> up;
    if (p.pair) up = totals.of(p, results + lane);
    const Value result = o.tail.apply(own, p.experts ? group_id(1) : i, r, place, up);
    if (o.cache) return o.cache->store(o.number, i, o.n, r, result);
    o.y[place] = known ? select(*known, result, constant_bits(f32, 0x7fc00000u)) : result;
  });
}

// Results that are rounded as they are stored: those of a group meet in shared memory, and a
// subgroup finishes 32 of one row at a time.
void round_results(const VectorProduct& p, const Operands& o) {
  constexpr uint32_t kBlock = VectorProduct::kWarp;
  const uint32_t count = sums_of(p);
  std::vector<Var> sums = zero_sums(count);
  RowScales scales(p);
  std::optional<Value> norm_weight;  // from afar, so on its way while sums are added up
  if (p.unscaled) norm_weight = o.norm_weight->load(group_id() * kBlock + subgroup_lane());
  const Array staged = shared(f32, uint64_t(p.turns) * p.subgroups * count, "parts");
  const auto stage = [&](Value turn) {
    store_totals(sums, staged, (turn * p.subgroups + subgroup_id()) * count);
  };
  add_up(p, o, group_id(), sums, scales, stage);
  const std::optional<Value> scale = scales.scale(o.x, o.k);
  barrier();
  const uint32_t tasks = p.rows_of_group() / kBlock * p.x_rows;
  for (uint32_t first = 0; first < tasks; first += p.subgroups) {
    const Value task = min(subgroup_id() + first, tasks - 1), i = task % p.x_rows;
    const Value row = task / p.x_rows * kBlock + subgroup_lane(), in_turn = row % p.rows_of_turn();
    const Value subgroup = row / p.rows_of_turn() * p.subgroups + in_turn / p.rows_each * p.split;
    const Value result = in_turn % p.rows_each * p.x_rows + i;
    const auto total_of = [&](uint32_t matrix) {
      const Value number = matrix * p.rows_each * p.x_rows + result;
      Value total = constant(f32, 0.0);
      for (uint32_t s = 0; s < p.split; ++s)
        total = total + staged.load((subgroup + s) * count + number);
      return scale ? total * *scale : total;
    };
    const Value own = total_of(0);
    std::optional<Value> up;
    if (p.pair) up = total_of(1);
    const Value r = group_id() * p.rows_of_group() + row;
    const Value wanted = subgroup_id() + first < tasks && r < o.n && i < o.row_count;
    Var value(f32, 0.0f, "value");
    if_(wanted, [&] { value = o.tail.apply(own, i, r, i * o.y_stride + r, up); });
    if (!p.unscaled) {
      store_rounded_element(o.y, wanted, rounded_start(i, o.n), o.n, r, value);
      continue;
    }
    o.y.store_if(wanted, r, value);
    store_rounded_element(*o.rows, wanted, constant(u32, 0), o.n, r, Value(value) * *norm_weight);
    const Value squares = subgroup_sum(Value(value) * value);
    o.rows->store_if(wanted && subgroup_lane() == 0u, o.n / 8u * 3u + r / kBlock,
                     bitcast(u32, squares));
  }
}

DType stored_type(const VectorProduct& p) { return p.weight.is_block() ? u32 : p.weight.plain(); }

In input_of(const VectorProduct& p, const std::string& suffix = {}) {
  return in("x" + suffix, p.weight.is_block() && p.rounded ? u32 : p.x);
}

}  // namespace

ir::Kernel vector_product(const VectorProduct& p) {
  check(p);
  return kernel(name_of(p), p.subgroups * VectorProduct::kWarp, [&] {
    require_subgroup_size(VectorProduct::kWarp);
    std::vector<In> matrices = {weights("w", stored_type(p))};
    if (p.pair) matrices.push_back(weights("w_up", stored_type(p)));
    const In x = input_of(p);
    std::optional<In> ids;
    if (p.experts) ids = in("ids", u32);
    TailCode tail(p.tail);
    std::optional<In> norm_weight;
    if (p.unscaled) norm_weight = weights("norm_weight", f32);
    const Array y = out("y", p.rounds && !p.unscaled ? u32 : p.y);
    std::optional<Array> normed;
    if (p.unscaled) normed = out("rows", u32);
    const Value n = param("n", u32), k = param("k", u32);
    const Value row_count = param(p.experts ? "x_share" : "rows", u32);
    const Value x_stride = param("x_stride", u32), y_stride = param("y_stride", u32);
    std::optional<Value> experts;
    if (p.experts) experts = param("experts", u32);
    const WeightParams layout(p.weight);
    tail.declare_params();
    Operands operands{matrices, x,         ids,      tail,     y,       n,
                      k,        row_count, x_stride, y_stride, experts, layout};
    operands.norm_weight = norm_weight;
    operands.rows = normed;
    if (p.rounds) return round_results(p, operands);
    std::vector<Var> sums = zero_sums(sums_of(p));
    RowScales scales(p);
    add_up(p, operands, group_id(), sums, scales);
    finish(p, operands, group_id(), Totals(sums, p.subgroups, scales.scale(x, k)));
  });
}

ir::Kernel vector_products(const std::vector<VectorProduct>& products, const ProductRows& rows_of_x,
                           const CacheRows* cache) {
  std::string name = cache ? "vector_products_to_cache" : "vector_products";
  const bool one_x = rows_of_x.buffers.empty();
  const auto goes_to_cache = [&](size_t i) {
    return products.size() == 3 && products[i].y == f32 && cache->dim % 2 == 0 &&
           (!cache->rotates(i) || products[i].rows_each % 2 == 0);
  };
  for (size_t i = 0; i < products.size(); ++i) {
    const VectorProduct &p = products[i], &first = products[0];
    check(p);
    if (p.experts || p.pair || p.rounds || p.x != first.x || p.x_rows != first.x_rows ||
        p.rounded != first.rounded || p.subgroups != first.subgroups ||
        p.scale_epsilon != first.scale_epsilon || p.weight.is_block() != first.weight.is_block() ||
        products.size() > kSideBySide || (cache && !goes_to_cache(i)) ||
        (!one_x && (cache || p.scale_epsilon || (p.rounded && rows_of_x.own_starts))))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("vector_products: {} of them, {} beside {}; see product_kernels.h",
                              products.size(), name_of(p), name_of(first)));
    name += name_of(p).substr(std::string("vector_product").size());
  }
  return kernel(name, products[0].subgroups * VectorProduct::kWarp, [&] {
    require_subgroup_size(VectorProduct::kWarp);
    const auto named = [](const char* what, size_t i) { return fmt::format("{}{}", what, i); };
    std::vector<In> matrices;
    for (size_t i = 0; i < products.size(); ++i)
      matrices.push_back(weights(named("w", i), stored_type(products[i])));
    std::vector<In> xs;
    for (uint32_t i = 0; i < rows_of_x.buffer_count(); ++i)
      xs.push_back(input_of(products[0], i == 0 ? "" : fmt::format("{}", i)));
    std::vector<TailCode> tails;
    std::vector<Array> results;
    for (size_t i = 0; i < products.size(); ++i)
      tails.emplace_back(products[i].tail, named("_", i));
    std::optional<CacheTail> to_cache;
    if (cache) to_cache.emplace(*cache);
    for (size_t i = 0; i < products.size(); ++i)
      results.push_back(to_cache ? to_cache->target(i) : out(named("y", i), products[i].y));
    std::optional<Value> same_k, same_stride;
    if (!rows_of_x.own_k) same_k = param("k", u32);
    const Value rows = param("rows", u32);
    if (!rows_of_x.own_k) same_stride = param("x_stride", u32);
    std::vector<Operands> all;
    for (size_t i = 0; i < products.size(); ++i) {
      const Value k = same_k ? *same_k : param(named("k", i), u32);
      const Value x_stride = same_stride ? *same_stride : param(named("x_stride", i), u32);
      std::optional<Value> x_from;
      if (rows_of_x.own_starts) x_from = param(named("x_from", i), u32);
      const Value n = param(named("n", i), u32);
      const WeightParams layout(products[i].weight, named("_", i));
      const In& x = xs[rows_of_x.buffer_of(i)];
      all.push_back(
          {{matrices[i]}, x, {}, tails[i], results[i], n, k, rows, x_stride, n, {}, layout});
      all.back().cache = to_cache ? &*to_cache : nullptr;
      all.back().number = i;
      all.back().x_from = x_from;
    }
    for (Operands& each : all) each.tail.declare_params();
    if (to_cache) to_cache->declare_params();
    // The groups of the first, then those of the next. What the whole group arrives at stands
    // outside of the branches: some compilers for CPUs lose values where barriers stand in both.
    const auto in_its_branch = [&](const std::function<void(size_t, Value)>& write) {
      const std::function<void(size_t, Value)> from = [&](size_t i, Value group) {
        if (i + 1 == products.size()) return write(i, group);
        const uint32_t each = products[i].rows_of_group();
        const Value own = (all[i].n + (each - 1)) / each;
        if_(
            group < own, [&] { write(i, group); }, [&] { from(i + 1, group - own); });
      };
      from(0, group_id());
    };
    uint32_t most_sums = 0;
    for (const VectorProduct& p : products) most_sums = std::max(most_sums, sums_of(p));
    std::vector<Var> sums = zero_sums(most_sums);
    RowScales scales(products[0]);
    in_its_branch([&](size_t i, Value group) { add_up(products[i], all[i], group, sums, scales); });
    const Totals totals(sums, products[0].subgroups, scales.scale(xs[0], all[0].k));
    in_its_branch([&](size_t i, Value group) { finish(products[i], all[i], group, totals); });
  });
}

}  // namespace prism::ops
