// The epilogue of the q, k and v products: rotates q and k and writes k and v to the caches.
//
// A rotation needs two elements of a head, so a subgroup takes weight rows in pairs: rows() gives
// the rows at 2 i and 2 i + 1 in its order.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/dtype.h"
#include "prism/kernel.h"
#include "prism/ops/rope.h"

namespace prism::ops {

// The specialisation of a kernel. Products 0, 1 and 2 are q, k and v.
struct CacheRows {
  DType cache;         // of both caches, f32, f16 or bf16
  uint32_t dim = 0;    // of a head
  uint32_t pairs = 0;  // rotated pairs per head; 0: none
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
  // For a rotated product: the weight rows of the pair that starts at this place in the order.
  std::pair<dsl::Value, dsl::Value> rows(dsl::Value place) const;
  // Prefetches what the lane's results need. x_row: their row of x; place: where their pair starts,
  // if rotated. Both are arbitrary for a lane without results.
  void ask(size_t product, dsl::Value x_row, dsl::Value place);
  // Stores one result that is not rotated; n: weight rows of the product.
  void store(size_t product, dsl::Value x_row, dsl::Value n, dsl::Value weight_row,
             dsl::Value value) const;
  // Rotates and stores both results of the pair that starts at this place.
  void store_pair(size_t product, dsl::Value x_row, dsl::Value n, dsl::Value place, dsl::Value a,
                  dsl::Value b) const;

 private:
  dsl::Value pair_of(dsl::Value place) const;

  CacheRows spec_;
  std::vector<dsl::Array> targets_;
  dsl::In places_;
  std::optional<dsl::In> frequencies_;
  std::optional<dsl::Value> cache_rows_, magnitude_;
  std::optional<dsl::Var> position_, cache_row_, frequency_;  // set by ask()
};

}  // namespace prism::ops
