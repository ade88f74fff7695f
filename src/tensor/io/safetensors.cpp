// The .safetensors format: the length of a JSON header, the header, then all tensors' bytes.
// https://huggingface.co/docs/safetensors
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/system/output_file.h"
#include "prism/error.h"
#include "prism/io.h"
#include "tensor/io/header_text.h"
#include "tensor/io/tensor_file.h"

namespace prism {

namespace {

constexpr uint64_t kLargestHeader = 100'000'000;  // as the reference implementation limits it
constexpr size_t kAlignment = 8;                  // of the first tensor's bytes
constexpr std::string_view kMetadata = "__metadata__";

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

std::string_view type_name(const std::string& path, ElementType type) {
  for (const auto& [each, name] : kTypes)
    if (type == each) return name;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("saving {}: .safetensors has no elements of type {}; dequantise() them",
                          path, type.name()));
}

DType type_of(const TensorFile& file, const std::string& name) {
  for (const auto& [type, each] : kTypes)
    if (name == each) return type;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{}: elements of type {}, which tensors do not have", file.path, name));
}

struct Entry {
  DType type = DType::f32;
  Shape shape;
  int64_t begin = 0, end = 0;
};

Entry parse_entry(const TensorFile& file, HeaderText& header) {
  Entry entry;
  bool has_type = false, has_shape = false, has_place = false;
  header.expect('{');
  do {
    const std::string key = header.quoted();
    header.expect(':');
    if (key == "dtype" && !std::exchange(has_type, true)) {
      entry.type = type_of(file, header.quoted());
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

std::map<std::string, Entry> parse(const TensorFile& file, std::string_view text) {
  HeaderText header(file.path, text);
  std::map<std::string, Entry> entries;
  header.expect('{');
  if (!header.take('}')) {
    do {
      const std::string name = header.quoted();
      header.expect(':');
      if (name == kMetadata)
        skip_metadata(header);
      else if (!entries.emplace(name, parse_entry(file, header)).second)
        header.fail(fmt::format("the tensor \"{}\" twice", name));
    } while (header.take(','));
    header.expect('}');
  }
  header.expect_end();
  return entries;
}

}  // namespace

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  std::string header = "{";
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor || name == kMetadata) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("saving {}: \"{}\" {}", path, name,
                              tensor ? "is a reserved name" : "is an empty Tensor"));
    }
    std::string shape;
    for (const int64_t length : tensor.shape())
      shape += fmt::format("{}{}", shape.empty() ? "" : ",", length);
    const uint64_t end =
        offset + static_cast<uint64_t>(tensor.size()) * tensor.dtype().block_bytes();
    header += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", json_quoted(name),
                          type_name(path, tensor.dtype()), shape, offset, end);
    offset = end;
  }
  header += '}';
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = header.size();
  OutputFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const auto& [name, tensor] : tensors) file.write(tensor.to_bytes());
  file.commit();
}

std::map<std::string, Tensor> load_safetensors(const std::string& path, const Device& device) {
  const TensorFile file{path, map_file(path, MapAccess::read)};
  const std::string_view text = file.text();
  uint64_t length = 0;
  if (text.size() < sizeof(length))
    file.fail(fmt::format("{} bytes are no .safetensors file", text.size()));
  std::memcpy(&length, text.data(), sizeof(length));
  const std::string_view rest = text.substr(sizeof(length));
  if (length > rest.size() || length > kLargestHeader)
    file.fail(fmt::format("a header of {} bytes in a file of {}", length, text.size()));
  const std::string_view data = rest.substr(length);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : parse(file, rest.substr(0, length))) {
    if (entry.begin > entry.end || static_cast<uint64_t>(entry.end) > data.size()) {
      file.fail(fmt::format("\"{}\" is at bytes {} to {} of {}", name, entry.begin, entry.end,
                            data.size()));
    }
    const auto begin = static_cast<size_t>(entry.begin);
    const std::string_view bytes = data.substr(begin, static_cast<size_t>(entry.end) - begin);
    tensors.emplace(name, tensor_from(file, bytes, entry.shape, entry.type, device));
  }
  return tensors;
}

}  // namespace prism
