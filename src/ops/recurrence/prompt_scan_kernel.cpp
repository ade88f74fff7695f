// A group copies the next rows to shared memory while its lanes, which hold some keys of a few
// columns of the state in registers, walk the rows before them. No step waits for global memory,
// and the sums over keys stay within a subgroup.
#include "ops/recurrence/prompt_scan_kernel.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "ops/products/spread_sums.h"
#include "ops/recurrence/scan_operands.h"
#include "prism/kernel.h"

namespace prism::ops {

using namespace dsl;
using cpu::ScanDecay;
using cpu::ScanRule;

namespace {

constexpr uint32_t kMostKeysOfALane = 32;  // in registers, with as many temporaries
// Fewer groups leave processors idle; narrower ones copy the same keys more often.
constexpr uint32_t kFewGroups = 100, kNarrowColumns = 16;
constexpr uint32_t kMostSharedBytes = 48 << 10;  // of two stages: what all drivers give
// Lanes hold two columns each if so many lanes are left for a group, a subgroup for each of a
// processor's four schedulers: a load of keys serves both columns. On an H200 the scan of Mamba 2
// takes 0.26 ms for 0.36, of Qwen 3.5 0.35 for 0.43; with fewer lanes RWKV 7 takes 0.30 for 0.27.
constexpr uint32_t kFewestLanes = 128, kMostKeysOfTwoColumns = 16;
// Fewer steps in one body of the loop do not overlap enough: the loads of the next with the sums of
// the one before. Compilers do not unroll loops with shuffles by themselves.
constexpr uint32_t kFewestUnrolled = 4;

uint32_t lanes_of_a_load(uint32_t keys) { return keys % 4 == 0 ? 4 : 1; }

uint32_t parts_of(uint32_t keys) {
  const uint32_t load = lanes_of_a_load(keys);
  for (const uint32_t parts : {8u, 4u, 2u})
    if (keys % (parts * load) == 0 && keys / parts >= 4) return parts;
  return 1;
}

// The places in shared memory of what a row gives to the step, in elements of one stage.
struct Stage {
  explicit Stage(const PromptScanKernel& p) {
    const ScanKernel& s = p.scan;
    const auto take = [&](uint32_t width) {
      const uint32_t at = words;
      words += (p.staged * width + 3) / 4 * 4;
      return at;
    };
    decay_width = s.decay == ScanDecay::head ? 1 : s.decay == ScanDecay::key ? s.keys : p.columns;
    extra_width = s.rule == ScanRule::moving             ? s.keys
                  : s.rule == ScanRule::delta || s.gains ? 1
                                                         : 0;
    q = take(s.keys);
    k = take(s.keys);
    v = take(p.columns);
    decay = take(decay_width);
    extra = take(extra_width);
    rates = take(s.has_rates() ? s.keys : 0);
  }
  uint32_t words = 0;
  uint32_t decay_width = 0, extra_width = 0;
  uint32_t q = 0, k = 0, v = 0, decay = 0, extra = 0, rates = 0;
};

// One element for each key of a lane.
using PerKey = std::vector<Value>;

}  // namespace

uint32_t PromptScanKernel::staged_words() const { return Stage(*this).words; }

std::string PromptScanKernel::key() const {
  return fmt::format("prompt_{} {} {} {} {} {} {} {}{}{}", scan.key(), columns, each, parts, staged,
                     unrolled, subgroup, alone_bytes, key_quads ? " key_quads" : "",
                     value_quads ? " value_quads" : "");
}

std::optional<PromptScanKernel> prompt_scan(const ScanKernel& scan, uint32_t heads, uint32_t values,
                                            uint32_t texts, const ir::Capabilities& capabilities,
                                            uint32_t processors) {
  PromptScanKernel p{scan};
  p.subgroup = capabilities.subgroup_size;
  p.parts = parts_of(scan.keys);
  if (p.subgroup < p.parts || scan.keys / p.parts > kMostKeysOfALane) return std::nullopt;
  if (heads * ((values + p.columns - 1) / p.columns) * texts < kFewGroups)
    p.columns = kNarrowColumns;
  p.columns = std::max(p.columns, p.subgroup / p.parts);
  if (p.lanes() >= 2 * kFewestLanes && scan.keys / p.parts <= kMostKeysOfTwoColumns) p.each = 2;
  const uint32_t bytes = std::min(capabilities.shared_bytes, kMostSharedBytes);
  while (p.staged > 1 && 2 * 4 * p.staged_words() > bytes) p.staged /= 2;
  p.unrolled = std::min(p.unrolled, p.staged);
  if (p.unrolled < kFewestUnrolled || p.lanes() > capabilities.max_group_size) return std::nullopt;
  // A launch that may start before the one before it ends finds few processors free and fills
  // these, while the others stay idle. On an H200, prompts of Mamba 2 took twice the sum of their
  // steps.
  const uint32_t groups = heads * ((values + p.columns - 1) / p.columns) * texts;
  if (capabilities.dependent_launch && groups <= processors)
    p.alone_bytes = capabilities.shared_bytes / 2 + 1024;
  return p;
}

ir::Kernel prompt_scan_kernel(const PromptScanKernel& p) {
  const ScanKernel& s = p.scan;
  const uint32_t parts = p.parts, own_keys = s.keys / parts, lanes = p.lanes();
  const uint32_t across = p.columns / p.each;  // from a column of a lane to its next
  const uint32_t load = lanes_of_a_load(s.keys);
  return kernel("prompt_scan", lanes, [&] {
    if (parts > 1) require_subgroup_size(p.subgroup);
    const ScanOperands o(s, p.columns);
    const Value &heads = o.heads, &values = o.values, &head = o.head, &first = o.first,
                &count = o.count, &first_column = o.first_column;
    const Stage stage(p);
    const Array tile = shared(f32, std::max(2 * stage.words, p.alone_bytes / 4), "tile");
    const Array own = local(f32, own_keys * p.each, "own");
    const Array sums = local(f32, p.unrolled * p.each, "sums");

    // Lanes of a column are adjacent. A lane has every parts-th load of keys, so that the lanes of
    // a column read adjacent words.
    const Value lane = local_id(), part = lane % parts, tile_column = lane / parts;
    struct Column {
      Value inside, place;
    };
    std::vector<Column> columns;
    for (uint32_t c = 0; c < p.each; ++c) {
      const Value column = first_column + tile_column + c * across;
      columns.push_back({column < values, select(column < values, column, 0u)});
    }
    const auto key_at = [&](uint32_t i) {
      return part * load + (i / load * parts * load + i % load);
    };

    // Copies what the rows from `base` on need, zeros beyond the text.
    const auto fetch = [&](const Value& base, const Value& slot) {
      const auto copy = [&](const In& from, uint32_t to, uint32_t width, uint32_t each,
                            const std::function<Value(Value)>& start, bool of_columns) {
        const uint32_t chunks = width / each, all = p.staged * chunks;
        for (uint32_t turn = 0; turn * lanes < all; ++turn) {
          const Value index = lane + turn * lanes, row = index / chunks;
          const Value element = index % chunks * each;
          Value wanted = base + row < count;
          if (of_columns) wanted = wanted && first_column + element < values;
          const auto move = [&] {
            async_copy_if(wanted, tile, slot * stage.words + (index * each + to), from,
                          start(first + base + row) + element, each);
          };
          if ((turn + 1) * lanes <= all)
            move();
          else
            if_(index < all, move);
        }
      };
      const Value own_keys_at = o.key_head * s.keys, own_values_at = head * values + first_column;
      const uint32_t key_quad = p.key_quads ? load : 1, quad = p.value_quads ? 4 : 1;
      copy(
          o.q, stage.q, s.keys, key_quad, [&](Value row) { return o.of_q.at(row) + own_keys_at; },
          false);
      copy(
          o.k, stage.k, s.keys, key_quad, [&](Value row) { return o.of_k.at(row) + own_keys_at; },
          false);
      copy(
          o.v, stage.v, p.columns, quad, [&](Value row) { return o.of_v.at(row) + own_values_at; },
          true);
      if (s.decay == ScanDecay::element)
        copy(
            o.decays, stage.decay, p.columns, quad,
            [&](Value row) { return row * heads * values + own_values_at; }, true);
      else
        copy(
            o.decays, stage.decay, stage.decay_width, s.decay == ScanDecay::key ? load : 1,
            [&](Value row) { return (row * heads + head) * stage.decay_width; }, false);
      if (s.has_rates()) {
        copy(
            *o.extra, stage.extra, s.keys, load,
            [&](Value row) { return o.from_at(row * heads + head); }, false);
        copy(
            o.rates(), stage.rates, s.keys, load,
            [&](Value row) { return o.rates_at(row * heads + head); }, false);
      } else if (stage.extra_width > 0) {
        copy(
            *o.extra, stage.extra, 1, 1, [&](Value row) { return row * heads + head; }, false);
      }
      async_commit();
    };
    const auto per_key = [&](const Value& start) {
      PerKey all;
      for (uint32_t i = 0; i < own_keys; i += load) {
        const Value words = tile.load(start + key_at(i), load);
        for (uint32_t j = 0; j < load; ++j) all.push_back(load == 1 ? words : words[j]);
      }
      return all;
    };
    // The sum of by[i] * of[i] over this lane's keys.
    const auto over_keys = [&](const PerKey& by, const PerKey& of) {
      constexpr uint32_t kChains = 4;  // sums that do not wait for each other
      PerKey chains;
      for (uint32_t i = 0; i < own_keys; ++i) {
        if (i < kChains)
          chains.push_back(by[i] * of[i]);
        else
          chains[i % kChains] = fma(by[i], of[i], chains[i % kChains]);
      }
      Value sum = chains[0];
      for (size_t i = 1; i < chains.size(); ++i) sum = sum + chains[i];
      return sum;
    };
    // The same over all keys of the column, in all its lanes.
    const auto over_all_keys = [&](const PerKey& by, const PerKey& of) {
      Value sum = over_keys(by, of);
      for (uint32_t mask = 1; mask < parts; mask *= 2) sum = sum + subgroup_shuffle_xor(sum, mask);
      return sum;
    };

    std::vector<PerKey> rates(p.each);
    const Value state_at = o.state_at();
    for (uint32_t c = 0; c < p.each; ++c)
      for (uint32_t i = 0; i < own_keys; ++i) {
        const auto& [inside, place] = columns[c];
        if (s.decay == ScanDecay::element)
          rates[c].push_back((*o.extra)[(head * s.keys + key_at(i)) * values + place]);
        own[c * own_keys + i] = o.state.load_if(inside, (state_at + key_at(i)) * values + place);
      }

    // Rows beyond the text have zeros in shared memory: with a decay of 1 they change nothing.
    // Leaves this lane's part of the results in sums.
    const auto step = [&](const Value& from, const Value& row, const Value& number,
                          const Value& is_row) {
      const auto vectors = [&](uint32_t at) { return per_key(from + at + row * s.keys); };
      const auto of_column = [&](uint32_t at, uint32_t c) {
        return tile.load(from + at + row * p.columns + tile_column + c * across);
      };
      const PerKey keys = vectors(stage.k), reads = vectors(stage.q);
      PerKey decays, held, to;
      if (s.decay == ScanDecay::key)
        for (const Value& each : vectors(stage.decay)) decays.push_back(select(is_row, each, 1.0f));
      if (s.decay == ScanDecay::head)
        decays.assign(own_keys, select(is_row, tile.load(from + stage.decay + row), 1.0f));
      if (s.rule == ScanRule::moving) {
        held = vectors(stage.extra);
        to = vectors(stage.rates);
        for (uint32_t i = 0; i < own_keys; ++i) to[i] = held[i] * to[i];
      }
      std::optional<Value> factor;  // the gain, or beta
      if (s.gains || s.rule == ScanRule::delta) factor = tile.load(from + stage.extra + row);
      for (uint32_t c = 0; c < p.each; ++c) {
        const Value value = of_column(stage.v, c);
        Value given = value;
        PerKey old, now;
        for (uint32_t i = 0; i < own_keys; ++i) old.push_back(own.load(c * own_keys + i));
        // The decayed state: what the row adds comes last, because it waits for a sum over all
        // lanes.
        if (s.decay == ScanDecay::element) {
          const Value by = of_column(stage.decay, c);
          for (uint32_t i = 0; i < own_keys; ++i) now.push_back(old[i] * exp(by * rates[c][i]));
          given = value * by;
        } else {
          for (uint32_t i = 0; i < own_keys; ++i) now.push_back(old[i] * decays[i]);
        }
        if (s.gains) given = value * *factor;
        if (s.rule == ScanRule::delta) given = *factor * (value - over_all_keys(keys, now));
        for (uint32_t i = 0; i < own_keys; ++i) now[i] = fma(keys[i], given, now[i]);
        if (s.rule == ScanRule::moving) {
          const Value moved = -over_all_keys(held, old);
          for (uint32_t i = 0; i < own_keys; ++i) now[i] = fma(to[i], moved, now[i]);
        }
        for (uint32_t i = 0; i < own_keys; ++i) own[c * own_keys + i] = now[i];
        sums[number * p.each + c] = over_keys(reads, s.rule == ScanRule::sums_before ? old : now);
      }
    };
    // Adds up the results of the rows from `row` on over the lanes of each column and stores them.
    const auto store = [&](const Value& base, const Value& row, const Value& here) {
      std::vector<Value> all;
      for (uint32_t i = 0; i < p.unrolled * p.each; ++i) all.push_back(sums.load(i));
      const SpreadSums spread = parts > 1 ? spread_sums(std::move(all), 1, parts)
                                          : SpreadSums{all, constant(u32, 0), constant(b1, 1)};
      for (uint32_t i = 0; i < spread.held.size(); ++i) {
        const Value number = spread.first + i, of_row = row + number / p.each;
        const Value column = first_column + tile_column + number % p.each * across;
        o.y.store_if(spread.mine && of_row < here && column < values,
                     ((first + base + of_row) * heads + head) * values + column, spread.held[i]);
      }
    };

    fetch(constant(u32, 0), constant(u32, 0));
    for_(0u, count, p.staged, [&](Value base) {
      const Value slot = base / p.staged & 1u;
      fetch(base + p.staged, slot ^ 1u);
      async_wait(1);
      barrier();
      const Value here = min(count - base, p.staged);
      for_(0u, here, p.unrolled, [&](Value row) {
        unrolled_for(p.unrolled,
                     [&](Value i) { step(slot * stage.words, row + i, i, row + i < here); });
        store(base, row, here);
      });
      barrier();
    });
    async_wait();
    for (uint32_t c = 0; c < p.each; ++c) {
      const Value inside = columns[c].inside, place = columns[c].place;
      if_(count > 0u && inside, [&] {
        for (uint32_t i = 0; i < own_keys; ++i)
          o.state[(state_at + key_at(i)) * values + place] = own.load(c * own_keys + i);
      });
      if_(inside && part == 0u, [&] { o.clear_other_rows(place); });
    }
  });
}

}  // namespace prism::ops
