// Lays out and writes GGUF files.
#include "llm/gguf/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/system/output_file.h"
#include "llm/gguf/gguf_types.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

namespace {

constexpr uint64_t kAlignment = 32;  // tensor alignment, unless general.alignment is set

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}
void append_string(std::string& to, std::string_view text) {
  append<uint64_t>(to, text.size());
  to.append(text);
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
uint64_t rounded_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// Appends a value in file format: strings and arrays are preceded by their length.
void append_value(std::string& to, const GgufValue& value) {
  if (const auto text = value.string()) {
    append_string(to, *text);
  } else if (value.is_array()) {
    append(to, static_cast<uint32_t>(value.element_type()));
    append<uint64_t>(to, value.count());
    const std::byte* const first = gguf_value_begin(value);
    to.append(reinterpret_cast<const char*>(first), gguf_value_end(value) - first);
  } else {
    to.append(reinterpret_cast<const char*>(gguf_value_begin(value)),
              gguf_type_bytes(value.type()));
  }
}

}  // namespace

void GgufWriter::put(std::string_view key, GgufType type, std::span<const std::byte> bytes) {
  std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (Entry& entry : entries_)
    if (entry.key == key) {
      entry = {std::string(key), type, std::move(content)};
      return;
    }
  entries_.push_back({std::string(key), type, std::move(content)});
}

void GgufWriter::put_array(std::string_view key, GgufType element, uint64_t count,
                           std::span<const std::byte> bytes) {
  std::string content;
  append(content, static_cast<uint32_t>(element));
  append(content, count);
  content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  put(key, GgufType::array, bytes_of(content));
}

void GgufWriter::set(std::string_view key, std::string_view value) {
  std::string content;
  append_string(content, value);
  put(key, GgufType::string, bytes_of(content));
}

void GgufWriter::set(std::string_view key, const GgufValue& value) {
  std::string content;
  append_value(content, value);
  put(key, value.type(), bytes_of(content));
}

void GgufWriter::set(std::string_view key, const std::vector<std::string>& values) {
  std::string content;
  for (const std::string& value : values) append_string(content, value);
  put_array(key, GgufType::string, values.size(), bytes_of(content));
}

void GgufWriter::set(std::string_view key, const std::vector<bool>& values) {
  std::string content;
  for (const bool value : values) content.push_back(value ? 1 : 0);
  put_array(key, GgufType::boolean, values.size(), bytes_of(content));
}

void GgufWriter::set_array(std::string_view key, const std::vector<std::vector<int32_t>>& values) {
  std::string content;
  for (const auto& inner : values) {
    append(content, static_cast<uint32_t>(GgufType::i32));
    append<uint64_t>(content, inner.size());
    for (const int32_t value : inner) append(content, value);
  }
  put_array(key, GgufType::array, values.size(), bytes_of(content));
}

void GgufWriter::remove(std::string_view key) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
}

void GgufWriter::add(std::string_view name, const Shape& shape, uint32_t gguf_type,
                     Producer producer) {
  const GgufTensorType& type = *gguf_tensor_type(gguf_type);
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("GGUF tensor {}: {}", name, what));
  };
  if (shape.rank() > 4) fail(fmt::format("shape {} has more than 4 axes", shape.text()));
  const uint64_t row = shape.rank() == 0 ? 1 : static_cast<uint64_t>(shape[-1]);
  if (row % type.elements != 0)
    fail(fmt::format("rows have {} elements, but {} uses blocks of {}", row, type.name,
                     type.elements));
  for (const Planned& tensor : tensors_)
    if (tensor.name == name) fail("was already added");
  const auto elements = static_cast<uint64_t>(shape.elements());
  tensors_.push_back({std::string(name), shape, gguf_type, elements / type.elements * type.bytes,
                      std::move(producer)});
}

void GgufWriter::add_tensor(std::string_view name, const Shape& shape, ElementType type,
                            Producer producer) {
  const auto number = gguf_number(type);
  if (!number)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("GGUF tensor {}: type {} cannot be stored in GGUF files", name, type.name()));
  add(name, shape, *number, std::move(producer));
}

void GgufWriter::add_tensor(std::string_view name, const Shape& shape, ElementType type,
                            std::span<const std::byte> bytes) {
  add_tensor(name, shape, type, [bytes](const Sink& sink) { sink(bytes); });
}

void GgufWriter::add_tensor(const GgufTensor& like, std::span<const std::byte> bytes) {
  add(like.name, like.shape, like.gguf_type, [bytes](const Sink& sink) { sink(bytes); });
}

uint64_t GgufWriter::alignment() const {
  for (const Entry& entry : entries_) {
    if (entry.key != "general.alignment") continue;
    const auto value =
        GgufValue::scalar(entry.type, bytes_of(entry.bytes).data()).integer().value_or(0);
    if (value < 8 || !std::has_single_bit(static_cast<uint64_t>(value)) || value > UINT32_MAX)
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("GGUF general.alignment is {}; it must be a power of two, 8 or more", value));
    return static_cast<uint64_t>(value);
  }
  return kAlignment;
}

std::string GgufWriter::header() const {
  std::string out = "GGUF";
  append<uint32_t>(out, 3);
  append<uint64_t>(out, tensors_.size());
  append<uint64_t>(out, entries_.size());
  for (const Entry& entry : entries_) {
    append_string(out, entry.key);
    append(out, static_cast<uint32_t>(entry.type));
    out += entry.bytes;
  }
  uint64_t offset = 0;
  for (const Planned& tensor : tensors_) {
    append_string(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.shape.rank()));
    for (int axis = tensor.shape.rank(); axis-- > 0;)
      append(out, static_cast<uint64_t>(tensor.shape[axis]));
    append(out, tensor.gguf_type);
    append(out, offset);
    offset += rounded_up(tensor.bytes, alignment());
  }
  out.resize(rounded_up(out.size(), alignment()));
  return out;
}

uint64_t GgufWriter::header_bytes() const { return header().size(); }

uint64_t GgufWriter::file_bytes() const {
  uint64_t bytes = header_bytes();
  for (const Planned& tensor : tensors_) bytes += rounded_up(tensor.bytes, alignment());
  return bytes;
}

void GgufWriter::write(const std::string& path, const Progress& progress) const {
  OutputFile out(path);
  const uint64_t all = file_bytes();
  const std::string head = header();
  out.write(bytes_of(head));
  const std::string padding(alignment(), '\0');
  for (const Planned& tensor : tensors_) {
    uint64_t given = 0;
    tensor.producer([&](std::span<const std::byte> bytes) {
      given += bytes.size();
      if (given > tensor.bytes) return;
      out.write(bytes);
      if (progress) progress(out.written(), all);
    });
    if (given != tensor.bytes)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: tensor {} has {} bytes, {} were given", path, tensor.name,
                              tensor.bytes, given));
    out.write(bytes_of(padding).first(rounded_up(tensor.bytes, alignment()) - tensor.bytes));
  }
  out.commit();
}

}  // namespace prism::llm
