// Each lane holds some keys of one column of the state in registers and walks the rows of a text.
#include "ops/recurrence/state_scan_kernel.h"

#include <optional>

#include <fmt/format.h>

#include "ops/recurrence/scan_operands.h"
#include "prism/kernel.h"

namespace prism::ops {

using namespace dsl;
using cpu::ScanDecay;
using cpu::ScanRule;

void ScanKernel::share_columns(bool one_row, uint32_t most_lanes) {
  // 16 keys a lane leave enough registers; more lanes would wait for each other longer. A single
  // row waits for its loads instead, which more lanes do at once.
  const uint32_t fewest_keys = one_row ? 4 : 16, most_parts = one_row ? 16 : 8;
  parts = 1;
  for (uint32_t more = 2; more <= most_parts; more *= 2)
    if (keys % more == 0 && keys / more >= fewest_keys && kColumns * more <= most_lanes)
      parts = more;
}

bool ScanKernel::has_extra() const {
  return rule == ScanRule::delta || rule == ScanRule::moving || decay == ScanDecay::element ||
         gains;
}

std::string ScanKernel::key() const {
  return fmt::format("state_scan {} {} {} {}{}{}{}", static_cast<int>(rule),
                     static_cast<int>(decay), keys, parts, tiled_keys ? " tiled" : "",
                     gains ? " gains" : "", packed_rates ? " packed" : "");
}

ir::Kernel scan_kernel(const ScanKernel& p) {
  constexpr uint32_t kColumns = ScanKernel::kColumns;
  const uint32_t parts = p.parts, each = p.keys / parts;
  return kernel("state_scan", kColumns * parts, [&] {
    const ScanOperands o(p, kColumns);
    const Value &heads = o.heads, &values = o.values, &head = o.head, &first = o.first,
                &count = o.count;
    std::optional<Array> sums;
    if (parts > 1) sums = shared(f32, 2 * kColumns * parts, "sums");
    const Array own = local(f32, each, "own");

    const Value lane = local_id(), part = lane / kColumns;
    const Value column = o.first_column + lane % kColumns;
    const Value inside = column < values, place = select(inside, column, 0u);
    const Value first_key = part * each;

    // The sum over the lanes of a column. which: 0 or 1, so that lanes that are ahead do not write
    // what others still read.
    const auto over_parts = [&](const Value& mine, const Value& which) {
      if (parts == 1) return mine;
      const Value from = which * (kColumns * parts);
      (*sums)[from + lane] = mine;
      barrier();
      Var sum(f32, constant(f32, 0.0), "sum");
      for (uint32_t i = 0; i < parts; ++i) sum += sums->load(from + i * kColumns + lane % kColumns);
      return Value(sum);
    };

    const Value at = (o.state_at() + first_key) * values + place;
    for (uint32_t i = 0; i < each; ++i) own[i] = o.state.load_if(inside, at + i * values);
    for_(first, first + count, 1u, [&](Value row) {
      const Value of_head = row * heads + head;
      const Value value = o.v[o.of_v.at(row) + head * values + place];
      const Value of_part = o.key_head * p.keys + first_key;
      const Value q_at = o.of_q.at(row) + of_part, k_at = o.of_k.at(row) + of_part;
      Var moved(f32, constant(f32, 0.0), "moved");
      const Value head_decay = p.decay == ScanDecay::head  ? o.decays[of_head]
                               : p.decay == ScanDecay::key ? constant(f32, 0.0)
                                                           : o.decays[of_head * values + place];
      Value given = value;
      if (p.gains) given = value * (*o.extra)[of_head];
      if (p.decay == ScanDecay::element) given = value * head_decay;
      const auto decay_of = [&](uint32_t i) {
        if (p.decay == ScanDecay::head) return head_decay;
        if (p.decay == ScanDecay::key) return o.decays[of_head * p.keys + first_key + i];
        const Value rate = (*o.extra)[(head * p.keys + first_key + i) * values + place];
        return exp(head_decay * rate);
      };
      if (p.rule == ScanRule::delta || p.rule == ScanRule::moving) {
        for (uint32_t i = 0; i < each; ++i) {
          const Value by = p.rule == ScanRule::delta
                               ? o.k[k_at + i] * decay_of(i)
                               : (*o.extra)[o.from_at(of_head) + first_key + i];
          moved = fma(by, own.load(i), moved);
        }
        moved = over_parts(moved, constant(u32, 0));
        if (p.rule == ScanRule::delta) given = (*o.extra)[of_head] * (value - moved);
      }
      Var result(f32, constant(f32, 0.0), "result");
      for (uint32_t i = 0; i < each; ++i) {
        const Value old = own.load(i);
        Value now = fma(old, decay_of(i), o.k[k_at + i] * given);
        if (p.rule == ScanRule::moving) {
          const Value to = (*o.extra)[o.from_at(of_head) + first_key + i] *
                           o.rates()[o.rates_at(of_head) + first_key + i];
          now = fma(to, -Value(moved), now);
        }
        own[i] = now;
        result = fma(o.q[q_at + i], p.rule == ScanRule::sums_before ? old : now, result);
      }
      const bool other_sum = p.rule == ScanRule::delta || p.rule == ScanRule::moving;
      const Value all = over_parts(result, other_sum ? constant(u32, 1) : row & 1u);
      if_(inside && part == 0u, [&] { o.y[of_head * values + column] = all; });
    });
    if_(count > 0u && inside, [&] {
      for (uint32_t i = 0; i < each; ++i) o.state[at + i * values] = own.load(i);
    });
    if_(inside && part == 0u, [&] { o.clear_other_rows(column); });
  });
}

}  // namespace prism::ops
