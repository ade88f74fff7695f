// Parses the header of .safetensors files: its length, then JSON.
#include "tensor/io/safetensors_header.h"

#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "prism/error.h"
#include "tensor/io/header_text.h"

namespace prism {

namespace {

constexpr uint64_t kLargestHeader = 100'000'000;  // as the reference implementation limits it

constexpr std::array<std::pair<DType, std::string_view>, 10> kTypes = {{{DType::f32, "F32"},
                                                                        {DType::f64, "F64"},
                                                                        {DType::f16, "F16"},
                                                                        {DType::bf16, "BF16"},
                                                                        {DType::i8, "I8"},
                                                                        {DType::u8, "U8"},
                                                                        {DType::i16, "I16"},
                                                                        {DType::i32, "I32"},
                                                                        {DType::i64, "I64"},
                                                                        {DType::b1, "BOOL"}}};

DType type_of(const std::string& path, const std::string& name) {
  for (const auto& [type, each] : kTypes)
    if (name == each) return type;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{}: elements of type {}, which tensors do not have", path, name));
}

F8Format f8_of(std::string_view name) {
  return name == "F8_E4M3" ? F8Format::e4m3 : name == "F8_E8M0" ? F8Format::e8m0 : F8Format::none;
}

struct Entry {
  DType type = DType::f32;
  F8Format f8 = F8Format::none;
  Shape shape;
  int64_t begin = 0, end = 0;
};

Entry parse_entry(const std::string& path, HeaderText& header) {
  Entry entry;
  bool has_type = false, has_shape = false, has_place = false;
  header.expect('{');
  do {
    const std::string key = header.quoted();
    header.expect(':');
    if (key == "dtype" && !std::exchange(has_type, true)) {
      const std::string name = header.quoted();
      entry.f8 = f8_of(name);
      entry.type = entry.f8 == F8Format::none ? type_of(path, name) : DType::u8;
    } else if (key == "shape" && !std::exchange(has_shape, true)) {
      entry.shape = header.lengths('[', ']');
    } else if (key == "data_offsets" && !std::exchange(has_place, true)) {
      header.expect('[');
      entry.begin = header.number();
      header.expect(',');
      entry.end = header.number();
      header.expect(']');
    } else {
      header.fail(fmt::format("the key \"{}\"", key));
    }
  } while (header.take(','));
  header.expect('}');
  if (!has_type || !has_shape || !has_place) header.fail("dtype, shape or data_offsets is missing");
  return entry;
}

void skip_metadata(HeaderText& header) {
  header.expect('{');
  if (header.take('}')) return;
  do {
    header.quoted();
    header.expect(':');
    header.quoted();
  } while (header.take(','));
  header.expect('}');
}

std::map<std::string, Entry> parse_header(const std::string& path, std::string_view text) {
  HeaderText header(path, text);
  std::map<std::string, Entry> entries;
  header.expect('{');
  if (!header.take('}')) {
    do {
      const std::string name = header.quoted();
      header.expect(':');
      if (name == kSafetensorsMetadata)
        skip_metadata(header);
      else if (!entries.emplace(name, parse_entry(path, header)).second)
        header.fail(fmt::format("the tensor \"{}\" twice", name));
    } while (header.take(','));
    header.expect('}');
  }
  header.expect_end();
  return entries;
}

}  // namespace

std::string_view safetensors_type_name(const std::string& path, ElementType type) {
  for (const auto& [each, name] : kTypes)
    if (type == each) return name;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("saving {}: .safetensors has no elements of type {}; dequantise() them",
                          path, type.name()));
}

std::map<std::string, SafetensorsEntry> parse_safetensors(const std::string& path,
                                                          std::string_view file) {
  uint64_t length = 0;
  if (file.size() < sizeof(length))
    fail_loading(path, fmt::format("{} bytes are no .safetensors file", file.size()));
  std::memcpy(&length, file.data(), sizeof(length));
  const std::string_view rest = file.substr(sizeof(length));
  if (length > rest.size() || length > kLargestHeader)
    fail_loading(path, fmt::format("a header of {} bytes in a file of {}", length, file.size()));
  const std::string_view data = rest.substr(length);
  std::map<std::string, SafetensorsEntry> entries;
  for (const auto& [name, entry] : parse_header(path, rest.substr(0, length))) {
    if (entry.begin > entry.end || static_cast<uint64_t>(entry.end) > data.size()) {
      fail_loading(path, fmt::format("\"{}\" is at bytes {} to {} of {}", name, entry.begin,
                                     entry.end, data.size()));
    }
    const auto begin = static_cast<size_t>(entry.begin);
    entries.emplace(
        name,
        SafetensorsEntry{entry.type, entry.shape,
                         data.substr(begin, static_cast<size_t>(entry.end) - begin), entry.f8});
  }
  return entries;
}

}  // namespace prism
