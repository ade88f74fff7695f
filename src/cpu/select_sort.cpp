// Maps elements to unsigned keys in the requested order. Long rows are radix-sorted; top_k skips
// blocks that contain no candidate.
#include "cpu/select_sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <type_traits>
#include <vector>

#include "cpu/rows.h"
#include "prism/error.h"

namespace prism::cpu {
namespace {

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Ascending keys correspond to ascending elements.
template <class T>
KeyOf<T> key_of(T x) {
  using Key = KeyOf<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return ~Key{0};
    if (x == 0) return kSign;  // 0 and -0
    const Key bits = std::bit_cast<Key>(x);
    return bits & kSign ? ~bits : bits | kSign;
  } else {
    return static_cast<Key>(x) ^ kSign;
  }
}

template <class Key>
struct Entry {
  Key key;
  uint64_t index;
  bool operator<(const Entry& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

template <class T>
std::vector<Entry<KeyOf<T>>> entries_of(const T* x, size_t n, bool descending) {
  std::vector<Entry<KeyOf<T>>> entries(n);
  for (size_t i = 0; i < n; ++i) {
    const KeyOf<T> key = key_of(x[i]);
    entries[i] = {descending ? static_cast<KeyOf<T>>(~key) : key, i};
  }
  return entries;
}

// Stable radix sort with 8-bit digits from the lowest up; skips digits that all entries share.
template <class Key>
void sort_by_digits(std::vector<Entry<Key>>& entries) {
  constexpr size_t kDigits = sizeof(Key);
  std::vector<std::array<size_t, 256>> counts(kDigits);
  for (auto& count : counts) count.fill(0);
  for (const Entry<Key>& entry : entries)
    for (size_t digit = 0; digit < kDigits; ++digit)
      ++counts[digit][(entry.key >> (8 * digit)) & 255];
  std::vector<Entry<Key>> sorted(entries.size());
  for (size_t digit = 0; digit < kDigits; ++digit) {
    auto& count = counts[digit];
    if (count[(entries[0].key >> (8 * digit)) & 255] == entries.size()) continue;
    size_t begin = 0;
    for (size_t& place : count) {
      const size_t members = place;
      place = begin;
      begin += members;
    }
    for (const Entry<Key>& entry : entries)
      sorted[count[(entry.key >> (8 * digit)) & 255]++] = entry;
    entries.swap(sorted);
  }
}

template <class T, class Index, class Entries>
void write(const T* x, const Entries& entries, size_t count, T* values, Index* indices) {
  // values may be x: all elements are read before the first is written.
  if (values) {
    std::vector<T> chosen(count);
    for (size_t i = 0; i < count; ++i) chosen[i] = x[entries[i].index];
    std::copy(chosen.begin(), chosen.end(), values);
  }
  if (indices)
    for (size_t i = 0; i < count; ++i) indices[i] = static_cast<Index>(entries[i].index);
}

// Whether a block may contain a key below `worst`; true if checking is not cheap.
bool may_be_better(const float* x, size_t n, bool largest, uint32_t worst) {
  const uint32_t key = key_of(largest ? row_max(x, n) : row_min(x, n));
  // The extreme is NaN: check each element.
  return key == ~uint32_t{0} || (largest ? ~key : key) < worst;
}
template <class T>
bool may_be_better(const T*, size_t, bool, KeyOf<T>) {
  return true;
}

// The first k entries, with a heap whose top is the worst kept so far.
template <class T>
std::vector<Entry<KeyOf<T>>> few_best(const T* x, size_t n, size_t k, bool largest) {
  constexpr size_t kBlock = 128;
  auto heap = entries_of(x, k, largest);
  std::make_heap(heap.begin(), heap.end());
  for (size_t first = k; first < n; first += kBlock) {
    const size_t last = std::min(n, first + kBlock);
    if (!may_be_better(x + first, last - first, largest, heap[0].key)) continue;
    for (size_t i = first; i < last; ++i) {
      const KeyOf<T> up = key_of(x[i]), key = largest ? static_cast<KeyOf<T>>(~up) : up;
      if (key >= heap[0].key) continue;  // equal: keep the earlier index
      std::pop_heap(heap.begin(), heap.end());
      heap.back() = {key, i};
      std::push_heap(heap.begin(), heap.end());
    }
  }
  std::sort_heap(heap.begin(), heap.end());
  return heap;
}

}  // namespace

template <class T, class Index>
void top_k(const T* x, size_t n, size_t k, bool largest, T* values, Index* indices) {
  if (k > n)
    throw Error(ErrorCode::kInvalidArgument,
                "top-k: the best " + std::to_string(k) + " of " + std::to_string(n) +
                    " elements; k may be at most " + std::to_string(n));
  if (k == 0) return;
  // A heap costs log k per insertion, of which there are about k ln(n / k).
  if (k <= 16 || k <= n / 16) {
    write(x, few_best(x, n, k, largest), k, values, indices);
    return;
  }
  auto entries = entries_of(x, n, largest);
  std::nth_element(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(k - 1), entries.end());
  std::sort(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(k));
  write(x, entries, k, values, indices);
}

template <class T, class Index>
void sort(const T* x, size_t n, bool descending, T* values, Index* indices) {
  if (n == 0) return;
  auto entries = entries_of(x, n, descending);
  // Below this size comparison sorting wins: each radix pass has a fixed cost for counting.
  if (n < 512)
    std::sort(entries.begin(), entries.end());
  else
    sort_by_digits(entries);
  write(x, entries, n, values, indices);
}

#define PRISM_FOR(T, Index)                                                  \
  template void top_k<T, Index>(const T*, size_t, size_t, bool, T*, Index*); \
  template void sort<T, Index>(const T*, size_t, bool, T*, Index*);
PRISM_FOR(float, int32_t)
PRISM_FOR(float, int64_t)
PRISM_FOR(double, int32_t)
PRISM_FOR(double, int64_t)
PRISM_FOR(int32_t, int32_t)
PRISM_FOR(int32_t, int64_t)
PRISM_FOR(int64_t, int32_t)
PRISM_FOR(int64_t, int64_t)
#undef PRISM_FOR

}  // namespace prism::cpu
