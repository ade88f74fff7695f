// Fuzzes the sections of graphs and lists in index files: they are rejected, or searches with them
// return rows that exist.
//
// The first bytes choose metric, width and number of rows; the rest is divided into sections.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "prism/error.h"
#include "search/methods/graph_searcher.h"
#include "search/methods/ivf_searcher.h"

using namespace prism;
using namespace prism::search;

namespace {

// Takes values and sections from the input, zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    const size_t some = std::min(bytes, size_);
    if (some > 0) std::memcpy(&value, data_, some);
    data_ += some;
    size_ -= some;
    return value;
  }
  Section section(uint64_t bytes) {
    Section made;
    made.resize(bytes);
    const size_t some = std::min<size_t>(bytes, size_);
    std::copy_n(reinterpret_cast<const std::byte*>(data_), some, made.change<std::byte>());
    data_ += some;
    size_ -= some;
    return made;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Sizes that fit, off by a little in one of sixteen inputs.
uint64_t about(Input& input, uint64_t bytes) {
  const uint64_t change = input.number(1);
  return change < 16 ? bytes + 4 * change : bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const Metric metric = std::vector{Metric::cosine, Metric::dot, Metric::l2}[input.number(1) % 3];
  const bool is_graph = input.number(1) % 2 == 0;
  const uint64_t width = 1 + input.number(1) % 8, rows = input.number(1) * 2;
  const uint64_t effort = input.number(2);
  std::vector<NamedSection> sections;
  const auto add = [&](const char* name, uint64_t bytes) {
    sections.push_back({name, input.section(about(input, bytes))});
  };
  const uint64_t curve = input.number(1);
  if (is_graph) {
    const uint64_t slots = 2 * (1 + input.number(1) % 8);
    const uint64_t dimensions = width + (metric == Metric::dot ? 1 : 0);
    const std::vector<uint32_t> layers = layer_sizes(rows);
    const uint64_t upper = layers.size() > 1 ? layers[1] : 0;
    uint64_t sizes = 0;
    for (size_t l = 1; l < layers.size(); ++l) sizes += layers[l];
    add("graph space", 4 * (2 + dimensions));
    add("graph upper rows", 4 * upper);
    add("graph upper links", 4 * sizes * (slots / 2));
    add("graph links", 4 * rows * slots);
    add("graph codes", rows * ((dimensions + 31) / 32 * 32));
    add("graph curve", curve);
  } else {
    const uint64_t lists = 1 + input.number(1) % 16;
    add("ivf lists", 4 * (lists + 1));
    add("ivf centers", 4 * lists * width);
    add("ivf curve", curve);
  }
  std::vector<float> matrix(rows * width), queries(2 * width);
  for (uint64_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 17) - 8;
  for (uint64_t i = 0; i < queries.size(); ++i) queries[i] = static_cast<float>(i % 5) - 2;
  try {
    std::unique_ptr<Searcher> searcher = GraphSearcher::open(metric, width, rows, sections);
    if (!searcher) searcher = IvfSearcher::open(metric, width, rows, sections);
    if (!searcher) return 0;
    Wanted wanted;
    wanted.rows = {.metric = metric,
                   .type = DType::f32,
                   .data = reinterpret_cast<const std::byte*>(matrix.data()),
                   .count = rows,
                   .width = width};
    wanted.width = width;
    wanted.allowed = rows;
    wanted.queries = queries;
    wanted.count = std::min<uint64_t>(10, rows);
    wanted.effort = std::min(searcher->largest_effort(), 1 + effort);
    if (const auto point = searcher->curve.least(wanted.count, 0.95); point && effort % 2 == 0)
      wanted.effort = std::min(searcher->largest_effort(), point->effort);
    if (rows == 0) return 0;
    for (const cpu::NearRow& found : searcher->search(wanted))
      if (found.is_row() && found.row >= rows) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptFile) std::abort();
  }
  return 0;
}
