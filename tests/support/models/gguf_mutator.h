// Mutates GGUF files with knowledge of their structure, so that the results get past the first
// checks of a reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace prism::test {

// Where the parts of a GGUF file are. Made without the library's own reader, which is under test.
struct GgufMap {
  enum class Kind : uint8_t { count, length, text, type, number, real, rank, tensor_type, offset };
  struct Field {
    Kind kind;
    size_t at, bytes;
  };
  struct Range {
    size_t at, end;
  };
  std::vector<Field> fields;           // in file order
  std::vector<Range> entries, infos;   // metadata entries, tensor infos
  size_t header_end = 0, data_at = 0;  // data_at: header_end, aligned

  // Maps as much of the file as makes sense.
  static GgufMap of(std::span<const std::byte> file);
};

// The same seed gives the same mutations.
class GgufMutator {
 public:
  explicit GgufMutator(uint64_t seed) : random_(seed) {}

  // Applies one to four mutations: of a value, a count, a length or a type; of a hyperparameter; of
  // whole entries and tensor infos (removed, repeated, exchanged); of the weights (NaN, infinities,
  // zeros); or of single bytes.
  std::vector<std::byte> mutate(std::span<const std::byte> file);

 private:
  size_t below(size_t count) { return static_cast<size_t>(random_() % count); }
  void mutate_field(std::vector<std::byte>& file, const GgufMap& map);
  void mutate_number(std::vector<std::byte>& file, const GgufMap& map);
  void mutate_list(std::vector<std::byte>& file, const GgufMap& map);
  void mutate_data(std::vector<std::byte>& file, const GgufMap& map);
  void mutate_bytes(std::vector<std::byte>& file);
  uint64_t unusual_integer(size_t bytes);
  uint64_t unusual_real(size_t bytes);

  std::mt19937_64 random_;
};

}  // namespace prism::test
