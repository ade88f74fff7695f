// Files of data: IDX, CSV and text, packed by gzip or not.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "base/gzip.h"
#include "base/system/input_file.h"
#include "prism/error.h"
#include "prism/nn/data.h"

namespace prism::nn {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kCorruptFile, fmt::format("{}: {}", path, what));
}

constexpr uint64_t kMostBytes = uint64_t{4} << 30;

struct IdxType {
  uint8_t code;
  DType type;
};
constexpr IdxType kIdxTypes[] = {{0x08, DType::u8},  {0x09, DType::i8},  {0x0b, DType::i16},
                                 {0x0c, DType::i32}, {0x0d, DType::f32}, {0x0e, DType::f64}};

bool is_separator(char c) { return c == ',' || c == ';' || c == '\t' || c == ' ' || c == '\r'; }

// Appends the numbers of a line; returns how many, or -1 where something is no number.
int64_t read_numbers(std::string_view line, std::vector<float>& values) {
  int64_t count = 0;
  size_t at = 0;
  while (at < line.size()) {
    if (is_separator(line[at])) {
      ++at;
      continue;
    }
    float value = 0;
    const auto [end, problem] = std::from_chars(line.data() + at, line.data() + line.size(), value);
    at = static_cast<size_t>(end - line.data());
    if (problem != std::errc() || (at < line.size() && !is_separator(line[at]))) return -1;
    values.push_back(value);
    ++count;
  }
  return count;
}

}  // namespace

std::string load_text(const std::string& path) {
  std::string content = read_input_file(path, kMostBytes);
  const auto bytes = std::as_bytes(std::span(content));
  return is_gzip(bytes) ? gunzip(bytes, path) : content;
}

Tensor load_idx(const std::string& path) {
  const std::string content = load_text(path);
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(content[i]); };
  if (content.size() < 4 || byte(0) != 0 || byte(1) != 0)
    fail(path, "not an IDX file: it must begin with two zero bytes");
  const IdxType* found = nullptr;
  for (const IdxType& each : kIdxTypes)
    if (each.code == byte(2)) found = &each;
  const int rank = byte(3);
  if (!found || rank < 1 || rank > kMaxRank)
    fail(path, fmt::format("an IDX file with type {:#x} and {} axes, which is not supported",
                           byte(2), rank));
  if (content.size() < 4 + 4 * static_cast<size_t>(rank)) fail(path, "the file ends in its header");
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    int64_t length = 0;
    for (size_t i = 0; i < 4; ++i)
      length = length << 8 | byte(4 + 4 * static_cast<size_t>(axis) + i);
    shape.append(length);
  }
  const size_t start = 4 + 4 * static_cast<size_t>(rank), width = dtype_bytes(found->type);
  const size_t found_bytes = content.size() - start;
  double elements = 1;  // cannot overflow
  for (const int64_t length : shape) elements *= static_cast<double>(length);
  if (elements * static_cast<double>(width) != static_cast<double>(found_bytes))
    fail(path, fmt::format("{} bytes of values, shape {} needs {:.0f}; is the file complete?",
                           found_bytes, shape.text(), elements * static_cast<double>(width)));
  std::vector<std::byte> values(found_bytes);
  std::memcpy(values.data(), content.data() + start, found_bytes);
  if (std::endian::native == std::endian::little)  // the file is big-endian
    for (size_t i = 0; width > 1 && i < found_bytes; i += width)
      std::reverse(values.begin() + static_cast<ptrdiff_t>(i),
                   values.begin() + static_cast<ptrdiff_t>(i + width));
  return from_bytes(values, shape, found->type, Device::cpu());
}

Tensor load_csv(const std::string& path) {
  const std::string content = load_text(path);
  std::vector<float> values;
  int64_t columns = -1, rows = 0, number = 0;
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    const std::string_view line(content.data() + at, end - at);
    at = end + 1;
    ++number;
    const size_t before = values.size();
    const int64_t count = read_numbers(line, values);
    if (count == 0) continue;
    if (count < 0 && number == 1) {  // a heading
      values.resize(before);
      continue;
    }
    if (count < 0) fail(path, fmt::format("line {} has something that is no number", number));
    if (columns < 0) columns = count;
    if (count != columns)
      fail(path,
           fmt::format("line {} has {} numbers, the lines before have {}", number, count, columns));
    ++rows;
  }
  if (rows == 0) fail(path, "no numbers; the file is empty or has another format");
  return from_vector(values, {rows, columns}, Device::cpu());
}

}  // namespace prism::nn
