// Fits a code space to rows, and encodes rows and queries.
#include "search/methods/code_space.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/nearest/code_distance.h"
#include "prism/error.h"

namespace prism::search {

namespace {

// Rows that are read to find the scale: enough for its fourth digit.
constexpr uint64_t kSample = 4096;
// The largest numbers may be clamped: this share of them.
constexpr double kClamped = 1e-4;

float squared_length(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return static_cast<float>(sum);
}

}  // namespace

CodeSpace::CodeSpace(Metric metric, uint64_t width)
    : metric_(metric), width_(width), center_(width + (metric == Metric::dot ? 1 : 0)) {
  bytes_ = (center_.size() + cpu::kCodeUnit - 1) / cpu::kCodeUnit * cpu::kCodeUnit;
}

void CodeSpace::prepare(std::vector<float>& row) const {
  if (metric_ == Metric::cosine) {
    const float length = std::sqrt(squared_length(row));
    if (length > 0)
      for (float& value : row) value /= length;
  } else if (metric_ == Metric::hamming) {
    for (float& value : row) value = value > 0 ? 1.0f : 0.0f;
  } else if (metric_ == Metric::dot) {
    row.push_back(std::sqrt(std::max(0.0f, longest_ - squared_length(row))));
  }
}

CodeSpace CodeSpace::fit(Metric metric, uint64_t width, uint64_t rows, const RowReader& row) {
  CodeSpace space(metric, width);
  if (metric == Metric::hamming || rows == 0) return space;
  std::vector<std::vector<float>> sample;
  for (uint64_t i = 0; i < std::min(rows, kSample); ++i) {
    std::vector<float> each = row(i * rows / std::min(rows, kSample));
    // A damaged file may have NaN, and lengths may overflow: such rows say nothing about the scale.
    const float length = squared_length(each);
    if (!std::isfinite(length)) continue;
    // Longer rows than those of the sample end at the same distance, a little too near.
    space.longest_ = std::max(space.longest_, length);
    sample.push_back(std::move(each));
  }
  if (sample.empty()) return space;
  const uint64_t count = sample.size();
  const size_t dimensions = space.dimensions();
  std::vector<double> sum(dimensions);
  for (std::vector<float>& each : sample) {
    space.prepare(each);
    for (size_t i = 0; i < dimensions; ++i) sum[i] += static_cast<double>(each[i]);
  }
  for (size_t i = 0; i < dimensions; ++i)
    space.center_[i] = static_cast<float>(sum[i] / static_cast<double>(count));
  std::vector<float> sizes;
  sizes.reserve(count * dimensions);
  for (const std::vector<float>& each : sample)
    for (size_t i = 0; i < dimensions; ++i) sizes.push_back(std::abs(each[i] - space.center_[i]));
  const auto largest = sizes.begin() + static_cast<ptrdiff_t>(
                                           static_cast<double>(sizes.size() - 1) * (1 - kClamped));
  std::nth_element(sizes.begin(), largest, sizes.end());
  if (*largest > 0 && std::isfinite(127 / *largest)) space.factor_ = 127 / *largest;
  return space;
}

void CodeSpace::encode_row(std::vector<float> row, int8_t* code) const {
  prepare(row);
  cpu::encode(row.data(), center_.data(), factor_, dimensions(), code);
  std::fill(code + dimensions(), code + bytes_, int8_t{0});
}

bool CodeSpace::encode_query(std::vector<float> query, int8_t* code) const {
  std::fill(code, code + bytes_, int8_t{0});
  if (!uses_products()) {
    encode_row(query, code);
    return metric_ != Metric::cosine || squared_length(query) > 0;
  }
  // The order of products is the same for a query of any length.
  float largest = 0;
  for (const float value : query) largest = std::max(largest, std::abs(value));
  const std::vector<float> zero(width_);
  if (largest > 0 && std::isfinite(127 / largest))
    cpu::encode(query.data(), zero.data(), 127 / largest, width_, code);
  return true;
}

void CodeSpace::compare(const int8_t* query, const int8_t* codes, const uint32_t* rows,
                        size_t count, uint32_t* out) const {
  if (uses_products())
    cpu::code_products(query, codes, bytes_, rows, count, out);
  else
    cpu::code_distances(query, codes, bytes_, rows, count, out);
}

std::vector<std::byte> CodeSpace::text() const {
  std::vector<float> numbers = {factor_, longest_};
  numbers.insert(numbers.end(), center_.begin(), center_.end());
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

CodeSpace CodeSpace::parse(Metric metric, uint64_t width, std::span<const std::byte> bytes) {
  CodeSpace space(metric, width);
  std::vector<float> numbers(2 + space.dimensions());
  if (bytes.size() != numbers.size() * sizeof(float))
    throw Error(ErrorCode::kCorruptFile, "the code space of the graph has a wrong size");
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  for (const float number : numbers)
    if (!std::isfinite(number))
      throw Error(ErrorCode::kCorruptFile, "the code space of the graph has no finite scale");
  space.factor_ = numbers[0];
  space.longest_ = numbers[1];
  std::copy(numbers.begin() + 2, numbers.end(), space.center_.begin());
  return space;
}

}  // namespace prism::search
