// Writes GGUF files of version 3; tensors are streamed, never all in memory.
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

// The GGUF type of a C++ type.
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
    static_assert(sizeof(T) == 0, "GGUF files cannot hold values of this type");
}

class GgufWriter {
 public:
  // Receives the bytes of a tensor in order, in pieces of any size.
  using Sink = std::function<void(std::span<const std::byte>)>;
  using Producer = std::function<void(const Sink&)>;
  using Progress = std::function<void(uint64_t written_bytes, uint64_t all_bytes)>;

  // --- metadata, in the order of the first set; setting a key again replaces its value.
  template <class T>
  requires std::is_arithmetic_v<T>
  void set(std::string_view key, T value) {
    put(key, gguf_type_of<T>(), std::as_bytes(std::span(&value, 1)));
  }
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  void set(std::string_view key, const GgufValue& value);  // copied from another file
  template <class T>
  requires(std::is_arithmetic_v<T> &&
           !std::same_as<T, bool>) void set(std::string_view key, const std::vector<T>& values) {
    put_array(key, gguf_type_of<T>(), values.size(), std::as_bytes(std::span(values)));
  }
  void set(std::string_view key, const std::vector<std::string>& values);
  void set(std::string_view key, const std::vector<bool>& values);
  void set_array(std::string_view key, const std::vector<std::vector<int32_t>>& values);  // nested
  void remove(std::string_view key);

  // --- tensors, in file order. Throws kInvalidArgument for a duplicate name, a type that files
  // cannot hold, and rows that are not whole blocks.
  void add_tensor(std::string_view name, const Shape& shape, ElementType type, Producer producer);
  // The bytes are read by write() and must stay valid until then.
  void add_tensor(std::string_view name, const Shape& shape, ElementType type,
                  std::span<const std::byte> bytes);
  // Copies name, shape and type of another file's tensor, even if Prism cannot compute with the
  // type.
  void add_tensor(const GgufTensor& like, std::span<const std::byte> bytes);

  std::string header() const;     // the bytes before the first tensor's data
  uint64_t header_bytes() const;  // their number
  uint64_t file_bytes() const;
  // Writes under a temporary name and renames: a failure (kIo: disk full) leaves an existing file
  // intact. Throws kInvalidArgument if a producer delivers the wrong number of bytes, and anything
  // a producer throws.
  void write(const std::string& path, const Progress& progress = {}) const;

 private:
  struct Entry {
    std::string key;
    GgufType type;
    std::string bytes;  // in file format
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

  std::vector<Entry> entries_;
  std::vector<Planned> tensors_;
};

}  // namespace prism::llm
