// Radix selection by a group: digits of 8 bits from the highest, first of keys, then of rows among
// equal keys.
#include "ops/nearest/nearest_kernels.h"

namespace prism::ops {

using namespace dsl;

namespace {

// The first word, in order, such that at least `wanted` (from 1) matching words come before it or
// are equal to it.
struct SelectedWord {
  Var word, rest, equal;  // rest: `wanted`, counted among the words of this value; equal: these
};
SelectedWord select_word(const Array& counts, Value count, Value wanted,
                         const std::function<Value(Value)>& word_at,
                         const std::function<Value(Value)>& matches) {
  constexpr uint32_t kAtOnce = 4;  // loads under way in each lane
  const Value lane = local_id();
  SelectedWord found{Var(u32, 0u, "word"), Var(u32, wanted, "rest"), Var(u32, 0u, "equal")};
  Var known(u32, 0u, "known");  // the bits of the word that are decided
  for_(4u, [&](Value pass) {
    const Value shift = 24u - 8u * pass;
    counts[lane] = 0u;
    barrier();
    const Value prefix = found.word, mask = known;
    for_(lane, count, kAtOnce * kNearestGroup, [&](Value first) {
      std::vector<Value> words, wanted_ones;
      for (uint32_t n = 0; n < kAtOnce; ++n) {
        const Value i = first + n * kNearestGroup, inside = i < count,
                    at = select(inside, i, first);
        words.push_back(word_at(at));
        wanted_ones.push_back(inside && (words[n] & mask) == prefix && matches(at));
      }
      for (uint32_t n = 0; n < kAtOnce; ++n)
        if_(wanted_ones[n], [&] { counts.atomic_add((words[n] >> shift) & 255u, 1u); });
    });
    barrier();
    // Every lane walks over all counts: 64 loads that the whole group shares.
    const Value rank = found.rest;
    Var sum(u32, 0u, "sum");
    for_(0u, 256u, 4u, [&](Value digit) {
      const Value four = counts.load(digit, 4);
      for (uint32_t n = 0; n < 4; ++n) {
        const Value before = sum, up_to = before + four[n];
        const Value hit = before < rank && rank <= up_to;
        const Value word = found.word, rest = found.rest, equal = found.equal;
        found.word = select(hit, prefix | ((digit + n) << shift), word);
        found.rest = select(hit, rank - before, rest);
        found.equal = select(hit, four[n], equal);
        sum = up_to;
      }
    });
    known = mask | (255u << shift);
    barrier();
  });
  return found;
}

}  // namespace

Value Bound::holds(Value other_key, Value other_row) const {
  return other_key < key || (other_key == key && other_row <= row);
}

Bound select_bound(const Array& counts, const PairSource& pairs, Value count, Value kept) {
  const SelectedWord key =
      select_word(counts, count, kept, pairs.key, [](Value) { return constant(u32, 0) == 0u; });
  const Value bound = key.word, rest = key.rest, equal = key.equal;
  Var row(u32, kNoKey, "row");
  // Rows matter only if some of the equal keys are left out, which is rare. All lanes agree on it,
  // which a reduction makes known.
  if_(group_max(select(rest < equal, constant(u32, 1), constant(u32, 0))) != 0u, [&] {
    const SelectedWord last =
        select_word(counts, count, rest, pairs.row, [&](Value i) { return pairs.key(i) == bound; });
    row = Value(last.word);
  });
  return {bound, row};
}

Value select_key(const Array& counts, const std::function<Value(Value)>& key, Value count,
                 Value kept) {
  return select_word(counts, count, kept, key, [](Value) { return constant(u32, 0) == 0u; }).word;
}

}  // namespace prism::ops
