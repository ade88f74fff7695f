// Pairs of a key and an index, and their order: shared by the sorting kernels.
#pragma once

#include <optional>
#include <vector>

#include "prism/kernel.h"
#include "tensor/plan/device_call.h"

namespace prism::ops {

// Padding has the largest key and an index with this bit, so that it sorts behind every element.
inline constexpr uint32_t kNoElement = 0x80000000u;

// u64 for elements of 8 bytes, else u32.
inline DType key_type(DType stored) { return dtype_bytes(stored) > 4 ? DType::u64 : DType::u32; }
// The largest key.
inline dsl::Value last_key(DType type) { return dsl::constant(type, int64_t{-1}); }
// The largest power of two of pairs that fit into 16 KiB, the shared memory of the smallest
// devices.
inline uint32_t piece_of(DType key) { return key == DType::u64 ? 1024 : 2048; }

// An unsigned key in the order of the elements; reversed for a descending sort.
dsl::Value sort_key(dsl::Value x, bool descending);

// Whether one pair sorts before another: by key, then by index. No two pairs are equal.
inline dsl::Value comes_before(dsl::Value key, dsl::Value place, dsl::Value other_key,
                               dsl::Value other_place) {
  return key < other_key || (key == other_key && place < other_place);
}

// The input and output of one pass. It reads elements of x or pairs of the previous pass, and
// writes pairs or the result.
struct SortPass {
  dsl::In x;
  std::optional<dsl::In> keys_in, places_in;
  dsl::Array first_out, places_out;
  bool is_last;

  static SortPass declare(DType stored, bool from_pairs, bool is_last);
  // Writes the pair at `at`. In the last pass it writes the element of x, whose row begins at
  // row_start, and the index.
  void write(dsl::Value at, dsl::Value row_start, dsl::Value key, dsl::Value place) const;
};

// Keys and indices in memory, with a number of pairs for each row.
struct Pairs {
  DeviceView keys, places;
};

// The task of the sorting kernels.
struct SortInput {
  DeviceCall& call;
  const DeviceView& x;  // [rows, length]
  int64_t rows, length;
  bool descending;

  DType stored() const { return x.type.plain(); }
  DType key() const { return key_type(stored()); }
  Pairs scratch_pairs(int64_t count) const;  // `count` pairs per row
  // The buffers of a launch in SortPass's order. from: pairs of the previous pass; null: the row.
  std::vector<DeviceView> buffers(const Pairs* from, const Pairs& to) const;
};

// Selects the first `kept` of each row into values and indices (select_kernels.cpp).
bool can_select(const DeviceInfo& device, DType key, int64_t kept);
void launch_select(const SortInput& input, int64_t kept, const DeviceView& values,
                   const DeviceView& indices);
// Merges sorted runs of `run` pairs, `count` pairs per row, until each row is one run. The first
// `kept` go into values and indices (merge_kernels.cpp).
void launch_merges(const SortInput& input, Pairs pairs, int64_t count, int64_t run, int64_t kept,
                   const DeviceView& values, const DeviceView& indices);

}  // namespace prism::ops
