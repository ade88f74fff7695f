// Sorts slots by expert into tiles of rows on the device: one group counts, scans and scatters.
#include "ops/products/product_kernels.h"
#include "prism/kernel.h"

namespace prism::ops {

using namespace dsl;

ir::Kernel expert_tables() {
  constexpr uint32_t kLanes = 256, kEach = kMostExperts / kLanes;
  return kernel("expert_tables", kLanes, [] {
    const In ids = in("ids", u32);
    const Array order = out("order", u32), tiles = out("tiles", u32);
    const Value slots = param("slots", u32), tile_m = param("tile_m", u32);
    const Value experts = param("experts", u32);
    const auto expert_or_first = [&](Value id) { return select(id < experts, id, 0u); };
    const Array counts = shared(u32, kMostExperts, "counts"),
                next = shared(u32, kMostExperts, "next");
    const Array sums = shared(u32, kLanes * 2, "sums");
    for (uint32_t i = 0; i < kEach; ++i) counts[local_id() + i * kLanes] = 0u;
    barrier();
    for_(local_id(), slots, kLanes,
         [&](Value slot) { counts.atomic_add(expert_or_first(ids[slot]), 1u); });
    barrier();

    // Each lane owns neighbouring experts: rows and tiles before its first are the sums of the
    // lanes before it.
    Value own_rows = constant(u32, 0), own_tiles = constant(u32, 0);
    const Value first = local_id() * kEach;
    for (uint32_t i = 0; i < kEach; ++i) {
      const Value count = counts.load(first + i);
      own_rows = own_rows + count;
      own_tiles = own_tiles + (count + tile_m - 1u) / tile_m;
    }
    Var rows_before(u32, own_rows, "rows_before"), tiles_before(u32, own_tiles, "tiles_before");
    for (uint32_t step = 1; step < kLanes; step *= 2) {
      sums[local_id()] = rows_before;
      sums[local_id() + kLanes] = tiles_before;
      barrier();
      if_(local_id() >= step, [&] {
        rows_before += sums.load(local_id() - step);
        tiles_before += sums.load(local_id() - step + kLanes);
      });
      barrier();
    }
    if_(local_id() == kLanes - 1, [&] { tiles[0u] = tiles_before; });
    Var row(u32, rows_before - own_rows, "row"), tile(u32, tiles_before - own_tiles, "tile");
    for (uint32_t i = 0; i < kEach; ++i) {
      const Value expert = first + i, count = counts.load(expert);
      next[expert] = row;
      for_(0u, count, tile_m, [&](Value done) {
        const Value entry = tile * 4u + 4u;
        tiles[entry] = expert;
        tiles[entry + 1u] = row + done;
        tiles[entry + 2u] = min(count - done, tile_m);
        tiles[entry + 3u] = 0u;
        tile += 1u;
      });
      row += count;
    }
    barrier();
    for_(local_id(), slots, kLanes, [&](Value slot) {
      const Value id = ids[slot], place = next.atomic_add(expert_or_first(id), 1u);
      order[place] = select(id < experts, slot, slot + kNoExpert);
    });
  });
}

uint32_t expert_tiles_at_most(uint32_t slots, uint32_t experts, uint32_t tile_m) {
  // Every expert may end with a tile that is not full, and no tile is empty.
  const uint64_t most = uint64_t(slots) / tile_m + experts;
  return static_cast<uint32_t>(most < slots ? most : slots);
}

}  // namespace prism::ops
