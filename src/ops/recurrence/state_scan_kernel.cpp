// Each lane holds some keys of one column of the state in registers and walks the rows of a text.
#include "ops/recurrence/state_scan_kernel.h"

#include <optional>

#include <fmt/format.h>

#include "ops/recurrence/text_rows.h"
#include "prism/kernel.h"

namespace prism::ops {

using namespace dsl;
using cpu::ScanDecay;
using cpu::ScanRule;

uint32_t ScanKernel::parts() const {
  // 16 keys a lane leave enough registers; more lanes would wait for each other longer.
  for (const uint32_t parts : {8u, 4u, 2u})
    if (keys % parts == 0 && keys / parts >= 16) return parts;
  return 1;
}

bool ScanKernel::has_extra() const {
  return rule == ScanRule::delta || rule == ScanRule::moving || decay == ScanDecay::element ||
         gains;
}

std::string ScanKernel::key() const {
  return fmt::format("state_scan {} {} {}{}{}", static_cast<int>(rule), static_cast<int>(decay),
                     keys, tiled_keys ? " tiled" : "", gains ? " gains" : "");
}

ir::Kernel scan_kernel(const ScanKernel& p) {
  constexpr uint32_t kColumns = ScanKernel::kColumns;
  const uint32_t parts = p.parts(), each = p.keys / parts;
  return kernel("state_scan", kColumns * parts, [&] {
    const Array state = inout("state", f32);
    const In q = in("q", f32), k = in("k", f32), v = in("v", f32), decays = in("decay", f32);
    std::optional<In> extra;
    if (p.has_extra()) extra = in("extra", f32);
    const KernelTexts texts{in("texts", u32)};
    const Array y = out("y", f32);
    const Value rows = param("rows", u32), heads = param("heads", u32),
                key_heads = param("key_heads", u32), values = param("values", u32),
                text_count = param("texts", u32);
    const RowPlaces of_q, of_k, of_v;
    std::optional<Array> sums;
    if (parts > 1) sums = shared(f32, 2 * kColumns * parts, "sums");
    const Array own = local(f32, each, "own");

    const Value lane = local_id(), part = lane / kColumns;
    const Value tiles = (values + (kColumns - 1)) / kColumns;
    const Value head = group_id(0) / tiles;
    const Value column = group_id(0) % tiles * kColumns + lane % kColumns;
    const Value inside = column < values, place = select(inside, column, 0u);
    const Value key_head = p.tiled_keys ? head % key_heads : head / (heads / key_heads);
    const Value first_key = part * each;
    const Value first = texts.first(), count = texts.count();

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

    const Value at = ((texts.state() * heads + head) * p.keys + first_key) * values + place;
    for (uint32_t i = 0; i < each; ++i) own[i] = state.load_if(inside, at + i * values);
    for_(first, first + count, 1u, [&](Value row) {
      const Value of_head = row * heads + head;
      const Value value = v[of_v.at(row) + head * values + place];
      const Value of_part = key_head * p.keys + first_key;
      const Value q_at = of_q.at(row) + of_part, k_at = of_k.at(row) + of_part;
      const Value vectors = of_head * p.keys + first_key;
      Var moved(f32, constant(f32, 0.0), "moved");
      const Value head_decay = p.decay == ScanDecay::head  ? decays[of_head]
                               : p.decay == ScanDecay::key ? constant(f32, 0.0)
                                                           : decays[of_head * values + place];
      Value given = value;
      if (p.gains) given = value * (*extra)[of_head];
      if (p.decay == ScanDecay::element) given = value * head_decay;
      const auto decay_of = [&](uint32_t i) {
        if (p.decay == ScanDecay::head) return head_decay;
        if (p.decay == ScanDecay::key) return decays[vectors + i];
        const Value rate = (*extra)[(head * p.keys + first_key + i) * values + place];
        return exp(head_decay * rate);
      };
      if (p.rule == ScanRule::delta || p.rule == ScanRule::moving) {
        for (uint32_t i = 0; i < each; ++i) {
          const Value by = p.rule == ScanRule::delta
                               ? k[k_at + i] * decay_of(i)
                               : (*extra)[of_head * (2 * p.keys) + first_key + i];
          moved = fma(by, own.load(i), moved);
        }
        moved = over_parts(moved, constant(u32, 0));
        if (p.rule == ScanRule::delta) given = (*extra)[of_head] * (value - moved);
      }
      Var result(f32, constant(f32, 0.0), "result");
      for (uint32_t i = 0; i < each; ++i) {
        const Value old = own.load(i);
        Value now = fma(old, decay_of(i), k[k_at + i] * given);
        if (p.rule == ScanRule::moving)
          now = fma((*extra)[of_head * (2 * p.keys) + p.keys + first_key + i], -Value(moved), now);
        own[i] = now;
        result = fma(q[q_at + i], p.rule == ScanRule::sums_before ? old : now, result);
      }
      const bool other_sum = p.rule == ScanRule::delta || p.rule == ScanRule::moving;
      const Value all = over_parts(result, other_sum ? constant(u32, 1) : row & 1u);
      if_(inside && part == 0u, [&] { y[of_head * values + column] = all; });
    });
    if_(count > 0u && inside, [&] {
      for (uint32_t i = 0; i < each; ++i) state[at + i * values] = own.load(i);
    });
    if_(inside && part == 0u, [&] {
      texts.for_other_rows(text_count, rows, [&](Value row) {
        y[(row * heads + head) * values + column] = constant(f32, 0.0);
      });
    });
  });
}

}  // namespace prism::ops
