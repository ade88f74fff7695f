// Vectors in clusters, a plain map of them, and what a search should find there.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "prism/search.h"

namespace prism::test {

using Vector = std::vector<float>;

// Vectors around centers, like those that methods are made for.
class Clusters {
 public:
  Clusters(uint64_t width, uint32_t seed) : width_(width), random_(seed) {
    for (int i = 0; i < 20; ++i) centers_.push_back(noise(2));
  }
  Vector next() {
    Vector vector = noise(1);
    const Vector& center = centers_[random_() % centers_.size()];
    for (uint64_t i = 0; i < width_; ++i) vector[i] += center[i];
    return vector;
  }
  std::mt19937& random() { return random_; }

 private:
  Vector noise(float size) {
    std::normal_distribution<float> normal(0, size);
    Vector vector(width_);
    for (float& value : vector) value = normal(random_);
    return vector;
  }
  uint64_t width_;
  std::mt19937 random_;
  std::vector<Vector> centers_;
};

inline double score(Metric metric, const Vector& a, const Vector& b) {
  double product = 0, apart = 0, aa = 0, bb = 0, bits = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    product += x * y;
    apart += (x - y) * (x - y);
    aa += x * x;
    bb += y * y;
    bits += (x > 0) != (y > 0);
  }
  switch (metric) {
    case Metric::cosine:
      return product / std::sqrt(aa * bb);
    case Metric::dot:
      return product;
    case Metric::l2:
      return -apart;
    default:
      return -bits;
  }
}

using Plain = std::map<uint64_t, Vector>;

// The share of the k best of the plain vectors that `allows` lets pass and that were found. What
// was found must exist, be allowed, be in order and have no vector twice.
inline double recall(Metric metric, const Plain& plain, const Vector& query, uint64_t k,
                     const search::SearchResult& found,
                     const std::function<bool(uint64_t)>& allows) {
  std::vector<std::pair<double, uint64_t>> all;
  for (const auto& [id, vector] : plain)
    if (allows(id)) all.emplace_back(-score(metric, query, vector), id);
  std::ranges::sort(all);
  all.resize(std::min<size_t>(k, all.size()));
  EXPECT_EQ(found.hits.size(), all.size()) << found.how;
  std::set<uint64_t> ids;
  double last = -1e30;
  uint64_t right = 0;
  for (const search::Hit& hit : found.hits) {
    const uint64_t id = hit.id.number();
    EXPECT_TRUE(ids.insert(id).second);
    EXPECT_TRUE(plain.contains(id) && allows(id)) << id;
    const double key =
        is_distance(metric) ? static_cast<double>(hit.score) : -static_cast<double>(hit.score);
    EXPECT_GE(key, last);
    last = key;
    // Vectors as good as the last count: bits have many ties.
    right += plain.contains(id) && -score(metric, query, plain.at(id)) <= all.back().first + 1e-9;
  }
  return all.empty() ? 1 : static_cast<double>(right) / static_cast<double>(all.size());
}

inline bool everything(uint64_t) { return true; }

inline double mean_recall(const search::Index& index, const Plain& plain, Clusters& source,
                          int queries, const search::SearchOptions& options,
                          const std::function<bool(uint64_t)>& allows = everything) {
  double sum = 0;
  for (int i = 0; i < queries; ++i) {
    const Vector query = source.next();
    sum += recall(index.info().options.metric, plain, query, options.k,
                  index.search(query, options), allows);
  }
  return sum / queries;
}

inline Plain fill(search::Index& index, Clusters& source, uint64_t count) {
  Plain plain;
  for (uint64_t i = 0; i < count; ++i) {
    plain[i] = source.next();
    index.add(i, plain[i], {{"n", static_cast<int64_t>(i)}});
  }
  return plain;
}

}  // namespace prism::test
