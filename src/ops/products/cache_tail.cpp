// Rotates the results of products and stores them in the caches.
#include "ops/products/cache_tail.h"

#include <fmt/format.h>

#include "ops/attention/rope_angle.h"
#include "ops/index/index_reading.h"
#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

std::string CacheRows::key() const {
  return fmt::format("to cache {} {} {} {}", dtype_name(cache), dim, pairs,
                     static_cast<int>(pairing));
}

CacheTail::CacheTail(const CacheRows& spec)
    : spec_(spec),
      targets_{out("rotated", f32), inout("k_cache", kernel_type(spec.cache)),
               inout("v_cache", kernel_type(spec.cache))},
      places_(in("places", u32)) {
  if (spec.pairs) frequencies_ = in("frequencies", f32);
}

void CacheTail::declare_params() {
  cache_rows_ = param("cache_rows", u32);
  magnitude_ = param("magnitude", f32);
  cache_row_.emplace(u32, 0u, "cache_row");
  if (!frequencies_) return;
  position_.emplace(u32, 0u, "position");
  frequency_.emplace(f32, 0.0f, "frequency");
}

Value CacheTail::pair_of(Value place) const { return place % spec_.dim / 2u; }

std::pair<Value, Value> CacheTail::rows(Value place) const {
  if (spec_.pairing == RopePairing::adjacent) return {place, place + 1u};
  // The second by its distance: compilers keep fewer addresses then.
  const Value pair = pair_of(place), turned = place - pair;
  if (2 * spec_.pairs == spec_.dim) return {turned, turned + spec_.pairs};
  const Value rotated = pair < spec_.pairs, first = select(rotated, turned, place);
  return {first, first + select(rotated, spec_.pairs, 1u)};
}

void CacheTail::ask(size_t product, Value x_row, Value place) {
  if (product > 0) *cache_row_ = load_index(places_, x_row * 2u + 1u, false);
  if (!rotates(product)) return;
  *position_ = places_[x_row * 2u];
  const Value pair = pair_of(place);
  *frequency_ = (*frequencies_)[2 * spec_.pairs == spec_.dim ? pair : min(pair, spec_.pairs - 1)];
}

void CacheTail::store(size_t product, Value x_row, Value n, Value weight_row, Value value) const {
  if (product == 0) {
    targets_[0][x_row * n + weight_row] = value;
    return;
  }
  const Value row = *cache_row_;
  if_(row < *cache_rows_,
      [&] { targets_[product][row * n + weight_row] = to_stored(value, spec_.cache); });
}

void CacheTail::store_pair(size_t product, Value x_row, Value n, Value place, Value a,
                           Value b) const {
  const auto [first, second] = rows(place);
  const auto store_both = [&, i = first, j = second](Value at_first, Value at_second) {
    store(product, x_row, n, i, at_first);
    store(product, x_row, n, j, at_second);
  };
  const auto turn = [&] {
    const auto [c, s] =
        turn_of(cast(f32, bitcast(i32, Value(*position_))), *frequency_, *magnitude_);
    store_both(a * c - b * s, a * s + b * c);
  };
  if (2 * spec_.pairs == spec_.dim) return turn();
  if_(pair_of(place) < spec_.pairs, turn, [&] { store_both(a, b); });
}

}  // namespace prism::ops
