// Parses and writes the header of .npy files: a magic string and a Python dictionary as text.
#include "tensor/io/npy_header.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "prism/error.h"
#include "tensor/io/header_text.h"

namespace prism {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// Headers are padded so that the elements begin at a multiple of this.
constexpr size_t kAlignment = 64;

constexpr std::array<std::pair<DType, std::string_view>, 9> kTypes = {{{DType::f32, "<f4"},
                                                                       {DType::f64, "<f8"},
                                                                       {DType::f16, "<f2"},
                                                                       {DType::i8, "|i1"},
                                                                       {DType::u8, "|u1"},
                                                                       {DType::i16, "<i2"},
                                                                       {DType::i32, "<i4"},
                                                                       {DType::i64, "<i8"},
                                                                       {DType::b1, "|b1"}}};

DType type_of(const std::string& path, std::string_view description) {
  for (const auto& [type, name] : kTypes) {
    // Types of one byte have no byte order: NumPy writes '|', other writers '<'.
    const bool same_kind = description.substr(description.empty() ? 0 : 1) == name.substr(1);
    if (description == name || (name[0] == '|' && same_kind)) return type;
  }
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{}: elements of NumPy's type '{}'; save it as a little-endian float, "
                          "signed integer, uint8 or bool array",
                          path, description));
}

NpyHeader parse_text(const std::string& path, std::string_view text) {
  HeaderText header(path, text);
  NpyHeader result;
  bool has_type = false, has_order = false, has_shape = false;
  header.expect('{');
  while (!header.take('}')) {
    const std::string key = header.quoted();
    header.expect(':');
    if (key == "descr" && !std::exchange(has_type, true))
      result.type = type_of(path, header.quoted());
    else if (key == "fortran_order" && !std::exchange(has_order, true))
      result.fortran_order = header.truth();
    else if (key == "shape" && !std::exchange(has_shape, true))
      result.shape = header.lengths('(', ')');
    else
      header.fail(fmt::format("the key '{}'", key));
    if (!header.take(',')) {
      header.expect('}');
      break;
    }
  }
  header.expect_end();
  if (!has_type || !has_order || !has_shape)
    header.fail("descr, fortran_order or shape is missing");
  return result;
}

// The length of the header text, and where it begins.
std::pair<size_t, size_t> header_place(const std::string& path, std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(text[i])); };
  if (text.size() < 10) fail_loading(path, fmt::format("{} bytes are no .npy file", text.size()));
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    fail_loading(path, fmt::format(".npy version {}; 1 to 3 exist", version));
  if (version == 1) return {byte(8) | byte(9) << 8, 10};
  if (text.size() < 12) fail_loading(path, "it ends inside the header");
  return {byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24, 12};
}

}  // namespace

bool is_npy(std::string_view file) { return file.starts_with(kMagic); }

NpyHeader parse_npy(const std::string& path, std::string_view file) {
  if (!is_npy(file)) fail_loading(path, "it does not begin as a .npy file");
  const auto [length, begin] = header_place(path, file);
  if (length > file.size() - begin)
    fail_loading(path, fmt::format("a header of {} bytes in a file of {}", length, file.size()));
  NpyHeader header = parse_text(path, file.substr(begin, length));
  header.elements_at = begin + length;
  return header;
}

std::string npy_header_text(const std::string& path, ElementType type, const Shape& shape) {
  std::string_view description;
  for (const auto& [each, name] : kTypes)
    if (type == each) description = name;
  if (description.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("saving {}: .npy has no elements of type {}; use .safetensors or "
                            "astype() first",
                            path, type.name()));
  }
  std::string lengths;
  for (const int64_t length : shape) lengths += fmt::format("{}, ", length);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   description, lengths);
  const size_t whole = (10 + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.resize(whole - 11, ' ');
  header += '\n';
  std::string start(kMagic);
  start += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
            static_cast<char>(header.size() >> 8)};
  return start + header;
}

}  // namespace prism
