// CodeSpace: rounds vectors of any metric to i8 codes whose distances rank rows like the metric.
//
// Rows are compared by the squared distance of their codes: of directions for cosine, and for dot
// of vectors with one more number, which gives all of them the same length (the nearest of those
// have the largest product). The scale is one for the whole space. Codes only guide a search; what
// it finds is ranked by the stored vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/system/thread_pool.h"
#include "prism/metric.h"

namespace prism::search {

class CodeSpace {
 public:
  using RowReader = std::function<std::vector<float>(uint64_t row)>;

  // Finds center and scale from a sample of the rows.
  static CodeSpace fit(Metric metric, uint64_t width, uint64_t rows, const RowReader& row);
  // Throws kCorruptFile if the bytes are not those of a space of this metric and width.
  static CodeSpace parse(Metric metric, uint64_t width, std::span<const std::byte> bytes);
  std::vector<std::byte> text() const;

  size_t bytes() const { return bytes_; }  // of a code
  void encode_row(std::vector<float> row, int8_t* code) const;
  // Returns false if there is nothing to compare with: a zero vector has no direction.
  bool encode_query(std::vector<float> query, int8_t* code) const;
  // Whether queries are compared by products and not by distances.
  bool uses_products() const { return metric_ == Metric::dot; }

  // out[i]: how far the rows are from an encoded query; only the order has a meaning.
  void compare(const int8_t* query, const int8_t* codes, const uint32_t* rows, size_t count,
               uint32_t* out) const;

 private:
  CodeSpace(Metric metric, uint64_t width);
  // The numbers of a row that are encoded: dimensions() of them.
  void prepare(std::vector<float>& row) const;
  size_t dimensions() const { return center_.size(); }

  Metric metric_;
  uint64_t width_;
  size_t bytes_;
  float factor_ = 1;   // of numbers, before they are rounded
  float longest_ = 0;  // dot: the largest squared length of a row
  std::vector<float> center_;
};

}  // namespace prism::search
