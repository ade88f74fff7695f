// Bitonic sort of (key, index) pairs in pieces that fit into shared memory. The sorted pieces of a
// longer row are merged. For top_k the first pairs of each piece are sorted again until one piece
// is left.
#include "ops/rows/sort_kernels.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ops/rows/sort_pairs.h"
#include "prism/kernel.h"
#include "tensor/chain/chain.h"
#include "tensor/chain/chain_kernel.h"

namespace prism {

using namespace dsl;

using ops::comes_before;
using ops::Pairs;

ops::SortPass ops::SortPass::declare(DType stored, bool from_pairs, bool is_last) {
  const In x = in("x", kernel_type(stored));
  std::optional<In> keys_in, places_in;
  if (from_pairs) keys_in = in("keys_in", key_type(stored)), places_in = in("places_in", u32);
  const Array first_out =
      is_last ? out("values", kernel_type(stored)) : out("keys_out", key_type(stored));
  return {x, keys_in, places_in, first_out, out("places_out", is_last ? i32 : u32), is_last};
}

void ops::SortPass::write(Value at, Value row_start, Value key, Value place) const {
  if (is_last) {
    first_out[at] = x[row_start + place];
    places_out[at] = bitcast(i32, place);
  } else {
    first_out[at] = key;
    places_out[at] = place;
  }
}

std::vector<DeviceView> ops::SortInput::buffers(const Pairs* from, const Pairs& to) const {
  if (!from) return {x, to.keys, to.places};
  return {x, from->keys, from->places, to.keys, to.places};
}

Value ops::sort_key(Value x, bool descending) {
  const DType type = x.element();
  Value key = constant(key_type(type), 0);
  if (type == f64) {
    const Value sign = constant_bits(u64, 1ull << 63),
                infinity = constant_bits(u64, 0x7ffull << 52);
    const Value stored = bitcast(u64, x), magnitude = stored & ~sign;
    const Value bits = select(magnitude == constant(u64, 0), magnitude, stored);
    key = select(bits >= sign, ~bits, bits | sign);
    key = select(magnitude > infinity, constant(u64, int64_t{-2}), key);  // NaN
  } else if (type == i64) {
    key = bitcast(u64, x) ^ constant_bits(u64, 1ull << 63);
  } else if (type == f32) {
    const Value bits = bitcast(u32, select(x == 0.0f, 0.0f, x));  // -0 equals +0
    key = select((bits >> 31u) != 0u, ~bits, bits | 0x80000000u);
    key = select(is_nan(x), constant(u32, 0xfffffffeu), key);
  } else {
    key = bitcast(u32, x) ^ 0x80000000u;
  }
  return descending ? ~key : key;
}

Pairs ops::SortInput::scratch_pairs(int64_t count) const {
  return {call.scratch({rows, count}, key() == u64 ? DType::i64 : DType::i32),
          call.scratch({rows, count}, DType::i32)};
}

namespace {

constexpr uint32_t kGroup = 256;
constexpr int64_t kMostSelected = 4;  // passes keep at most 1/4 of a piece; else a sort is cheaper

struct Tile {
  Array keys, places;
};

// Orders the pairs at a and b, ascending or descending.
void exchange(const Array& keys, const Array& places, Value a, Value b, Value ascending) {
  const Value key_a = keys.load(a), key_b = keys.load(b);
  const Value place_a = places.load(a), place_b = places.load(b);
  if_(comes_before(key_b, place_b, key_a, place_a) == ascending, [&] {
    keys[a] = key_b;
    keys[b] = key_a;
    places[a] = place_b;
    places[b] = place_a;
  });
}

// The steps of one merge: distances of 2^first and below, in runs of 2^run.
void merge_steps(const Tile& tile, Value pairs, Value first, Value run) {
  for_(0u, first + 1u, 1u, [&](Value step) {
    const Value bit = first - step;
    for_(local_id(), pairs, kGroup, [&](Value i) {
      const Value low = i & ((constant(u32, 1) << bit) - 1u);
      const Value a = ((i - low) << 1u) | low;
      const Value ascending = ((a >> run) & 1u) == 0u;
      exchange(tile.keys, tile.places, a, a + (constant(u32, 1) << bit), ascending);
    });
    barrier();
  });
}

// Sorts a piece (group y) of a row (group x).
ir::Kernel piece_kernel(DType stored, bool descending, bool from_pairs, bool is_last) {
  return kernel("sort_piece", kGroup, [&] {
    const ops::SortPass pass = ops::SortPass::declare(stored, from_pairs, is_last);
    // length: of a row of x; count: elements per row in this pass; bits: log2 of the piece; kept:
    // elements per piece.
    const Value length = param("length", u32), count = param("count", u32),
                bits = param("bits", u32), kept = param("kept", u32);
    const DType key_type = ops::key_type(stored);
    const uint32_t most = ops::piece_of(key_type);
    const Tile tile{shared(key_type, most, "keys"), shared(u32, most, "places")};
    const Value row = group_id(0), piece = group_id(1);
    const Value size = constant(u32, 1) << bits, start = piece * size;
    for_(local_id(), size, kGroup, [&](Value i) {
      const Value at = start + i;
      Var key(key_type, ops::last_key(key_type), "key"), place(u32, 0u, "place");
      // Padding sorts last, even after elements with the largest key.
      place = at | ops::kNoElement;
      if_(at < count, [&] {
        if (from_pairs) {
          key = (*pass.keys_in)[row * count + at];
          place = (*pass.places_in)[row * count + at];
        } else {
          key = ops::sort_key(load_element(pass.x, row * length + at, stored), descending);
          place = at;
        }
      });
      tile.keys[i] = key;
      tile.places[i] = place;
    });
    barrier();
    for_(1u, bits + 1u, 1u, [&](Value run) { merge_steps(tile, size / 2u, run - 1u, run); });
    for_(local_id(), kept, kGroup, [&](Value i) {
      const Value at = (row * group_count(1) + piece) * kept + i;
      pass.write(at, row * length, tile.keys.load(i), tile.places.load(i));
    });
  });
}

ParamValue word(int64_t value) { return ParamValue(static_cast<uint32_t>(value)); }

// Sorts the pieces of each row. from: pairs of the previous pass, `count` per row; null: the row.
void sort_pieces(const ops::SortInput& input, const Pairs* from, int64_t count, int64_t pieces,
                 int64_t kept, const Pairs& to, bool is_last) {
  const DType stored = input.stored();
  const uint64_t size =
      pieces == 1 ? std::bit_ceil(static_cast<uint64_t>(count)) : ops::piece_of(input.key());
  input.call.launch(
      fmt::format("sort_piece {} {} {} {}", dtype_name(stored), input.descending, from != nullptr,
                  is_last),
      [&] { return piece_kernel(stored, input.descending, from != nullptr, is_last); },
      {static_cast<uint32_t>(input.rows), static_cast<uint32_t>(pieces), 1},
      input.buffers(from, to),
      {word(input.length), word(count), word(std::countr_zero(size)), word(kept)});
}

// Keeps the first `kept` pairs of each piece, until one piece is left.
void sort_in_passes(const ops::SortInput& input, int64_t kept, const DeviceView& values,
                    const DeviceView& indices) {
  const int64_t piece = ops::piece_of(input.key());
  int64_t count = input.length;
  std::optional<Pairs> from;
  while (count > piece) {
    const int64_t pieces = (count + piece - 1) / piece;
    const Pairs to = input.scratch_pairs(pieces * kept);
    sort_pieces(input, from ? &*from : nullptr, count, pieces, kept, to, false);
    from = to;
    count = pieces * kept;
  }
  sort_pieces(input, from ? &*from : nullptr, count, 1, kept, {values, indices}, true);
}

void sort_and_merge(const ops::SortInput& input, int64_t kept, const DeviceView& values,
                    const DeviceView& indices) {
  const int64_t piece = ops::piece_of(input.key());
  const int64_t pieces = (input.length + piece - 1) / piece, count = pieces * piece;
  const Pairs pairs = input.scratch_pairs(count);
  sort_pieces(input, nullptr, input.length, pieces, piece, pairs, false);
  ops::launch_merges(input, pairs, count, piece, kept, values, indices);
}

}  // namespace

void launch_sort(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t length, int64_t kept,
                 bool descending, const DeviceView& values, const DeviceView& indices) {
  if (rows == 0 || kept == 0) return;
  const ops::SortInput input{call, x, rows, length, descending};
  const int64_t piece = ops::piece_of(input.key());
  if (length > piece && ops::can_select(call.info(), input.key(), kept))
    ops::launch_select(input, kept, values, indices);
  else if (length <= piece || kept <= piece / kMostSelected)
    sort_in_passes(input, kept, values, indices);
  else
    sort_and_merge(input, kept, values, indices);
}

}  // namespace prism
