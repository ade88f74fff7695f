// Segment: a run of vectors with their ids and fields, in memory or in a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/nearest/nearest.h"
#include "prism/search.h"
#include "search/methods/searcher.h"
#include "search/section.h"

namespace prism::search {

enum class FieldType : uint8_t { integer, number, text, list };
const char* field_type_name(FieldType type);

// The values of one field. Numbers have 8 bytes each; texts and lists end at ends[row]. A list is
// its items, each followed by a zero byte.
struct Column {
  std::string name;
  FieldType type = FieldType::integer;
  Section present;  // a byte for each row: 1 if the row has the field
  Section values;   // int64_t, double, or the ends (uint64_t) of texts
  Section bytes;    // of texts

  bool has(uint64_t row) const {
    return row < present.bytes() && present.data()[row] == std::byte{1};
  }
  std::string_view text(uint64_t row) const;
};

class Segment {
 public:
  explicit Segment(const IndexOptions& options);

  // Tells segments apart: two with the same identity have the same vectors, but for additions.
  uint64_t identity() const { return identity_; }
  void set_identity(uint64_t identity) { identity_ = identity; }

  uint64_t rows() const { return rows_; }
  uint64_t removed() const { return removed_count_; }
  Id id(uint64_t row) const;
  bool is_alive(uint64_t row) const { return (alive_[row / 32] >> (row % 32) & 1) != 0; }
  const std::vector<uint32_t>& alive() const { return alive_; }
  void remove(uint64_t row);
  void add(const Id& id, std::span<const float> vector, const Fields& fields);
  std::vector<float> vector(uint64_t row) const;  // the most precise copy
  const Column* column(std::string_view name) const;
  const std::vector<Column>& columns() const { return columns_; }
  Field field(const Column& column, uint64_t row) const;
  Fields fields(uint64_t row) const;

  // The rows in the order in which they were added.
  std::vector<uint32_t> added_order() const;
  // A new segment with copies of rows of others, in this order.
  struct Source {
    const Segment* segment;
    uint32_t row;
  };
  static Segment gathered(const IndexOptions& options, std::span<const Source> rows);
  // The same rows in another order; added_order() stays the same.
  Segment reordered(std::span<const uint32_t> rows) const;

  const Searcher* searcher() const { return searcher_.get(); }
  void set_searcher(std::shared_ptr<const Searcher> searcher) { searcher_ = std::move(searcher); }
  // Describes the rows for a search, without queries; all rows that are alive are allowed.
  Wanted wanted() const;

  // The rows as kernels read them, without a bitmap.
  cpu::NearestRows scan_rows() const;
  std::optional<cpu::NearestRows> exact_rows() const;  // the rescore copy

  // --- for files
  std::vector<NamedSection> sections() const;  // without the bitmap of removed rows
  // Throws kCorruptFile naming the section if sizes do not fit.
  static Segment from_sections(const IndexOptions& options, uint64_t rows,
                               const std::vector<NamedSection>& sections, const std::string& path);
  void set_alive(std::vector<uint32_t> words);

 private:
  void add_column_value(Column& column, const Field* value);
  void set_all_alive();

  IndexOptions options_;
  uint64_t identity_;
  uint64_t rows_ = 0, removed_count_ = 0;
  Section vectors_, factors_, exact_, scales_, ids_, id_bytes_;
  Section
      order_;  // uint32_t: the position of each row in the order of additions; empty: its number
  std::shared_ptr<const Searcher> searcher_;
  std::vector<Column> columns_;
  std::vector<uint32_t> alive_;  // a bit for each row
};

// The bytes of one vector of `width` elements.
uint64_t vector_bytes(DType type, uint64_t width);

}  // namespace prism::search
