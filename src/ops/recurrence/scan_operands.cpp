// Declares the operands of scans and finds those of a group.
#include "ops/recurrence/scan_operands.h"

namespace prism::ops {

using namespace dsl;

namespace {

std::optional<In> in_if(bool wanted, const char* name) {
  return wanted ? std::optional<In>(in(name, f32)) : std::nullopt;
}

Value tiles_of(const Value& values, uint32_t columns) { return (values + (columns - 1)) / columns; }

}  // namespace

ScanOperands::ScanOperands(const ScanKernel& kind, uint32_t columns)
    : scan(kind),
      state(inout("state", f32)),
      q(in("q", f32)),
      k(in("k", f32)),
      v(in("v", f32)),
      decays(in("decay", f32)),
      extra(in_if(kind.has_extra(), "extra")),
      own_rates(in_if(kind.has_rates() && !kind.packed_rates, "rates")),
      texts{in("texts", u32)},
      y(out("y", f32)),
      rows(param("rows", u32)),
      heads(param("heads", u32)),
      key_heads(param("key_heads", u32)),
      values(param("values", u32)),
      text_count(param("texts", u32)),
      head(group_id(0) / tiles_of(values, columns)),
      key_head(kind.tiled_keys ? head % key_heads : head / (heads / key_heads)),
      first_column(group_id(0) % tiles_of(values, columns) * columns),
      first(texts.first()),
      count(texts.count()) {}

Value ScanOperands::from_at(const Value& of_head) const {
  return of_head * (scan.packed_rates ? 2 * scan.keys : scan.keys);
}

Value ScanOperands::rates_at(const Value& of_head) const {
  return scan.packed_rates ? from_at(of_head) + scan.keys : from_at(of_head);
}

void ScanOperands::clear_other_rows(const Value& column) const {
  texts.for_other_rows(text_count, rows, [&](Value row) {
    y[(row * heads + head) * values + column] = constant(f32, 0.0);
  });
}

}  // namespace prism::ops
