// One metadata value of a GGUF file; strings and arrays are views into the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace prism::llm {

// In the order of their numbers in files.
enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};
inline constexpr uint32_t kGgufTypeCount = 13;

const char* gguf_type_name(GgufType type);
// The size of a value in a file; 0 for strings and arrays, which are preceded by their length.
uint32_t gguf_type_bytes(GgufType type);

// Points into its file, whose lengths were checked when it was opened.
class GgufValue {
 public:
  GgufValue() = default;
  static GgufValue scalar(GgufType type, const std::byte* data) { return {type, type, 1, data}; }
  static GgufValue string(const std::byte* data, uint64_t length) {
    return {GgufType::string, GgufType::string, length, data};
  }
  static GgufValue array(GgufType element, const std::byte* data, uint64_t count) {
    return {GgufType::array, element, count, data};
  }

  GgufType type() const { return type_; }
  bool is_array() const { return type_ == GgufType::array; }
  GgufType element_type() const { return element_; }  // of an array
  uint64_t count() const { return count_; }           // elements of an array
  std::string type_text() const;                      // "u32", "array of string"

  // None if the value has another type or does not fit the result.
  std::optional<int64_t> integer() const;  // of any width
  std::optional<double> number() const;    // floats and integers
  std::optional<std::string_view> string() const;
  std::optional<bool> boolean() const;

  // Calls use for each element of an array in order; does nothing for other values.
  void for_each(const std::function<void(const GgufValue&)>& use) const;
  // A readable form; arrays show the first few elements.
  std::string text(uint64_t most_elements = 8) const;

 private:
  GgufValue(GgufType type, GgufType element, uint64_t count, const std::byte* data)
      : type_(type), element_(element), count_(count), data_(data) {}

  GgufType type_ = GgufType::u8, element_ = GgufType::u8;
  uint64_t count_ = 0;
  const std::byte* data_ = nullptr;

  friend const std::byte* gguf_value_begin(const GgufValue& value);
  friend const std::byte* gguf_value_end(const GgufValue& value);
};

// The first byte of the value (after the length of strings and arrays) and one past its last, found
// by walking nested strings and arrays.
const std::byte* gguf_value_begin(const GgufValue& value);
const std::byte* gguf_value_end(const GgufValue& value);

}  // namespace prism::llm

#pragma GCC visibility pop
