// Radix selection by a group: digits of 8 bits from the highest, first of keys, then of rows among
// equal keys.
#include "ops/nearest/nearest_kernels.h"

namespace prism::ops {

using namespace dsl;

namespace {

// The first word, in order, such that at least `wanted` (from 1) matching words come before it or
// are equal to it.
struct SelectedWord {
  Var word, rest;  // rest: `wanted`, counted among the words of this value
};
SelectedWord select_word(const Array& counts, Value count, Value wanted,
                         const std::function<Value(Value)>& word_at,
                         const std::function<Value(Value)>& matches) {
  const Value lane = local_id();
  SelectedWord found{Var(u32, 0u, "word"), Var(u32, wanted, "rest")};
  Var known(u32, 0u, "known");  // the bits of the word that are decided
  for_(4u, [&](Value pass) {
    const Value shift = 24u - 8u * pass;
    counts[lane] = 0u;
    barrier();
    const Value prefix = found.word, mask = known;
    for_(lane, count, kNearestGroup, [&](Value i) {
      const Value word = word_at(i);
      if_((word & mask) == prefix && matches(i),
          [&] { counts.atomic_add((word >> shift) & 255u, 1u); });
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
        const Value word = found.word, rest = found.rest;
        found.word = select(hit, prefix | ((digit + n) << shift), word);
        found.rest = select(hit, rank - before, rest);
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
  const Value bound = key.word;
  // Rows matter only if some of the equal keys are left out, which is rare; but a condition that
  // contains barriers must be known to be uniform, and costs more barriers than it saves.
  const SelectedWord row = select_word(counts, count, key.rest, pairs.row,
                                       [&](Value i) { return pairs.key(i) == bound; });
  return {bound, row.word};
}

}  // namespace prism::ops
