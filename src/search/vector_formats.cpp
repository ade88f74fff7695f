// Parses the formats of plain vectors that have lengths in front of the numbers, and descriptions.
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "prism/error.h"
#include "search/vector_file.h"

namespace prism::search {

namespace {

constexpr uint64_t kMaximumWidth = 65536;

[[noreturn]] void corrupt(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kCorruptFile, path + ": " + what);
}

void check_width(const std::string& path, uint64_t width) {
  if (width == 0 || width > kMaximumWidth)
    corrupt(path,
            fmt::format("a vector of {} numbers; there must be 1 to {}", width, kMaximumWidth));
}

// The number if it is written as a whole one that the type holds. As a double it may be rounded.
template <class T>
std::optional<T> whole(const JsonView& view) {
  const std::string text = view.json().dump();
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

Field field_of(const JsonView& view) {
  if (view.is_string()) return view.string();
  if (view.json().kind() == Json::Kind::boolean) return int64_t{view.boolean()};
  if (view.is_array()) {
    std::vector<std::string> items;
    for (const JsonView& item : view.items()) items.push_back(item.string());
    return items;
  }
  if (const std::optional<int64_t> exact = whole<int64_t>(view)) return *exact;
  const double number = view.number();
  if (std::abs(number) < 9e15 && number == std::trunc(number)) return static_cast<int64_t>(number);
  return number;
}

Id id_of(const JsonView& view) {
  if (view.is_string()) return view.string();
  if (!view.is_number()) view.fail("must be a number or a text");
  // Exactly, also above the largest signed number.
  if (const std::optional<uint64_t> exact = whole<uint64_t>(view)) return *exact;
  return static_cast<uint64_t>(view.integer(0));
}

// A field that is a float in one row is one in all: JSON may write 1.0 as 1.
void widen_numbers(std::vector<Fields>& rows) {
  std::set<std::string> floats;
  for (const Fields& fields : rows)
    for (const auto& [name, value] : fields)
      if (std::holds_alternative<double>(value)) floats.insert(name);
  for (Fields& fields : rows)
    for (auto& [name, value] : fields)
      if (const auto* integer = std::get_if<int64_t>(&value); integer && floats.contains(name))
        value = static_cast<double>(*integer);
}

void read_rows(const std::string& path, const std::vector<JsonView>& rows, VectorTable& table) {
  if (rows.size() != table.rows)
    corrupt(path, fmt::format("describes {} rows, the vectors have {}", rows.size(), table.rows));
  for (const JsonView& row : rows) {
    if (!row.is_object()) {
      table.ids.push_back(id_of(row));
      continue;
    }
    table.ids.push_back(row["id"] ? id_of(row["id"]) : Id(uint64_t{table.ids.size()}));
    table.fields.resize(table.ids.size());  // rows before it may have an id alone
    Fields& fields = table.fields.back();
    for (const auto& [name, value] : row.members())
      if (name != "id" && value && !value.is_object()) fields.emplace(name, field_of(value));
  }
  if (!table.fields.empty()) table.fields.resize(table.rows);
  widen_numbers(table.fields);
}

}  // namespace

VectorTable parse_vecs(const std::string& path, std::string_view file, std::string_view extension) {
  const uint64_t element = extension == ".bvecs" ? 1 : 4;
  if (file.size() < 4) corrupt(path, "is too short for a vector");
  int32_t width = 0;
  std::memcpy(&width, file.data(), 4);
  check_width(path, width < 0 ? 0 : static_cast<uint64_t>(width));
  VectorTable table;
  table.width = static_cast<uint64_t>(width);
  const uint64_t stride = 4 + table.width * element;
  if (file.size() % stride != 0)
    corrupt(path, fmt::format("has {} bytes, not a multiple of {} for vectors of {} numbers; is it "
                              "truncated?",
                              file.size(), stride, width));
  table.rows = file.size() / stride;
  table.values.resize(table.rows * table.width);
  for (uint64_t r = 0; r < table.rows; ++r) {
    const char* const from = file.data() + r * stride;
    if (std::memcmp(from, &width, 4) != 0)
      corrupt(path, fmt::format("vector {} does not have {} numbers like the first", r, width));
    float* const to = table.values.data() + r * table.width;
    if (extension == ".fvecs") {
      std::memcpy(to, from + 4, table.width * 4);
      continue;
    }
    for (uint64_t i = 0; i < table.width; ++i) {
      int32_t integer = 0;
      if (element == 4) std::memcpy(&integer, from + 4 + i * 4, 4);
      to[i] = element == 1 ? static_cast<float>(static_cast<uint8_t>(from[4 + i]))
                           : static_cast<float>(integer);
    }
  }
  return table;
}

VectorTable parse_fbin(const std::string& path, std::string_view file) {
  uint32_t counts[2] = {};
  if (file.size() < sizeof counts) corrupt(path, "is too short for its header");
  std::memcpy(counts, file.data(), sizeof counts);
  VectorTable table;
  table.rows = counts[0];
  table.width = counts[1];
  check_width(path, table.width);
  const uint64_t needed = sizeof counts + table.rows * table.width * 4;
  if (file.size() != needed)
    corrupt(path, fmt::format("has {} bytes, {} vectors of {} numbers need {}; is it truncated?",
                              file.size(), table.rows, table.width, needed));
  table.values.resize(table.rows * table.width);
  if (!table.values.empty())
    std::memcpy(table.values.data(), file.data() + sizeof counts, table.values.size() * 4);
  return table;
}

void parse_meta(const std::string& path, std::string_view text, VectorTable& table) {
  try {
    const size_t values = JsonLimits().values + 64 * table.rows;  // the vectors bound the rows
    const Json json = Json::parse(text, {.bytes = text.size(), .values = values});
    const JsonView top(json);
    read_rows(path, top.is_array() ? top.items() : top["ids"].items(), table);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCorruptFile) throw;
    corrupt(path, error.what());
  }
}

}  // namespace prism::search
