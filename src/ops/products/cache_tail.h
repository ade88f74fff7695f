// What follows the products of queries, keys and values in the same launch: queries and keys are
// rotated, keys and values go to the caches.
//
// A rotation takes two elements of a head, so a subgroup takes weight rows by pairs: in their order
// rows() gives those at 2 i and 2 i + 1.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/dtype.h"
#include "prism/kernel.h"
#include "prism/ops/rope.h"

namespace prism::ops {

// What a kernel is made for. Products 0, 1 and 2 are q, k and v.
struct CacheRows {
  DType cache;         // of both caches, f32, f16 or bf16
  uint32_t dim = 0;    // of a head
  uint32_t pairs = 0;  // that are rotated; 0: none
  RopePairing pairing = RopePairing::halves;

  bool rotates(size_t product) const { return product < 2 && pairs > 0; }
  std::string key() const;
};

class CacheTail {
 public:
  // Declares the buffers: rotated queries (f32), k_cache, v_cache, places (u32), [frequencies].
  explicit CacheTail(const CacheRows& spec);
  void declare_params();  // cache_rows, magnitude

  bool rotates(size_t product) const { return spec_.rotates(product); }
  const dsl::Array& target(size_t product) const { return targets_[product]; }
  // Of a rotated product: the weight rows of the pair that begins at this place of the order.
  std::pair<dsl::Value, dsl::Value> rows(dsl::Value place) const;
  // Loads what the lane's results will need, so that it is there by then: x_row is their row of x,
  // and where pairs are rotated theirs begins at this place. Both may be any where the lane has no
  // results.
  void ask(size_t product, dsl::Value x_row, dsl::Value place);
  // One result, which stays as it is; n: weight rows of the product.
  void store(size_t product, dsl::Value x_row, dsl::Value n, dsl::Value weight_row,
             dsl::Value value) const;
  // Both results of the pair that begins at this place.
  void store_pair(size_t product, dsl::Value x_row, dsl::Value n, dsl::Value place, dsl::Value a,
                  dsl::Value b) const;

 private:
  dsl::Value pair_of(dsl::Value place) const;

  CacheRows spec_;
  std::vector<dsl::Array> targets_;
  dsl::In places_;
  std::optional<dsl::In> frequencies_;
  std::optional<dsl::Value> cache_rows_, magnitude_;
  std::optional<dsl::Var> position_, cache_row_, frequency_;  // what was asked for
};

}  // namespace prism::ops
