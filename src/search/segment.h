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

namespace prism::search {

// Bytes with a name: grown in memory by additions, or a part of a mapped file.
class Section {
 public:
  Section() = default;
  Section(std::shared_ptr<const std::byte> mapped, uint64_t bytes)
      : mapped_(std::move(mapped)), bytes_(bytes) {}
  const std::byte* data() const { return mapped_ ? mapped_.get() : own_.data(); }
  bool is_mapped() const { return mapped_ != nullptr; }
  // Points to mapped bytes; copies own ones.
  std::shared_ptr<const std::byte> shared() const {
    if (mapped_) return mapped_;
    const auto copy = std::make_shared<const std::vector<std::byte>>(own_);
    return {copy, copy->data()};
  }
  uint64_t bytes() const { return mapped_ ? bytes_ : own_.size(); }
  std::span<const std::byte> span() const { return {data(), bytes()}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data()), bytes()}; }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data());
  }
  template <class T>
  uint64_t count() const {
    return bytes() / sizeof(T);
  }
  void append(std::span<const std::byte> more) {
    own_.insert(own_.end(), more.begin(), more.end());
  }
  template <class T>
  void push(const T& value) {
    append(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  T* change() {  // of own bytes
    return reinterpret_cast<T*>(own_.data());
  }
  void resize(uint64_t bytes) { own_.resize(bytes); }

 private:
  std::shared_ptr<const std::byte> mapped_;
  uint64_t bytes_ = 0;
  std::vector<std::byte> own_;
};

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
  explicit Segment(const IndexOptions& options) : options_(options) {}

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

  // The rows as kernels read them, without a bitmap.
  cpu::NearestRows scan_rows() const;
  std::optional<cpu::NearestRows> exact_rows() const;  // the rescore copy

  // --- for files
  struct NamedSection {
    std::string name;
    Section section;
  };
  std::vector<NamedSection> sections() const;  // without the bitmap of removed rows
  // Throws kCorruptFile naming the section if sizes do not fit.
  static Segment from_sections(const IndexOptions& options, uint64_t rows,
                               const std::vector<NamedSection>& sections, const std::string& path);
  void set_alive(std::vector<uint32_t> words);

 private:
  void add_column_value(Column& column, const Field* value);

  IndexOptions options_;
  uint64_t rows_ = 0, removed_count_ = 0;
  Section vectors_, factors_, exact_, scales_, ids_, id_bytes_;
  std::vector<Column> columns_;
  std::vector<uint32_t> alive_;  // a bit for each row
};

// The bytes of one vector of `width` elements.
uint64_t vector_bytes(DType type, uint64_t width);
// The query as scans of the type read it: f32, or the bits of b1.
std::vector<std::byte> query_for(DType type, std::span<const float> query);

}  // namespace prism::search
