// Stores vectors in the element types of an index, and reads ids and fields.
#include "search/segment.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "prism/error.h"
#include "search/methods/graph_searcher.h"
#include "search/methods/ivf_searcher.h"

namespace prism::search {

namespace {

double length_of(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

struct Stored {
  std::vector<std::byte> bytes;
  float scale = 1;
};

Stored store(DType type, std::span<const float> values) {
  if (type == DType::b1) return {query_for(type, values)};
  Stored stored{std::vector<std::byte>(vector_bytes(type, values.size()))};
  if (type == DType::i8) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    stored.scale = largest == 0 ? 1 : largest / 127;
    auto* const to = reinterpret_cast<int8_t*>(stored.bytes.data());
    for (size_t i = 0; i < values.size(); ++i)
      to[i] = static_cast<int8_t>(std::lrint(values[i] / stored.scale));
    return stored;
  }
  cpu::store(DType::f32, values.data(), type, stored.bytes.data(), values.size());
  return stored;
}

std::vector<float> load(DType type, const std::byte* from, float scale, uint64_t width) {
  std::vector<float> values(width);
  if (type == DType::b1) {
    for (uint64_t i = 0; i < width; ++i)
      values[i] = (std::to_integer<int>(from[i / 8]) >> (i % 8) & 1) != 0 ? 1.0f : -1.0f;
    return values;
  }
  cpu::load(type, from, 1, DType::f32, values.data(), width);
  if (type == DType::i8)
    for (float& value : values) value *= scale;
  return values;
}

bool has_factors(const IndexOptions& options) {
  return options.type != DType::b1 &&
         (options.metric == Metric::cosine || options.type == DType::i8);
}

}  // namespace

const char* field_type_name(FieldType type) {
  switch (type) {
    case FieldType::integer:
      return "integer";
    case FieldType::number:
      return "float";
    case FieldType::text:
      return "text";
    default:
      return "list";
  }
}

uint64_t vector_bytes(DType type, uint64_t width) {
  return type == DType::b1 ? (width + 7) / 8 : width * dtype_bytes(type);
}

Segment::Segment(const IndexOptions& options) : options_(options) {
  static std::atomic<uint64_t> next{0};
  identity_ = next++;
}

std::string_view Column::text(uint64_t row) const {
  const auto* const ends = values.as<uint64_t>();
  const uint64_t begin = row == 0 ? 0 : ends[row - 1], end = ends[row];
  if (begin > end || end > bytes.bytes()) return {};  // a damaged file
  return bytes.text().substr(begin, end - begin);
}

Id Segment::id(uint64_t row) const {
  if (!options_.text_ids) return ids_.as<uint64_t>()[row];
  const auto* const ends = ids_.as<uint64_t>();
  const uint64_t begin = row == 0 ? 0 : ends[row - 1], end = ends[row];
  if (begin > end || end > id_bytes_.bytes()) return std::string();
  return std::string(id_bytes_.text().substr(begin, end - begin));
}

void Segment::remove(uint64_t row) {
  alive_[row / 32] &= ~(uint32_t{1} << (row % 32));
  ++removed_count_;
}

void Segment::set_alive(std::vector<uint32_t> words) {
  alive_ = std::move(words);
  // By words: opening a file of millions of short vectors must not look at each of them.
  if (rows_ % 32 != 0) alive_.back() &= (uint32_t{1} << (rows_ % 32)) - 1;
  removed_count_ = rows_;
  for (const uint32_t word : alive_) removed_count_ -= static_cast<uint64_t>(std::popcount(word));
}

void Segment::add(const Id& id, std::span<const float> vector, const Fields& fields) {
  const Stored stored = store(options_.type, vector);
  vectors_.append(stored.bytes);
  if (has_factors(options_)) {
    // The length of what is stored, because scores are computed from that.
    const std::vector<float> kept = load(options_.type, stored.bytes.data(), 1, options_.width);
    const float length = static_cast<float>(length_of(kept));
    factors_.push(options_.metric == Metric::cosine ? length : stored.scale);
    // vector() needs the scale of a cosine too.
    if (options_.metric == Metric::cosine && options_.type == DType::i8) scales_.push(stored.scale);
  }
  if (options_.rescore) exact_.append(store(*options_.rescore, vector).bytes);
  if (options_.text_ids) {
    id_bytes_.append(std::as_bytes(std::span(id.text())));
    ids_.push(uint64_t{id_bytes_.bytes()});
  } else {
    ids_.push(id.number());
  }
  for (const auto& [name, value] : fields) {
    if (column(name)) continue;
    Column& added = columns_.emplace_back();
    added.name = name;
    added.type = static_cast<FieldType>(value.index());
    for (uint64_t row = 0; row < rows_; ++row) add_column_value(added, nullptr);
  }
  for (Column& each : columns_) {
    const auto found = fields.find(each.name);
    add_column_value(each, found == fields.end() ? nullptr : &found->second);
  }
  if (rows_ % 32 == 0) alive_.push_back(0);
  alive_[rows_ / 32] |= uint32_t{1} << (rows_ % 32);
  ++rows_;
}

void Segment::add_column_value(Column& column, const Field* value) {
  column.present.push(static_cast<uint8_t>(value != nullptr));
  if (column.type == FieldType::integer) {
    column.values.push(value ? std::get<int64_t>(*value) : int64_t{0});
  } else if (column.type == FieldType::number) {
    const bool whole = value && value->index() == 0;
    column.values.push(!value  ? 0.0
                       : whole ? static_cast<double>(std::get<int64_t>(*value))
                               : std::get<double>(*value));
  } else {
    if (value && column.type == FieldType::text) {
      column.bytes.append(std::as_bytes(std::span(std::get<std::string>(*value))));
    } else if (value) {
      for (const std::string& item : std::get<std::vector<std::string>>(*value)) {
        column.bytes.append(std::as_bytes(std::span(item)));
        column.bytes.push(uint8_t{0});
      }
    }
    column.values.push(uint64_t{column.bytes.bytes()});
  }
}

std::vector<float> Segment::vector(uint64_t row) const {
  if (options_.rescore)
    return load(*options_.rescore,
                exact_.data() + row * vector_bytes(*options_.rescore, options_.width), 1,
                options_.width);
  const Section& scales = options_.metric == Metric::cosine ? scales_ : factors_;
  const float scale = options_.type == DType::i8 ? scales.as<float>()[row] : 1;
  return load(options_.type, vectors_.data() + row * vector_bytes(options_.type, options_.width),
              scale, options_.width);
}

const Column* Segment::column(std::string_view name) const {
  for (const Column& each : columns_)
    if (each.name == name) return &each;
  return nullptr;
}

Field Segment::field(const Column& column, uint64_t row) const {
  switch (column.type) {
    case FieldType::integer:
      return column.values.as<int64_t>()[row];
    case FieldType::number:
      return column.values.as<double>()[row];
    case FieldType::text:
      return std::string(column.text(row));
    default: {
      std::vector<std::string> items;
      std::string_view rest = column.text(row);
      for (size_t end = rest.find('\0'); end != std::string_view::npos; end = rest.find('\0')) {
        items.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end + 1);
      }
      return items;
    }
  }
}

Fields Segment::fields(uint64_t row) const {
  Fields all;
  for (const Column& each : columns_)
    if (each.has(row)) all.emplace(each.name, field(each, row));
  return all;
}

cpu::NearestRows Segment::scan_rows() const {
  const bool bits = options_.type == DType::b1;
  cpu::NearestRows rows;
  rows.metric = bits ? Metric::hamming : options_.metric;
  rows.type = bits ? DType::u8 : options_.type;
  rows.data = vectors_.data();
  rows.count = rows_;
  rows.width = bits ? vector_bytes(DType::b1, options_.width) : options_.width;
  if (has_factors(options_))
    (options_.metric == Metric::cosine ? rows.norms : rows.scales) = factors_.as<float>();
  return rows;
}

std::optional<cpu::NearestRows> Segment::exact_rows() const {
  if (!options_.rescore) return std::nullopt;
  cpu::NearestRows rows;
  rows.metric = options_.metric;
  rows.type = *options_.rescore;
  rows.data = exact_.data();
  rows.count = rows_;
  rows.width = options_.width;
  return rows;
}

std::vector<NamedSection> Segment::sections() const {
  std::vector<NamedSection> all = {{"vectors", vectors_}, {"ids", ids_}};
  if (factors_.bytes() > 0) all.push_back({"factors", factors_});
  if (exact_.bytes() > 0) all.push_back({"exact", exact_});
  if (scales_.bytes() > 0) all.push_back({"scales", scales_});
  if (options_.text_ids) all.push_back({"id_bytes", id_bytes_});
  if (order_.bytes() > 0) all.push_back({"order", order_});
  for (const Column& each : columns_) {
    const std::string start = fmt::format("field {} {} ", field_type_name(each.type), each.name);
    all.push_back({"present " + start, each.present});
    all.push_back({"values " + start, each.values});
    if (each.type >= FieldType::text) all.push_back({"bytes " + start, each.bytes});
  }
  if (searcher_)
    for (NamedSection& each : searcher_->sections()) all.push_back(std::move(each));
  return all;
}

Segment Segment::from_sections(const IndexOptions& options, uint64_t rows,
                               const std::vector<NamedSection>& sections, const std::string& path) {
  Segment made(options);
  made.rows_ = rows;
  const auto need = [&](const std::string& name, uint64_t bytes) {
    for (const NamedSection& each : sections) {
      if (each.name != name) continue;
      if (each.section.bytes() != bytes)
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("{}: section {} has {} bytes, {} vectors need {}; restore the file "
                                "from a copy",
                                path, name, each.section.bytes(), rows, bytes));
      return each.section;
    }
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: section {} is missing; restore the file from a copy", path, name));
  };
  const auto find = [&](const std::string& name) {
    for (const NamedSection& each : sections)
      if (each.name == name) return each.section;
    return Section();
  };
  made.vectors_ = need("vectors", rows * vector_bytes(options.type, options.width));
  made.ids_ = need("ids", rows * sizeof(uint64_t));
  if (has_factors(options)) made.factors_ = need("factors", rows * sizeof(float));
  if (options.rescore)
    made.exact_ = need("exact", rows * vector_bytes(*options.rescore, options.width));
  if (options.metric == Metric::cosine && options.type == DType::i8)
    made.scales_ = need("scales", rows * sizeof(float));
  if (options.text_ids) made.id_bytes_ = find("id_bytes");
  for (const NamedSection& each : sections) {
    constexpr std::string_view kStart = "present field ";
    if (!each.name.starts_with(kStart)) continue;
    const std::string rest = each.name.substr(kStart.size()), tail = "field " + rest;
    const size_t space = rest.find(' ');
    if (space == std::string::npos || rest.size() < space + 2) continue;
    Column column;
    column.name = rest.substr(space + 1, rest.size() - space - 2);
    for (const FieldType type :
         {FieldType::integer, FieldType::number, FieldType::text, FieldType::list})
      if (rest.substr(0, space) == field_type_name(type)) column.type = type;
    column.present = need(each.name, rows);
    column.values = need("values " + tail, rows * sizeof(uint64_t));
    if (column.type >= FieldType::text) column.bytes = find("bytes " + tail);
    made.columns_.push_back(std::move(column));
  }
  if (find("order").bytes() > 0) made.order_ = need("order", rows * sizeof(uint32_t));
  made.set_all_alive();
  try {
    made.searcher_ = GraphSearcher::open(options.metric, options.width, rows, sections);
    if (!made.searcher_)
      made.searcher_ = IvfSearcher::open(options.metric, options.width, rows, sections);
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: {}; restore the file from a copy", path, error.what()));
  }
  return made;
}

void Segment::set_all_alive() {
  alive_.assign((rows_ + 31) / 32, ~uint32_t{0});
  if (rows_ % 32 != 0) alive_.back() = (uint32_t{1} << (rows_ % 32)) - 1;
}

}  // namespace prism::search
