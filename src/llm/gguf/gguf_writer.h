// Writes GGUF files, version 3; tensors pass through one after the other, never all in memory.
//
//   GgufWriter out;
//   out.set("general.architecture", "llama");
//   out.add_tensor("output.weight", {512, 64}, DType::f32, bytes);
//   out.write("model.gguf");
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "prism/element_type.h"
#include "prism/llm/gguf_value.h"
#include "prism/shape.h"

namespace prism::llm {

struct GgufTensor;

// The type that a C++ value has in files.
template <class T>
constexpr GgufType gguf_type_of() {
  if constexpr (std::same_as<T, bool>)
    return GgufType::boolean;
  else if constexpr (std::same_as<T, float>)
    return GgufType::f32;
  else if constexpr (std::same_as<T, double>)
    return GgufType::f64;
  else if constexpr (std::integral<T> && sizeof(T) == 1)
    return std::signed_integral<T> ? GgufType::i8 : GgufType::u8;
  else if constexpr (std::integral<T> && sizeof(T) == 2)
    return std::signed_integral<T> ? GgufType::i16 : GgufType::u16;
  else if constexpr (std::integral<T> && sizeof(T) == 4)
    return std::signed_integral<T> ? GgufType::i32 : GgufType::u32;
  else if constexpr (std::integral<T> && sizeof(T) == 8)
    return std::signed_integral<T> ? GgufType::i64 : GgufType::u64;
  else
    static_assert(sizeof(T) == 0, "GGUF files hold no values of this type");
}

class GgufWriter {
 public:
  // Takes the bytes of a tensor in order, in pieces of any size.
  using Sink = std::function<void(std::span<const std::byte>)>;
  using Producer = std::function<void(const Sink&)>;
  using Progress = std::function<void(uint64_t written_bytes, uint64_t all_bytes)>;

  // --- metadata, written in the order of the first set; a key set again changes its value.
  template <class T>
  requires std::is_arithmetic_v<T>
  void set(std::string_view key, T value) {
    put(key, gguf_type_of<T>(), std::as_bytes(std::span(&value, 1)));
  }
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  void set(std::string_view key, const GgufValue& value);  // as another file has it
  template <class T>
  requires(std::is_arithmetic_v<T> &&
           !std::same_as<T, bool>) void set(std::string_view key, const std::vector<T>& values) {
    put_array(key, gguf_type_of<T>(), values.size(), std::as_bytes(std::span(values)));
  }
  void set(std::string_view key, const std::vector<std::string>& values);
  void set(std::string_view key, const std::vector<bool>& values);
  void set_array(std::string_view key, const std::vector<std::vector<int32_t>>& values);  // nested
  void remove(std::string_view key);

  // --- tensors, in the order of the file. Throws kInvalidArgument for a name that is there
  // already, a type that files cannot hold, and rows that are not whole blocks.
  void add_tensor(std::string_view name, const Shape& shape, ElementType type, Producer producer);
  // The bytes are read by write() and must live until then.
  void add_tensor(std::string_view name, const Shape& shape, ElementType type,
                  std::span<const std::byte> bytes);
  // Name, shape and type of another file's tensor, also of a type Prism cannot compute with.
  void add_tensor(const GgufTensor& like, std::span<const std::byte> bytes);

  uint64_t header_bytes() const;  // up to the first tensor's data
  uint64_t file_bytes() const;
  // Under a temporary name, then renamed: a failure (kIo: full disk) leaves what was there before.
  // Throws kInvalidArgument where a producer gives more or fewer bytes than its tensor has, and
  // what a producer throws.
  void write(const std::string& path, const Progress& progress = {}) const;

 private:
  struct Entry {
    std::string key;
    GgufType type;
    std::string bytes;  // as the file has them
  };
  struct Planned {
    std::string name;
    Shape shape;
    uint32_t gguf_type;
    uint64_t bytes;
    Producer producer;
  };
  void put(std::string_view key, GgufType type, std::span<const std::byte> bytes);
  void put_array(std::string_view key, GgufType element, uint64_t count,
                 std::span<const std::byte> bytes);
  void add(std::string_view name, const Shape& shape, uint32_t gguf_type, Producer producer);
  uint64_t alignment() const;
  std::string header() const;

  std::vector<Entry> entries_;
  std::vector<Planned> tensors_;
};

}  // namespace prism::llm
