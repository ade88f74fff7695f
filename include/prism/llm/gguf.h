// GGUF files: metadata and tensors, seen where they lie in the mapped file. (gguf_writer.h writes.)
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
  Shape shape;  // outermost first, as Tensor (files count from the innermost)
  // u8 stands for a type that Prism cannot compute with; see gguf_type.
  ElementType type = DType::u8;
  uint32_t gguf_type = 0;  // the type's number in the file (gguf_types.h)
  uint32_t part = 0;       // of a split file, from 0
  uint64_t offset = 0;     // of the first byte, from the start of that part
  uint64_t bytes = 0;

  bool is_supported() const;      // whether type is the true one
  const char* type_name() const;  // "q4_k", "iq2_xxs"
};

// What GgufFile::parse throws where a file is longer than the bytes it was given, and the header
// goes on beyond them: try again with more.
class GgufIncomplete : public Error {
 public:
  explicit GgufIncomplete(const std::string& message) : Error(ErrorCode::kCorruptFile, message) {}
};

// Copies share the file. Values and string views live as long as any copy.
class GgufFile {
 public:
  // Maps a file, version 2 or 3; given any part of a split one (NAME-00001-of-00003.gguf), all of
  // them. Every count, length and offset is checked against the file before anything is allocated:
  // throws kCorruptFile naming file and field, kNotFound for a file or part that is not there.
  static GgufFile open(const std::string& path);
  // Metadata and list of tensors only, of the first bytes of a file in memory, which must outlive
  // the result. file_bytes: the size of the whole file (0: what is given is all that is known, and
  // where tensors end is not checked). Throws kCorruptFile, as GgufIncomplete where more bytes
  // would help.
  static GgufFile parse(std::span<const std::byte> header, uint64_t file_bytes = 0,
                        const std::string& name = "GGUF data");

  // The same of a split file: the start of each part, in order.
  struct PartStart {
    std::span<const std::byte> header;
    uint64_t file_bytes = 0;
    std::string name;
  };
  static GgufFile parse_parts(std::span<const PartStart> parts);

  const std::string& path() const;  // as opened; of a split file its first part
  uint32_t version() const;
  uint64_t alignment() const;
  uint64_t file_bytes() const;                    // of all parts
  uint64_t data_offset() const;                   // of the first part: where its tensors begin
  const std::vector<std::string>& parts() const;  // paths, in order

  // --- metadata
  const std::vector<std::pair<std::string_view, GgufValue>>& metadata() const;  // in file order
  const GgufValue* find(std::string_view key) const;                            // null when absent
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // A value by key. Throws kNotFound where there is none such, kCorruptFile where it is of another
  // type (naming both); integers of any width do if the value fits. The _or forms give the second
  // argument for an absent key, and throw as the others for a wrong type.
  int64_t integer(std::string_view key) const;
  int64_t integer_or(std::string_view key, int64_t otherwise) const;
  double number(std::string_view key) const;
  double number_or(std::string_view key, double otherwise) const;
  std::string_view string(std::string_view key) const;
  std::string_view string_or(std::string_view key, std::string_view otherwise) const;
  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool otherwise) const;
  // Arrays; empty when absent. Throws kCorruptFile for values of another kind.
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<float> floats(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;

  // --- tensors
  const std::vector<GgufTensor>& tensors() const;              // in file order, part by part
  const GgufTensor* find_tensor(std::string_view name) const;  // null when absent
  // The bytes as they lie in the file. Throws kInvalidArgument for a file that was only parsed.
  std::span<const std::byte> data(const GgufTensor& tensor) const;
  // A CPU tensor over the mapped file, nothing copied. Throws kNotSupported, naming the type, for
  // one that Prism cannot compute with.
  Tensor tensor(const GgufTensor& tensor) const;

 private:
  struct State;
  explicit GgufFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const GgufValue& value(std::string_view key) const;
  std::shared_ptr<const std::byte> memory(const GgufTensor& tensor) const;  // null for no bytes
  std::shared_ptr<const State> state_;
};

}  // namespace prism::llm

#pragma GCC visibility pop
