// Bitonic sorting of pairs (key, index) in pieces of 2,048 in shared memory. Longer rows: pieces
// merged through memory; or, where few elements are wanted, the first few of each piece sorted
// again, until one piece is left.
#include "ops/sort_kernels.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "dsl/dsl.h"
#include "tensor/chain.h"
#include "tensor/chain_kernel.h"

namespace prism {

using namespace dsl;

namespace {

constexpr uint32_t kGroup = 256;
constexpr uint32_t kPiece = 2048;  // pairs of two words: 16 KiB, what the least devices have
constexpr uint32_t kPieceBits = 11;
constexpr int64_t kMostSelected = 512;  // above it a whole sort is less work

// An unsigned key whose order is that of the elements; for the largest first, the other way round.
Value key_of(Value x, bool descending) {
  const DType type = x.element();
  Value key = constant(u32, 0);
  if (type == f32) {
    const Value bits = bitcast(u32, select(x == 0.0f, 0.0f, x));  // both zeros are one
    key = select((bits >> 31u) != 0u, ~bits, bits | 0x80000000u);
    key = select(is_nan(x), constant(u32, 0xfffffffeu), key);
  } else {
    key = bitcast(u32, x) ^ 0x80000000u;
  }
  return descending ? ~key : key;
}

struct Tile {
  Array keys, places;
};

// Puts the pair at a before that at b, or after it.
void exchange(const Array& keys, const Array& places, Value a, Value b, Value ascending) {
  const Value key_a = keys.load(a), key_b = keys.load(b);
  const Value place_a = places.load(a), place_b = places.load(b);
  const Value after = key_a > key_b || (key_a == key_b && place_a > place_b);
  if_((after && ascending) || !(after || ascending), [&] {
    keys[a] = key_b;
    keys[b] = key_a;
    places[a] = place_b;
    places[b] = place_a;
  });
}

// The steps of one merge: distances of 2^first and below, in runs of 2^(run) of the whole row.
// start: where in the row the tile begins.
void merge_steps(const Tile& tile, Value pairs, Value first, Value run, Value start) {
  for_(0u, first + 1u, 1u, [&](Value step) {
    const Value bit = first - step;
    for_(local_id(), pairs, kGroup, [&](Value i) {
      const Value low = i & ((constant(u32, 1) << bit) - 1u);
      const Value a = ((i - low) << 1u) | low;
      const Value ascending = (((start + a) >> run) & 1u) == 0u;
      exchange(tile.keys, tile.places, a, a + (constant(u32, 1) << bit), ascending);
    });
    barrier();
  });
}

// Sorts a piece of a row (group y). Elements come from x, or are pairs left by the pass before;
// they go on as pairs, or are the result.
ir::Kernel piece_kernel(DType stored, bool descending, bool from_pairs, bool is_last) {
  return kernel("sort_piece", kGroup, [&] {
    const In x = in("x", kernel_type(stored));
    std::optional<In> keys_in, places_in;
    if (from_pairs) keys_in = in("keys_in", u32), places_in = in("places_in", u32);
    const Array first_out = is_last ? out("values", kernel_type(stored)) : out("keys_out", u32);
    const Array places_out = out("places_out", is_last ? i32 : u32);
    // length: of a row of x; count: elements a row that this pass sorts; bits: of a piece;
    // kept: of each piece; alternate: pieces in turn up and down, for merging.
    const Value length = param("length", u32), count = param("count", u32),
                bits = param("bits", u32), kept = param("kept", u32),
                alternate = param("alternate", u32);
    const Tile tile{shared(u32, kPiece, "keys"), shared(u32, kPiece, "places")};
    const Value row = group_id(0), piece = group_id(1);
    const Value size = constant(u32, 1) << bits, start = piece * size;
    for_(local_id(), size, kGroup, [&](Value i) {
      const Value at = start + i;
      Var key(u32, 0xffffffffu, "key"), place(u32, 0u, "place");
      // What fills the piece up comes last, also behind elements with the largest key.
      place = at | 0x80000000u;
      if_(at < count, [&] {
        if (from_pairs) {
          key = (*keys_in)[row * count + at];
          place = (*places_in)[row * count + at];
        } else {
          key = key_of(load_element(x, row * length + at, stored), descending);
          place = at;
        }
      });
      tile.keys[i] = key;
      tile.places[i] = place;
    });
    barrier();
    for_(1u, bits + 1u, 1u, [&](Value run) {
      // The last run of a piece goes up, or as the piece's number says.
      const Value whole = run == bits;
      const Value offset = select(whole && alternate == 0u, 0u, start);
      merge_steps(tile, size / 2u, run - 1u, run, offset);
    });
    for_(local_id(), kept, kGroup, [&](Value i) {
      const Value place = tile.places.load(i);
      const Value at = (row * group_count(1) + piece) * kept + i;
      if (is_last) {
        first_out[at] = x[row * length + place];
        places_out[at] = bitcast(i32, place);
      } else {
        first_out[at] = tile.keys.load(i);
        places_out[at] = place;
      }
    });
  });
}

// One step of a merge of runs longer than a piece: pairs 2^bit apart.
ir::Kernel step_kernel() {
  return kernel("sort_step", kGroup, [] {
    const Array keys = inout("keys", u32), places = inout("places", u32);
    const Value pairs = param("pairs", u32), bit = param("bit", u32), run = param("run", u32);
    const Value i = global_id();
    if_(i < pairs, [&] {
      const Value low = i & ((constant(u32, 1) << bit) - 1u);
      const Value a = ((i - low) << 1u) | low;
      const Value base = group_id(1) * (pairs * 2u);
      const Value ascending = ((a >> run) & 1u) == 0u;
      exchange(keys, places, base + a, base + a + (constant(u32, 1) << bit), ascending);
    });
  });
}

// The steps of a merge that stay within a piece.
ir::Kernel merge_kernel() {
  return kernel("sort_merge", kGroup, [] {
    const Array keys = inout("keys", u32), places = inout("places", u32);
    const Value run = param("run", u32);
    const Tile tile{shared(u32, kPiece, "tile_keys"), shared(u32, kPiece, "tile_places")};
    const Value start = group_id(0) * kPiece;
    const Value base = (group_id(1) * group_count(0) + group_id(0)) * kPiece;
    for_(local_id(), kPiece, kGroup, [&](Value i) {
      tile.keys[i] = keys.load(base + i);
      tile.places[i] = places.load(base + i);
    });
    barrier();
    merge_steps(tile, constant(u32, kPiece / 2), constant(u32, kPieceBits - 1), run, start);
    for_(local_id(), kPiece, kGroup, [&](Value i) {
      keys[base + i] = tile.keys.load(i);
      places[base + i] = tile.places.load(i);
    });
  });
}

ir::Kernel result_kernel(DType stored) {
  return kernel("sort_result", kGroup, [&] {
    const In x = in("x", kernel_type(stored)), places = in("places", u32);
    const Array values = out("values", kernel_type(stored)), indices = out("indices", i32);
    const Value length = param("length", u32), padded = param("padded", u32),
                kept = param("kept", u32);
    const Value i = global_id(), row = group_id(1);
    if_(i < kept, [&] {
      const Value place = places[row * padded + i];
      values[row * kept + i] = x[row * length + place];
      indices[row * kept + i] = bitcast(i32, place);
    });
  });
}

ParamValue word(int64_t value) { return ParamValue(static_cast<uint32_t>(value)); }

class Sorter {
 public:
  Sorter(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t length, bool descending)
      : call_(call), x_(x), rows_(rows), length_(length), descending_(descending) {}

  // pairs: of the pass before, `count` a row; none: the row itself.
  struct Pairs {
    DeviceView keys, places;
  };
  void sort_pieces(const Pairs* from, int64_t count, int64_t pieces, int64_t kept, bool alternate,
                   const Pairs& to, bool is_last) {
    const DType stored = x_.type.plain();
    const int64_t size = pieces == 1 ? std::bit_ceil(static_cast<uint64_t>(count)) : kPiece;
    const int bits = std::countr_zero(static_cast<uint64_t>(size));
    std::vector<DeviceView> buffers = {x_};
    if (from) {
      buffers.push_back(from->keys);
      buffers.push_back(from->places);
    }
    buffers.push_back(to.keys);
    buffers.push_back(to.places);
    call_.launch(fmt::format("sort_piece {} {} {} {}", dtype_name(stored), descending_,
                             from != nullptr, is_last),
                 [&] { return piece_kernel(stored, descending_, from != nullptr, is_last); },
                 {static_cast<uint32_t>(rows_), static_cast<uint32_t>(pieces), 1}, buffers,
                 {word(length_), word(count), word(bits), word(kept), word(alternate ? 1 : 0)});
  }

  Pairs scratch(int64_t count) {
    return {call_.scratch({rows_, count}, DType::i32), call_.scratch({rows_, count}, DType::i32)};
  }

  // The first `kept` of each piece, until they are one piece.
  void select(int64_t kept, const DeviceView& values, const DeviceView& indices) {
    int64_t count = length_;
    std::optional<Pairs> from;
    while (count > kPiece) {
      const int64_t pieces = (count + kPiece - 1) / kPiece;
      const Pairs to = scratch(pieces * kept);
      sort_pieces(from ? &*from : nullptr, count, pieces, kept, false, to, false);
      from = to;
      count = pieces * kept;
    }
    sort_pieces(from ? &*from : nullptr, count, 1, kept, false, {values, indices}, true);
  }

  void sort_all(int64_t kept, const DeviceView& values, const DeviceView& indices) {
    const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length_)));
    const int64_t pieces = padded / kPiece;
    const Pairs pairs = scratch(padded);
    sort_pieces(nullptr, length_, pieces, kPiece, true, pairs, false);
    const auto rows = static_cast<uint32_t>(rows_);
    for (int run = kPieceBits + 1; (int64_t{1} << run) <= padded; ++run) {
      for (int bit = run - 1; bit >= static_cast<int>(kPieceBits); --bit)
        call_.launch("sort_step", step_kernel, {groups_for(padded / 2, kGroup), rows, 1},
                     {pairs.keys, pairs.places}, {word(padded / 2), word(bit), word(run)});
      call_.launch("sort_merge", merge_kernel, {static_cast<uint32_t>(pieces), rows, 1},
                   {pairs.keys, pairs.places}, {word(run)});
    }
    const DType stored = x_.type.plain();
    call_.launch(fmt::format("sort_result {}", dtype_name(stored)),
                 [&] { return result_kernel(stored); }, {groups_for(kept, kGroup), rows, 1},
                 {x_, pairs.places, values, indices}, {word(length_), word(padded), word(kept)});
  }

 private:
  DeviceCall& call_;
  const DeviceView& x_;
  int64_t rows_, length_;
  bool descending_;
};

}  // namespace

void launch_sort(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t length, int64_t kept,
                 bool descending, const DeviceView& values, const DeviceView& indices) {
  if (rows == 0 || kept == 0) return;
  Sorter sorter(call, x, rows, length, descending);
  if (length <= kPiece || kept <= kMostSelected)
    sorter.select(kept, values, indices);
  else
    sorter.sort_all(kept, values, indices);
}

}  // namespace prism
