// Copies rows of segments into new ones, bytes as they are stored.
#include <algorithm>
#include <numeric>

#include "search/segment.h"

namespace prism::search {

namespace {

// Appends the bytes of each row, `bytes` of them.
void copy_rows(std::span<const Segment::Source> rows, uint64_t bytes,
               const std::function<const Section&(const Segment&)>& from, Section& to) {
  to.resize(rows.size() * bytes);
  std::byte* out = to.change<std::byte>();
  for (const Segment::Source& each : rows) {
    std::copy_n(from(*each.segment).data() + each.row * bytes, bytes, out);
    out += bytes;
  }
}

}  // namespace

std::vector<uint32_t> Segment::added_order() const {
  std::vector<uint32_t> rows(rows_);
  std::iota(rows.begin(), rows.end(), 0);
  if (order_.bytes() == 0) return rows;
  const auto* const position = order_.as<uint32_t>();
  std::ranges::stable_sort(rows, {}, [&](uint32_t row) { return position[row]; });
  return rows;
}

Segment Segment::gathered(const IndexOptions& options, std::span<const Source> rows) {
  Segment made(options);
  copy_rows(
      rows, vector_bytes(options.type, options.width),
      [](const Segment& s) -> const Section& { return s.vectors_; }, made.vectors_);
  const auto copy_floats = [&](Section Segment::*which) {
    const bool has = std::ranges::all_of(
        rows, [&](const Source& each) { return (each.segment->*which).bytes() > 0; });
    if (!has) return;
    copy_rows(
        rows, sizeof(float), [&](const Segment& s) -> const Section& { return s.*which; },
        made.*which);
  };
  copy_floats(&Segment::factors_);
  copy_floats(&Segment::scales_);
  if (options.rescore)
    copy_rows(
        rows, vector_bytes(*options.rescore, options.width),
        [](const Segment& s) -> const Section& { return s.exact_; }, made.exact_);
  if (!options.text_ids)
    copy_rows(
        rows, sizeof(uint64_t), [](const Segment& s) -> const Section& { return s.ids_; },
        made.ids_);
  for (const Source& each : rows) {
    if (options.text_ids) {
      made.id_bytes_.append(std::as_bytes(std::span(each.segment->id(each.row).text())));
      made.ids_.push(uint64_t{made.id_bytes_.bytes()});
    }
    for (const Column& column : each.segment->columns_) {
      if (made.column(column.name)) continue;
      made.columns_.push_back({column.name, column.type, {}, {}, {}});
    }
  }
  for (Column& column : made.columns_)
    for (const Source& each : rows) {
      const Column* const from = each.segment->column(column.name);
      if (!from || !from->has(each.row)) {
        made.add_column_value(column, nullptr);
        continue;
      }
      const Field value = each.segment->field(*from, each.row);
      made.add_column_value(column, &value);
    }
  made.rows_ = rows.size();
  made.set_all_alive();
  return made;
}

Segment Segment::reordered(std::span<const uint32_t> rows) const {
  std::vector<Source> sources;
  for (const uint32_t row : rows) sources.push_back({this, row});
  Segment made = gathered(options_, sources);
  std::vector<uint32_t> position(rows_), order(rows_);
  const std::vector<uint32_t> added = added_order();
  for (uint32_t i = 0; i < rows_; ++i) position[added[i]] = i;
  for (uint64_t i = 0; i < rows_; ++i) {
    order[i] = position[rows[i]];
    if (!is_alive(rows[i])) made.remove(i);
  }
  made.order_ = Section::of(order);
  return made;
}

Wanted Segment::wanted() const {
  Wanted all;
  all.rows = scan_rows();
  all.exact = exact_rows();
  all.type = options_.type;
  all.width = options_.width;
  all.allowed = rows_ - removed_count_;
  if (removed_count_ > 0) all.rows.allowed = alive_.data();
  return all;
}

}  // namespace prism::search
