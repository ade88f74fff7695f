// A group copies the next rows to shared memory while its lanes, which hold some keys of one column
// of the state in registers, walk the rows before them. No step waits for global memory, and the
// sums over keys stay within a subgroup.
#include "ops/recurrence/prompt_scan_kernel.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "ops/recurrence/text_rows.h"
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
// Steps in one body of the loop, so that the loads of the next overlap the sums of the one before:
// compilers do not unroll loops with shuffles by themselves.
constexpr uint32_t kUnrolled = 4;

uint32_t lanes_of_a_load(uint32_t keys) { return keys % 4 == 0 ? 4 : 1; }

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
    extra_width = s.rule == ScanRule::moving             ? 2 * s.keys
                  : s.rule == ScanRule::delta || s.gains ? 1
                                                         : 0;
    q = take(s.keys);
    k = take(s.keys);
    v = take(p.columns);
    decay = take(decay_width);
    extra = take(extra_width);
  }
  uint32_t words = 0;
  uint32_t decay_width = 0, extra_width = 0;
  uint32_t q = 0, k = 0, v = 0, decay = 0, extra = 0;
};

// One element for each key of a lane.
using PerKey = std::vector<Value>;

}  // namespace

uint32_t PromptScanKernel::parts() const {
  const uint32_t each = lanes_of_a_load(scan.keys);
  for (const uint32_t parts : {8u, 4u, 2u})
    if (scan.keys % (parts * each) == 0 && scan.keys / parts >= 4) return parts;
  return 1;
}

uint32_t PromptScanKernel::staged_words() const { return Stage(*this).words; }

std::string PromptScanKernel::key() const {
  return fmt::format("prompt_{} {} {} {} {}{}{}", scan.key(), columns, staged, subgroup,
                     alone_bytes, key_quads ? " key_quads" : "", value_quads ? " value_quads" : "");
}

std::optional<PromptScanKernel> prompt_scan(const ScanKernel& scan, uint32_t heads, uint32_t values,
                                            uint32_t texts, const ir::Capabilities& capabilities,
                                            uint32_t processors) {
  PromptScanKernel p{scan};
  p.subgroup = capabilities.subgroup_size;
  if (p.subgroup < p.parts() || scan.keys / p.parts() > kMostKeysOfALane) return std::nullopt;
  if (heads * ((values + p.columns - 1) / p.columns) * texts < kFewGroups)
    p.columns = kNarrowColumns;
  p.columns = std::max(p.columns, p.subgroup / p.parts());
  const uint32_t bytes = std::min(capabilities.shared_bytes, kMostSharedBytes);
  while (p.staged > 1 && 2 * 4 * p.staged_words() > bytes) p.staged /= 2;
  if (p.staged < kUnrolled || p.columns * p.parts() > capabilities.max_group_size)
    return std::nullopt;
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
  const uint32_t parts = p.parts(), own_keys = s.keys / parts, lanes = p.columns * parts;
  const uint32_t load = lanes_of_a_load(s.keys);
  return kernel("prompt_scan", lanes, [&] {
    if (parts > 1) require_subgroup_size(p.subgroup);
    const Array state = inout("state", f32);
    const In q = in("q", f32), k = in("k", f32), v = in("v", f32), decays = in("decay", f32);
    std::optional<In> extra;
    if (s.has_extra()) extra = in("extra", f32);
    const KernelTexts texts{in("texts", u32)};
    const Array y = out("y", f32);
    const Value rows = param("rows", u32), heads = param("heads", u32),
                key_heads = param("key_heads", u32), values = param("values", u32),
                text_count = param("texts", u32);
    const RowPlaces of_q, of_k, of_v;
    const Stage stage(p);
    const Array tile = shared(f32, std::max(2 * stage.words, p.alone_bytes / 4), "tile");
    const Array own = local(f32, own_keys, "own");

    // Lanes of a column are adjacent. A lane has every parts-th load of keys, so that the lanes of
    // a column read adjacent words.
    const Value lane = local_id(), part = lane % parts, tile_column = lane / parts;
    const Value tiles = (values + (p.columns - 1)) / p.columns;
    const Value head = group_id(0) / tiles, first_column = group_id(0) % tiles * p.columns;
    const Value column = first_column + tile_column;
    const Value inside = column < values, place = select(inside, column, 0u);
    const Value key_head = s.tiled_keys ? head % key_heads : head / (heads / key_heads);
    const Value first = texts.first(), count = texts.count();
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
      const Value own_keys_at = key_head * s.keys, own_values_at = head * values + first_column;
      const uint32_t key_quad = p.key_quads ? load : 1, quad = p.value_quads ? 4 : 1;
      copy(
          q, stage.q, s.keys, key_quad, [&](Value row) { return of_q.at(row) + own_keys_at; },
          false);
      copy(
          k, stage.k, s.keys, key_quad, [&](Value row) { return of_k.at(row) + own_keys_at; },
          false);
      copy(
          v, stage.v, p.columns, quad, [&](Value row) { return of_v.at(row) + own_values_at; },
          true);
      if (s.decay == ScanDecay::element)
        copy(
            decays, stage.decay, p.columns, quad,
            [&](Value row) { return row * heads * values + own_values_at; }, true);
      else
        copy(
            decays, stage.decay, stage.decay_width, s.decay == ScanDecay::key ? load : 1,
            [&](Value row) { return (row * heads + head) * stage.decay_width; }, false);
      if (stage.extra_width > 0)
        copy(
            *extra, stage.extra, stage.extra_width, s.rule == ScanRule::moving ? load : 1,
            [&](Value row) { return (row * heads + head) * stage.extra_width; }, false);
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
    // The sum of by[i] * of[i] over all keys of the column, the same in all its lanes.
    const auto over_keys = [&](const PerKey& by, const PerKey& of) {
      constexpr uint32_t kChains = 4;  // sums that do not wait for each other
      PerKey sums;
      for (uint32_t i = 0; i < own_keys; ++i) {
        if (i < kChains)
          sums.push_back(by[i] * of[i]);
        else
          sums[i % kChains] = fma(by[i], of[i], sums[i % kChains]);
      }
      Value sum = sums[0];
      for (size_t i = 1; i < sums.size(); ++i) sum = sum + sums[i];
      for (uint32_t mask = 1; mask < parts; mask *= 2) sum = sum + subgroup_shuffle_xor(sum, mask);
      return sum;
    };

    PerKey rates;
    if (s.decay == ScanDecay::element)
      for (uint32_t i = 0; i < own_keys; ++i)
        rates.push_back((*extra)[(head * s.keys + key_at(i)) * values + place]);
    const Value state_at = (texts.state() * heads + head) * s.keys;
    for (uint32_t i = 0; i < own_keys; ++i)
      own[i] = state.load_if(inside, (state_at + key_at(i)) * values + place);

    // Rows beyond the text have zeros in shared memory: with a decay of 1 they change nothing.
    const auto step = [&](const Value& from, const Value& row, const Value& target,
                          const Value& is_row) {
      const auto vectors = [&](uint32_t at, uint32_t width) {
        return per_key(from + at + row * width);
      };
      const PerKey keys = vectors(stage.k, s.keys), reads = vectors(stage.q, s.keys);
      const Value value = tile.load(from + stage.v + row * p.columns + tile_column);
      Value given = value;
      PerKey old, now;
      for (uint32_t i = 0; i < own_keys; ++i) old.push_back(own.load(i));
      // The decayed state: what the row adds comes last, because it waits for a sum over all lanes.
      if (s.decay == ScanDecay::key) {
        const PerKey by = vectors(stage.decay, s.keys);
        for (uint32_t i = 0; i < own_keys; ++i) now.push_back(old[i] * select(is_row, by[i], 1.0f));
      } else {
        const Value by = s.decay == ScanDecay::head
                             ? select(is_row, tile.load(from + stage.decay + row), 1.0f)
                             : tile.load(from + stage.decay + row * p.columns + tile_column);
        for (uint32_t i = 0; i < own_keys; ++i)
          now.push_back(old[i] * (s.decay == ScanDecay::head ? by : exp(by * rates[i])));
        if (s.decay == ScanDecay::element) given = value * by;
      }
      if (s.gains) given = value * tile.load(from + stage.extra + row);
      if (s.rule == ScanRule::delta)
        given = tile.load(from + stage.extra + row) * (value - over_keys(keys, now));
      for (uint32_t i = 0; i < own_keys; ++i) now[i] = fma(keys[i], given, now[i]);
      if (s.rule == ScanRule::moving) {
        const Value moved = -over_keys(vectors(stage.extra, 2 * s.keys), old);
        const PerKey to = per_key(from + stage.extra + row * (2 * s.keys) + s.keys);
        for (uint32_t i = 0; i < own_keys; ++i) now[i] = fma(to[i], moved, now[i]);
      }
      for (uint32_t i = 0; i < own_keys; ++i) own[i] = now[i];
      const Value result = over_keys(reads, s.rule == ScanRule::sums_before ? old : now);
      y.store_if(is_row && inside && part == 0u, (target * heads + head) * values + place, result);
    };

    fetch(constant(u32, 0), constant(u32, 0));
    for_(0u, count, p.staged, [&](Value base) {
      const Value slot = base / p.staged & 1u;
      fetch(base + p.staged, slot ^ 1u);
      async_wait(1);
      barrier();
      const Value here = min(count - base, p.staged);
      for_(0u, here, kUnrolled, [&](Value from) {
        unrolled_for(kUnrolled, [&](Value i) {
          const Value row = from + i;
          step(slot * stage.words, row, first + base + row, row < here);
        });
      });
      barrier();
    });
    async_wait();
    if_(count > 0u && inside, [&] {
      for (uint32_t i = 0; i < own_keys; ++i)
        state[(state_at + key_at(i)) * values + place] = own.load(i);
    });
    if_(inside && part == 0u, [&] {
      texts.for_other_rows(text_count, rows, [&](Value row) {
        y[(row * heads + head) * values + column] = constant(f32, 0.0);
      });
    });
  });
}

}  // namespace prism::ops
