// Radix selection by a group: digits of 8 bits from the highest, first of keys, then of rows among
// equal keys.
#include <span>

#include "ops/nearest/nearest_kernels.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kDigits = 256;

// The first word, in order, such that at least `wanted` (from 1) matching words come before it or
// are equal to it.
struct SelectedWord {
  Var word, rest, equal;  // rest: `wanted`, counted among the words of this value; equal: these
};
// held: the words of this lane, if it has read them.
SelectedWord select_word(const SelectSpace& space, Value count, Value wanted,
                         const std::function<Value(Value)>& word_at,
                         const std::function<Value(Value)>& matches,
                         std::span<const Value> held = {}) {
  constexpr uint32_t kAtOnce = 4;  // loads under way in each lane
  const Array& words = space.words;
  const uint32_t lanes = space.lanes;
  const Value lane = local_id();
  SelectedWord found{Var(u32, 0u, "word"), Var(u32, wanted, "rest"), Var(u32, 0u, "equal")};
  Var known(u32, 0u, "known");  // the bits of the word that are decided
  for_(4u, [&](Value pass) {
    const Value shift = 24u - 8u * pass, rank = found.rest;
    for_(lane, kDigits, lanes, [&](Value digit) { words[digit] = 0u; });
    if_(lane == 0u, [&] {  // what stays if there are fewer words than wanted
      words[kDigits] = 0u;
      words[kDigits + 1] = rank;
      words[kDigits + 2] = 0u;
    });
    barrier();
    const Value prefix = found.word, mask = known;
    const auto count_digit = [&](Value is_wanted, Value word) {
      if_(is_wanted && (word & mask) == prefix,
          [&] { words.atomic_add((word >> shift) & 255u, 1u); });
    };
    for (size_t n = 0; n < held.size(); ++n)
      count_digit(lane + static_cast<uint32_t>(n) * lanes < count, held[n]);
    if (held.empty())
      for_(lane, count, kAtOnce * lanes, [&](Value first) {
        std::vector<Value> some, wanted_ones;
        for (uint32_t n = 0; n < kAtOnce; ++n) {
          const Value i = first + n * lanes, inside = i < count, at = select(inside, i, first);
          some.push_back(word_at(at));
          wanted_ones.push_back(inside && matches(at));
        }
        for (uint32_t n = 0; n < kAtOnce; ++n) count_digit(wanted_ones[n], some[n]);
      });
    barrier();
    // Each of the first lanes adds up the counts to its digit: within its subgroup by a scan, of
    // the subgroups before by their totals.
    const Value has_digit = lane < kDigits, digit = select(has_digit, lane, 0u);
    const Value own = select(has_digit, words.load(digit), 0u);
    const Value within = subgroup_scan(ReduceOp::add, own, false);
    barrier();
    if_(has_digit, [&] { words[digit] = within; });
    barrier();
    if_(has_digit, [&] {
      Var up_to(u32, within, "up_to");
      for_(subgroup_id(),
           [&](Value before) { up_to += words.load((before + 1u) * subgroup_size() - 1u); });
      const Value end = up_to, start = end - own;
      if_(start < rank && rank <= end, [&] {
        words[kDigits] = digit;
        words[kDigits + 1] = rank - start;
        words[kDigits + 2] = own;
      });
    });
    barrier();
    found.word = prefix | (words.load(kDigits) << shift);
    found.rest = words.load(kDigits + 1);
    found.equal = words.load(kDigits + 2);
    known = mask | (255u << shift);
    barrier();
  });
  return found;
}

}  // namespace

SelectSpace::SelectSpace(uint32_t group)
    : lanes(group), words(shared(u32, kDigits + 3, "digits")) {}

Value Bound::holds(Value other_key, Value other_row) const {
  return other_key < key || (other_key == key && other_row <= row);
}

PairSource held_pairs(const In& keys, const In& rows, uint32_t lanes, uint32_t held, Value count) {
  PairSource pairs{[=](Value i) { return keys[i]; }, [=](Value i) { return rows[i]; }, {}};
  for (uint32_t n = 0; n < held; ++n) {
    const Value i = local_id() + n * lanes;
    pairs.held_keys.push_back(keys.load_if(i < count, i));
  }
  return pairs;
}

void for_each_pair(const PairSource& pairs, uint32_t lanes, Value count,
                   const std::function<void(Value, Value)>& use) {
  for (size_t n = 0; n < pairs.held_keys.size(); ++n) {
    const Value i = local_id() + static_cast<uint32_t>(n) * lanes;
    if_(i < count, [&] { use(i, pairs.held_keys[n]); });
  }
  if (pairs.held_keys.empty())
    for_(local_id(), count, lanes, [&](Value i) { use(i, pairs.key(i)); });
}

Bound select_bound(const SelectSpace& space, const PairSource& pairs, Value count, Value kept) {
  const SelectedWord key = select_word(
      space, count, kept, pairs.key, [](Value) { return constant(u32, 0) == 0u; }, pairs.held_keys);
  const Value bound = key.word, rest = key.rest, equal = key.equal;
  Var row(u32, kNoKey, "row");
  // Rows matter only if some of the equal keys are left out, which is rare. All lanes agree on it,
  // which a reduction makes known.
  if_(group_max(select(rest < equal, constant(u32, 1), constant(u32, 0))) != 0u, [&] {
    const SelectedWord last =
        select_word(space, count, rest, pairs.row, [&](Value i) { return pairs.key(i) == bound; });
    row = Value(last.word);
  });
  return {bound, row};
}

Value select_key(const SelectSpace& space, const std::function<Value(Value)>& key, Value count,
                 Value kept) {
  return select_word(space, count, kept, key, [](Value) { return constant(u32, 0) == 0u; }).word;
}

}  // namespace prism::ops
