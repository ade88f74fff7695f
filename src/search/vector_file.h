// Files of plain vectors, to exchange with other programs: .npy, .fvecs, .bvecs, .ivecs, .fbin, and
// folders with embeddings.npy, embeddings_norms.npy and embeddings_meta.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/search.h"

namespace prism::search {

struct VectorTable {
  uint64_t rows = 0, width = 0;
  std::vector<float> values;  // [rows][width]
  std::vector<Id> ids;        // empty: the numbers of the rows
  std::vector<Fields> fields = {};

  std::span<const float> row(uint64_t r) const {
    return std::span(values).subspan(r * width, width);
  }
};

// The extension selects the format. An .npy file with one axis is one vector. Throws kNotFound or
// kIo, kCorruptFile for malformed files and kInvalidArgument for another extension.
VectorTable read_vectors(const std::string& path);
// .npy, .fvecs, .bvecs, .ivecs or .fbin; without an extension a folder with embeddings.npy,
// embeddings_norms.npy and embeddings_meta.json. .bvecs and .ivecs need integers that fit.
void write_vectors(const std::string& path, const VectorTable& table);

// The formats with lengths in front of the numbers, over a whole file.
VectorTable parse_vecs(const std::string& path, std::string_view file, std::string_view extension);
VectorTable parse_fbin(const std::string& path, std::string_view file);
// The ids and fields of rows: an array of texts, numbers or objects with the member "id", or an
// object whose member "ids" is an array.
void parse_meta(const std::string& path, std::string_view text, VectorTable& table);

}  // namespace prism::search
