// Top-k selection: selects k pairs from each piece of a row, then from the results, until one piece
// is left.
//
// Each lane finds the first of its elements in sort order. The k-th of these minima bounds the
// first k of the piece, and at most k lanes have elements within the bound. These elements are
// gathered; the rank of each is the number of pairs before it.
#include <algorithm>

#include <fmt/format.h>

#include "ops/rows/sort_pairs.h"
#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

// k lanes have at most k * each elements. These fit into 16 KiB less a few words: the shared memory
// of the smallest devices.
struct Cut {
  uint32_t lanes, each;
  uint32_t piece() const { return lanes * each; }
};
uint32_t room_of(DType key) { return key == u64 ? 1352 : 2032; }  // pairs
constexpr Cut kFew{256, 16}, kMore{512, 7};
constexpr int64_t kMost = 256;

const Cut& cut_for(DType key, int64_t kept) {
  return kept <= room_of(key) / kFew.each ? kFew : kMore;
}

struct Tile {
  Array keys, places;

  // The number of pairs before this one, among the first `count` (a multiple of four).
  Value before(Value count, Value key, Value place) const {
    Var rank(u32, 0u, "rank");
    for_(0u, count, 4u, [&](Value i) {
      // 16-byte loads.
      const uint32_t width = key.element() == u64 ? 2 : 4;
      std::vector<Value> some_keys;
      for (uint32_t from = 0; from < 4; from += width)
        some_keys.push_back(keys.load(i + from, width));
      const Value four_places = places.load(i, 4);
      for (uint32_t n = 0; n < 4; ++n) {
        const Value other = some_keys[n / width][n % width];
        rank += select(comes_before(other, four_places[n], key, place), 1u, 0u);
      }
    });
    return rank;
  }
};

// Group x: the row. Group y: the piece of it.
ir::Kernel select_kernel(DType stored, bool descending, const Cut& cut, bool from_pairs,
                         bool is_last) {
  return kernel("select", cut.lanes, [&] {
    const SortPass pass = SortPass::declare(stored, from_pairs, is_last);
    // length: of a row of x; count: elements per row in this pass; kept: elements per piece.
    const Value length = param("length", u32), count = param("count", u32),
                kept = param("kept", u32);
    const DType key_type = ops::key_type(stored);
    const uint32_t room = room_of(key_type);
    const Tile tile{shared(key_type, room, "keys"), shared(u32, room, "places")};
    const Array bound_key = shared(key_type, 1, "bound_key"),
                bound_place = shared(u32, 1, "bound_place"), taken = shared(u32, 1, "taken");
    const Value row = group_id(0), piece = group_id(1), lane = local_id();

    struct Pair {
      Value key, place;
    };
    // Each element is read twice, the second time from the cache. Otherwise all of them would
    // occupy registers across barriers.
    const auto element = [&](Value n) -> Pair {
      const Value at = piece * cut.piece() + n * cut.lanes + lane, inside = at < count;
      const Value index = row * count + at;
      const Value key =
          from_pairs ? pass.keys_in->load_if(inside, index)
                     : sort_key(from_loaded(pass.x.load_if(inside, index), stored), descending);
      const Value place = from_pairs ? pass.places_in->load_if(inside, index) : at;
      return {select(inside, key, last_key(key_type)), select(inside, place, at | kNoElement)};
    };
    Var first_key(key_type, last_key(key_type), "first_key"),
        first_place(u32, 0xffffffffu, "first_place");
    unrolled_for(cut.each, [&](Value n) {
      const Pair next = element(n);
      const Value key = first_key, place = first_place;
      const Value better = comes_before(next.key, next.place, key, place);
      first_key = select(better, next.key, key);
      first_place = select(better, next.place, place);
    });
    tile.keys[lane] = first_key;
    tile.places[lane] = first_place;
    if_(lane == 0u, [&] { taken[0u] = 0u; });
    barrier();
    const Value rank = tile.before(constant(u32, cut.lanes), first_key, first_place);
    if_(rank == kept - 1u, [&] {
      bound_key[0u] = first_key;
      bound_place[0u] = first_place;
    });
    barrier();
    const Value most_key = bound_key.load(0u), most_place = bound_place.load(0u);
    for_(0u, cut.each, 1u, [&](Value n) {
      const Pair next = element(n);
      const Value outside = comes_before(most_key, most_place, next.key, next.place);
      if_(!outside && next.place < kNoElement, [&] {
        const Value at = taken.atomic_add(0u, 1u);
        tile.keys[at] = next.key;
        tile.places[at] = next.place;
      });
    });
    barrier();
    // Pad to a multiple of four with pairs that sort last.
    const Value found = taken.load(0u), whole = (found + 3u) / 4u * 4u;
    if_(lane < whole - found, [&] {
      tile.keys[found + lane] = last_key(key_type);
      tile.places[found + lane] = 0xffffffffu;
    });
    barrier();
    const Value base = (row * group_count(1) + piece) * kept;
    for_(lane, found, cut.lanes, [&](Value i) {
      const Value key = tile.keys.load(i), place = tile.places.load(i);
      const Value order = tile.before(whole, key, place);
      if_(order < kept, [&] { pass.write(base + order, row * length, key, place); });
    });
    if (is_last) return;
    for_(found + lane, kept, cut.lanes, [&](Value i) {
      pass.first_out[base + i] = last_key(key_type);
      pass.places_out[base + i] = (piece * kept + i) | kNoElement;
    });
  });
}

ParamValue word(int64_t value) { return ParamValue(static_cast<uint32_t>(value)); }

}  // namespace

bool can_select(const DeviceInfo& device, DType key, int64_t kept) {
  const Cut& cut = cut_for(key, kept);
  return kept <= std::min<int64_t>(kMost, room_of(key) / cut.each) &&
         cut.lanes <= device.capabilities.max_group_size;
}

void launch_select(const SortInput& input, int64_t kept, const DeviceView& values,
                   const DeviceView& indices) {
  const Cut& cut = cut_for(input.key(), kept);
  const DType stored = input.stored();
  int64_t count = input.length;
  std::optional<Pairs> from;
  for (bool is_last = false; !is_last;) {
    const int64_t pieces = (count + cut.piece() - 1) / cut.piece();
    is_last = pieces == 1;
    const Pairs to = is_last ? Pairs{values, indices} : input.scratch_pairs(pieces * kept);
    const bool from_pairs = from.has_value();
    input.call.launch(
        fmt::format("select {} {} {} {} {}", dtype_name(stored), input.descending, cut.lanes,
                    from_pairs, is_last),
        [&] { return select_kernel(stored, input.descending, cut, from_pairs, is_last); },
        {static_cast<uint32_t>(input.rows), static_cast<uint32_t>(pieces), 1},
        input.buffers(from ? &*from : nullptr, to), {word(input.length), word(count), word(kept)});
    from = to;
    count = pieces * kept;
  }
}

}  // namespace prism::ops
