// Reads metadata values from the bytes of a GGUF file.
#include "prism/llm/gguf_value.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

namespace prism::llm {

namespace {

struct TypeFacts {
  const char* name;
  uint32_t bytes;
};
constexpr std::array<TypeFacts, kGgufTypeCount> kFacts = {{{"u8", 1},
                                                           {"i8", 1},
                                                           {"u16", 2},
                                                           {"i16", 2},
                                                           {"u32", 4},
                                                           {"i32", 4},
                                                           {"f32", 4},
                                                           {"bool", 1},
                                                           {"string", 0},
                                                           {"array", 0},
                                                           {"u64", 8},
                                                           {"i64", 8},
                                                           {"f64", 8}}};

// Files are little-endian and packed, so values are unaligned.
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

constexpr uint64_t kStringHeader = 8, kArrayHeader = 12;

// The array element at data, including its length prefix if it has one.
GgufValue element_at(GgufType type, const std::byte* data) {
  if (type == GgufType::string)
    return GgufValue::string(data + kStringHeader, load<uint64_t>(data));
  if (type == GgufType::array)
    return GgufValue::array(static_cast<GgufType>(load<uint32_t>(data)), data + kArrayHeader,
                            load<uint64_t>(data + 4));
  return GgufValue::scalar(type, data);
}

// Escapes control characters: untrusted text must not control a terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

}  // namespace

const char* gguf_type_name(GgufType type) { return kFacts[static_cast<size_t>(type)].name; }
uint32_t gguf_type_bytes(GgufType type) { return kFacts[static_cast<size_t>(type)].bytes; }

const std::byte* gguf_value_begin(const GgufValue& value) { return value.data_; }

const std::byte* gguf_value_end(const GgufValue& value) {
  if (value.type_ == GgufType::string) return value.data_ + value.count_;
  if (value.type_ != GgufType::array) return value.data_ + gguf_type_bytes(value.type_);
  if (const uint32_t bytes = gguf_type_bytes(value.element_))
    return value.data_ + value.count_ * bytes;
  const std::byte* at = value.data_;
  for (uint64_t i = 0; i < value.count_; ++i) at = gguf_value_end(element_at(value.element_, at));
  return at;
}

std::string GgufValue::type_text() const {
  if (!is_array()) return gguf_type_name(type_);
  return fmt::format("array of {}", gguf_type_name(element_));
}

std::optional<int64_t> GgufValue::integer() const {
  switch (type_) {
    case GgufType::u8:
      return load<uint8_t>(data_);
    case GgufType::i8:
      return load<int8_t>(data_);
    case GgufType::u16:
      return load<uint16_t>(data_);
    case GgufType::i16:
      return load<int16_t>(data_);
    case GgufType::u32:
      return load<uint32_t>(data_);
    case GgufType::i32:
      return load<int32_t>(data_);
    case GgufType::i64:
      return load<int64_t>(data_);
    case GgufType::u64: {
      const auto value = load<uint64_t>(data_);
      if (value > INT64_MAX) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> GgufValue::number() const {
  if (type_ == GgufType::f32) return load<float>(data_);
  if (type_ == GgufType::f64) return load<double>(data_);
  if (type_ == GgufType::u64) return static_cast<double>(load<uint64_t>(data_));
  if (const auto value = integer()) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<std::string_view> GgufValue::string() const {
  if (type_ != GgufType::string) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(data_), count_);
}

std::optional<bool> GgufValue::boolean() const {
  if (type_ != GgufType::boolean) return std::nullopt;
  return load<uint8_t>(data_) != 0;
}

void GgufValue::for_each(const std::function<void(const GgufValue&)>& use) const {
  if (!is_array()) return;
  const std::byte* at = data_;
  for (uint64_t i = 0; i < count_; ++i) {
    const GgufValue value = element_at(element_, at);
    use(value);
    at = gguf_value_end(value);
  }
}

std::string GgufValue::text(uint64_t most_elements) const {
  if (const auto value = string()) return printable(*value);
  if (const auto value = boolean()) return *value ? "true" : "false";
  if (type_ == GgufType::u64) return std::to_string(load<uint64_t>(data_));
  if (const auto value = integer()) return std::to_string(*value);
  if (type_ == GgufType::f32) return fmt::format("{}", load<float>(data_));
  if (type_ == GgufType::f64) return fmt::format("{}", load<double>(data_));
  std::string out = "[";
  const std::byte* at = data_;
  for (uint64_t i = 0; i < count_ && i < most_elements; ++i) {
    const GgufValue value = element_at(element_, at);
    if (i > 0) out += ", ";
    out += value.text(most_elements);
    at = gguf_value_end(value);
  }
  if (count_ > most_elements) out += fmt::format(", ... {} in all", count_);
  return out + "]";
}

}  // namespace prism::llm
