// GGUF files: metadata and tensors as views of the memory-mapped file. (gguf_writer.h writes them.)
//
//   const GgufFile file = GgufFile::open("model.gguf");
//   const int64_t layers = file.integer("llama.block_count");
//   const Tensor weights = file.tensor(*file.find_tensor("blk.0.attn_q.weight"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/element_type.h"
#include "prism/error.h"
#include "prism/llm/gguf_value.h"
#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism::llm {

struct GgufTensor {
  std::string name;
  Shape shape;  // outermost first, as in Tensor (files store the innermost first)
  // u8 is a placeholder for types that Prism does not compute with as stored; see gguf_type.
  ElementType type = DType::u8;
  uint32_t gguf_type = 0;  // the type's number in the file (gguf_types.h)
  uint32_t part = 0;       // index in a split file
  uint64_t offset = 0;     // from the start of that part
  uint64_t bytes = 0;

  bool is_supported() const;      // whether `type` is the actual type
  const char* type_name() const;  // "q4_k", "iq2_xxs"
};

// Thrown by GgufFile::parse if the header extends beyond the bytes given: retry with more.
class GgufIncomplete : public Error {
 public:
  explicit GgufIncomplete(const std::string& message) : Error(ErrorCode::kCorruptFile, message) {}
};

// Copies share the file. Values and string views are valid as long as any copy.
class GgufFile {
 public:
  // Maps a file of version 2 or 3; for any part of a split file (NAME-00001-of-00003.gguf), all
  // parts. Checks every count, length and offset before allocating: throws kCorruptFile naming file
  // and field, kNotFound for a missing file or part.
  static GgufFile open(const std::string& path);
  // Parses only metadata and the tensor list, from the first bytes of a file in memory, which must
  // outlive the result. file_bytes: the size of the whole file (0: unknown; tensor ends are not
  // checked). Throws kCorruptFile, or its subclass GgufIncomplete if more bytes would help.
  static GgufFile parse(std::span<const std::byte> header, uint64_t file_bytes = 0,
                        const std::string& name = "GGUF data");

  // The same for a split file: the start of each part, in order.
  struct PartStart {
    std::span<const std::byte> header;
    uint64_t file_bytes = 0;
    std::string name;
  };
  static GgufFile parse_parts(std::span<const PartStart> parts);

  const std::string& path() const;  // as opened; the first part of a split file
  uint32_t version() const;
  uint64_t alignment() const;
  uint64_t file_bytes() const;                    // sum over all parts
  uint64_t data_offset() const;                   // start of the tensor data in the first part
  const std::vector<std::string>& parts() const;  // paths, in order

  // --- metadata
  const std::vector<std::pair<std::string_view, GgufValue>>& metadata() const;  // in file order
  const GgufValue* find(std::string_view key) const;                            // null when absent
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // A value by key. Throws kNotFound if it is absent, kCorruptFile naming both types if its type
  // differs; any integer width is accepted if the value fits. The _or forms return the second
  // argument for an absent key.
  int64_t integer(std::string_view key) const;
  int64_t integer_or(std::string_view key, int64_t otherwise) const;
  double number(std::string_view key) const;
  double number_or(std::string_view key, double otherwise) const;
  std::string_view string(std::string_view key) const;
  std::string_view string_or(std::string_view key, std::string_view otherwise) const;
  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool otherwise) const;
  // Arrays; empty if absent. Throws kCorruptFile for another element type.
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<float> floats(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;

  // --- tensors
  const std::vector<GgufTensor>& tensors() const;              // in file order, part by part
  const GgufTensor* find_tensor(std::string_view name) const;  // null when absent
  // The bytes as stored in the file. Throws kInvalidArgument if the file was only parsed.
  std::span<const std::byte> data(const GgufTensor& tensor) const;
  // A CPU tensor that views the memory-mapped file; of types that are expanded (Q1_0 and Q2_0, to
  // Q4_0) a copy. Throws kNotSupported naming the type if Prism cannot compute with it.
  Tensor tensor(const GgufTensor& tensor) const;

 private:
  struct State;
  explicit GgufFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const GgufValue& value(std::string_view key) const;
  std::shared_ptr<const std::byte> memory(const GgufTensor& tensor) const;  // null if empty
  std::shared_ptr<const State> state_;
};

}  // namespace prism::llm

#pragma GCC visibility pop
