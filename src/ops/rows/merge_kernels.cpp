// Merge of pairs of sorted runs (merge path). A group writes one piece of the result and finds the
// part of each run by binary search; its lanes divide the piece in the same way.
#include <bit>

#include <fmt/format.h>

#include "ops/rows/sort_pairs.h"
#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kGroup = 256;

// Binary search for the number of a's pairs among the first `wanted` of the merged a and b.
class Split {
 public:
  Split(Value wanted, Value a_count, Value b_count)
      : wanted_(wanted),
        low_(u32, select(wanted > b_count, wanted - b_count, 0u), "low"),
        high_(u32, min(wanted, a_count), "high") {}

  void halve(const Array& keys, const Array& places, Value a, Value b) {
    const Value low = low_, high = high_;
    if_(low < high, [&] {
      const Value middle = (low + high) / 2u, other = b + wanted_ - 1u - middle;
      const Value first = comes_before(keys.load(a + middle), places.load(a + middle),
                                       keys.load(other), places.load(other));
      low_ = select(first, middle + 1u, low);
      high_ = select(first, high, middle);
    });
  }
  Value found() const { return low_; }

 private:
  Value wanted_;
  Var low_, high_;
};

ir::Kernel merge_kernel(DType stored, bool is_last) {
  return kernel("sort_merge", kGroup, [&] {
    const DType key_type = ops::key_type(stored);
    const uint32_t piece = piece_of(key_type), each = piece / kGroup;
    const In keys = in("keys", key_type), places = in("places", u32);
    std::optional<In> x;
    if (is_last) x = in("x", kernel_type(stored));
    const Array first_out =
        is_last ? out("values", kernel_type(stored)) : out("keys_out", key_type);
    const Array places_out = out("places_out", is_last ? i32 : u32);
    // count: pairs per row; run: pairs per sorted run; steps: iterations of the binary search.
    const Value count = param("count", u32), run = param("run", u32), steps = param("steps", u32),
                length = param("length", u32), kept = param("kept", u32);
    const Array tile_keys = shared(key_type, piece, "tile_keys"),
                tile_places = shared(u32, piece, "tile_places");
    const Value row = group_id(1), lane = local_id();
    const Value first = group_id(0) * piece, start = first / (run * 2u) * (run * 2u);
    const Value a_count = min(run, count - start);
    const Value b_count = min(run, count - start - a_count);
    const Value a = row * count + start, b = a + a_count;
    const Value made = first - start, end = min(made + piece, a_count + b_count);
    Split begins(made, a_count, b_count), ends(end, a_count, b_count);
    for_(0u, steps, 1u, [&](Value) {
      begins.halve(keys, places, a, b);
      ends.halve(keys, places, a, b);
    });
    const Value a_first = begins.found(), a_own = ends.found() - a_first;
    const Value b_first = made - a_first, all = end - made, b_own = all - a_own;
    for_(lane, all, kGroup, [&](Value i) {
      const Value from = select(i < a_own, a + a_first + i, b + b_first + i - a_own);
      tile_keys[i] = keys[from];
      tile_places[i] = places[from];
    });
    barrier();
    const Value mine = min(lane * each, all), zero = constant(u32, 0);
    Split split(mine, a_own, b_own);
    for_(0u, static_cast<uint32_t>(std::bit_width(piece)), 1u,
         [&](Value) { split.halve(tile_keys, tile_places, zero, a_own); });
    Var at_a(u32, split.found(), "at_a"), at_b(u32, mine - split.found() + a_own, "at_b");
    for_(mine, min(mine + each, all), 1u, [&](Value i) {
      const Value p = at_a, q = at_b;
      // An exhausted run is ignored; its index is clamped to the tile.
      const Value has_a = p < a_own, has_b = q < all;
      const Value in_a = select(has_a, p, 0u), in_b = select(has_b, q, 0u);
      const Value a_key = tile_keys.load(in_a), a_place = tile_places.load(in_a);
      const Value b_key = tile_keys.load(in_b), b_place = tile_places.load(in_b);
      const Value takes_a = has_a && (!has_b || comes_before(a_key, a_place, b_key, b_place));
      const Value key = select(takes_a, a_key, b_key), place = select(takes_a, a_place, b_place);
      at_a = select(takes_a, p + 1u, p);
      at_b = select(takes_a, q, q + 1u);
      const Value to = first + i;
      if (is_last) {
        if_(to < kept, [&] {
          first_out[row * kept + to] = (*x)[row * length + place];
          places_out[row * kept + to] = bitcast(i32, place);
        });
      } else {
        first_out[row * count + to] = key;
        places_out[row * count + to] = place;
      }
    });
  });
}

ParamValue word(int64_t value) { return ParamValue(static_cast<uint32_t>(value)); }

}  // namespace

void launch_merges(const SortInput& input, Pairs pairs, int64_t count, int64_t run, int64_t kept,
                   const DeviceView& values, const DeviceView& indices) {
  const DType stored = input.stored();
  const int64_t piece = piece_of(input.key());
  Pairs other = input.scratch_pairs(count);
  for (; run < count; run *= 2) {
    const bool is_last = run * 2 >= count;
    std::vector<DeviceView> buffers = {pairs.keys, pairs.places};
    if (is_last) buffers.push_back(input.x);
    buffers.push_back(is_last ? values : other.keys);
    buffers.push_back(is_last ? indices : other.places);
    const auto pieces = is_last ? (kept + piece - 1) / piece : (count + piece - 1) / piece;
    input.call.launch(fmt::format("sort_merge {}", dtype_name(is_last ? stored : input.key())),
                      [&] { return merge_kernel(stored, is_last); },
                      {static_cast<uint32_t>(pieces), static_cast<uint32_t>(input.rows), 1},
                      buffers,
                      {word(count), word(run), word(std::bit_width(static_cast<uint64_t>(run))),
                       word(input.length), word(kept)});
    std::swap(pairs, other);
  }
}

}  // namespace prism::ops
