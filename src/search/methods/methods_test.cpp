// Tests the methods of an index (lists and graphs) against scans in float64: what they find, with
// filters and after changes, and files with their sections.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/search.h"
#include "support/run_program.h"

namespace prism::search {
namespace {

using test::TemporaryFolder;
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

double score(Metric metric, const Vector& a, const Vector& b) {
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
double recall(Metric metric, const Plain& plain, const Vector& query, uint64_t k,
              const SearchResult& found, const std::function<bool(uint64_t)>& allows) {
  std::vector<std::pair<double, uint64_t>> all;
  for (const auto& [id, vector] : plain)
    if (allows(id)) all.emplace_back(-score(metric, query, vector), id);
  std::ranges::sort(all);
  all.resize(std::min<size_t>(k, all.size()));
  EXPECT_EQ(found.hits.size(), all.size()) << found.how;
  std::set<uint64_t> ids;
  double last = -1e30;
  uint64_t right = 0;
  for (const Hit& hit : found.hits) {
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

bool everything(uint64_t) { return true; }

double mean_recall(const Index& index, const Plain& plain, Clusters& source, int queries,
                   const SearchOptions& options,
                   const std::function<bool(uint64_t)>& allows = everything) {
  double sum = 0;
  for (int i = 0; i < queries; ++i) {
    const Vector query = source.next();
    sum += recall(index.info().options.metric, plain, query, options.k,
                  index.search(query, options), allows);
  }
  return sum / queries;
}

Plain fill(Index& index, Clusters& source, uint64_t count) {
  Plain plain;
  for (uint64_t i = 0; i < count; ++i) {
    plain[i] = source.next();
    index.add(i, plain[i], {{"n", static_cast<int64_t>(i)}});
  }
  return plain;
}

const Method kMethods[] = {Method::ivf, Method::graph};

TEST(SearchMethods, EveryMetricAndTypeFindsItsShare) {
  const uint64_t width = 24;
  for (const Method method : kMethods)
    for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::b1})
      for (const Metric metric : {Metric::cosine, Metric::l2, Metric::dot, Metric::hamming}) {
        if ((metric == Metric::hamming) != (type == DType::b1)) continue;
        Clusters source(type == DType::b1 ? 61 : width, 3);
        Index index({.width = type == DType::b1 ? 61 : width, .metric = metric, .type = type});
        const Plain plain = fill(index, source, 2500);
        index.build({.method = method});
        SCOPED_TRACE(std::string(method_name(method)) + " " + dtype_name(type) + " " +
                     metric_name(metric));
        ASSERT_EQ(index.info().method, method);
        const SearchOptions explicitly{
            .method = method, .effort = method == Method::graph ? uint64_t{60} : uint64_t{15}};
        // The types round: i8 exchanges neighbours.
        const double least = type == DType::i8 || type == DType::bf16 ? 0.85 : 0.93;
        EXPECT_GE(mean_recall(index, plain, source, 20, explicitly), least);
        EXPECT_NE(index.search(source.next(), explicitly).how.find(method_name(method)),
                  std::string::npos);
      }
}

TEST(SearchMethods, CoarseTypesAreRescored) {
  for (const Method method : kMethods) {
    Clusters source(40, 5);
    Index index({.width = 40, .type = DType::b1, .rescore = DType::f32});
    const Plain plain = fill(index, source, 2000);
    index.build({.method = method});
    const uint64_t effort = method == Method::graph ? 80 : 20;
    EXPECT_GE(mean_recall(index, plain, source, 20,
                          {.method = method, .effort = effort, .oversample = 40}),
              method == Method::graph ? 0.95 : 0.7);
  }
}

TEST(SearchMethods, TheAskedRecallIsReached) {
  for (const Method method : kMethods) {
    Clusters source(32, 7);
    Index index({.width = 32, .metric = Metric::l2});
    const Plain plain = fill(index, source, 20000);
    index.build({.method = method});
    const IndexInfo info = index.info();
    ASSERT_FALSE(info.measured.empty());
    EXPECT_GT(info.exact_microseconds, 0);
    for (const double wanted : {0.8, 0.95}) {
      const SearchOptions options{.recall = wanted};
      EXPECT_GE(mean_recall(index, plain, source, 100, options), wanted - 0.04)
          << index.search(source.next(), options).how;
    }
    const Vector query = source.next();
    EXPECT_EQ(index.search(query, {.recall = 1}).how, "exact, l2 f32");
    EXPECT_EQ(recall(Metric::l2, plain, query, 10, index.search(query, {.recall = 1}), everything),
              1);
    EXPECT_EQ(index.search(query, 3, {.recall = 0.9}).hits.size(), 3u);
  }
}

TEST(SearchMethods, FiltersOfAnySelectivity) {
  const uint64_t count = 20000;
  for (const Method method : kMethods) {
    Clusters source(16, 11);
    Index index({.width = 16, .metric = Metric::l2});
    const Plain plain = fill(index, source, count);
    index.build({.method = method});
    for (const uint64_t every : {2, 100, 10000}) {
      SearchOptions options{.recall = 0.95};
      options.filter = Filter::where([&](const Id& id) { return id.number() % every == 1; });
      EXPECT_GE(mean_recall(index, plain, source, 20, options,
                            [&](uint64_t id) { return id % every == 1; }),
                every == 2 ? 0.9 : 0.95)
          << method_name(method) << " " << every;
      options.method = method;
      options.effort = method == Method::graph ? 40 : 20;
      EXPECT_GE(mean_recall(index, plain, source, 20, options,
                            [&](uint64_t id) { return id % every == 1; }),
                0.9)
          << method_name(method) << " " << every;
    }
    SearchOptions none{.filter = Filter::parse("n < 0")};
    EXPECT_TRUE(index.search(source.next(), none).hits.empty());
  }
}

TEST(SearchMethods, ChangesAgreeWithAMap) {
  const TemporaryFolder folder;
  for (const Method method : kMethods) {
    const std::string path = folder / method_name(method);
    Clusters source(12, 13);
    Plain plain;
    {
      Index index({.width = 12, .metric = Metric::l2});
      plain = fill(index, source, 3000);
      index.build({.method = method});
      index.save(path);
    }
    std::optional<Index> index = Index::open(path, Access::write);
    double sum = 0;
    int searches = 0;
    for (int step = 0; step < 2000; ++step) {
      const uint64_t id = source.random()() % 4000, kind = source.random()() % 100;
      if (kind < 40) {
        plain[id] = source.next();
        index->update(id, plain[id]);
      } else if (kind < 80) {
        EXPECT_EQ(index->remove(id), plain.erase(id) == 1);
      } else if (kind < 97) {
        const uint64_t effort = method == Method::graph ? 50 : 20;
        const SearchOptions options{.k = 5, .method = method, .effort = effort};
        const Vector query = source.next();
        sum += recall(Metric::l2, plain, query, 5, index->search(query, options), everything);
        ++searches;
      } else if (kind == 97) {
        index->commit();
      } else if (kind == 98) {
        index->commit();
        index = std::nullopt;
        index = Index::open(path, Access::write);
        EXPECT_EQ(index->info().method, method);
      } else if (step % 4 == 0) {
        index->compact();
        EXPECT_EQ(index->info().method, method);
      }
      ASSERT_EQ(index->info().vectors, plain.size());
    }
    EXPECT_GE(sum / searches, 0.95);
    index->commit();
    index->verify();
  }
}

TEST(SearchMethods, LargeAdditionsGetStructures) {
  const TemporaryFolder folder;
  for (const Method method : kMethods) {
    const std::string path = folder / method_name(method);
    Clusters source(4, 17);
    Index made({.width = 4, .metric = Metric::l2});
    Plain plain = fill(made, source, 1500);
    made.build({.method = method});
    made.save(path);
    Index index = Index::open(path, Access::write);
    for (uint64_t id = 1500; id < 22500; ++id) {
      plain[id] = source.next();
      index.add(id, plain[id]);
    }
    EXPECT_EQ(index.info().scanned, 21000u);
    index.commit();
    EXPECT_EQ(index.info().scanned, 0u);
    EXPECT_EQ(index.info().segments, 2u);
    EXPECT_TRUE(index.remove(2000));
    plain.erase(2000);
    EXPECT_GE(mean_recall(index, plain, source, 20, {}), 0.9);
  }
}

TEST(SearchMethods, OrderOfAdditionsIsKept) {
  Clusters source(8, 19);
  Index index({.width = 8});
  fill(index, source, 2000);
  index.remove(5);
  index.build({.method = Method::ivf});
  std::vector<uint64_t> ids;
  index.each([&](const Id& id, std::span<const float>) { ids.push_back(id.number()); });
  ASSERT_EQ(ids.size(), 1999u);
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  index.build({.method = Method::exact});
  EXPECT_EQ(index.info().method, Method::exact);
  std::vector<uint64_t> again;
  index.each([&](const Id& id, std::span<const float>) { again.push_back(id.number()); });
  EXPECT_EQ(ids, again);
}

// Vectors are added, replaced and removed while a thread compacts.
TEST(SearchMethods, BackgroundCompactionLosesNothing) {
  const TemporaryFolder folder;
  for (const Method method : {Method::exact, Method::ivf, Method::graph})
    for (const bool in_file : {false, true}) {
      const std::string path = folder / "index";
      Clusters source(8, 31);
      Index made({.width = 8, .metric = Metric::l2});
      Plain plain = fill(made, source, 3000);
      made.build({.method = method});
      made.save(path);
      Index index = in_file ? Index::open(path, Access::write) : std::move(made);
      for (uint64_t id = 0; id < 900; ++id) {
        index.remove(id);
        plain.erase(id);
      }
      if (in_file) index.commit();
      index.compact_in_background();
      for (uint64_t id = 800; id < 1000; ++id) {
        plain[id] = source.next();
        index.update(id, plain[id]);
        index.remove(id + 500);
        plain.erase(id + 500);
      }
      index.wait_for_compaction();
      const IndexInfo info = index.info();
      EXPECT_EQ(info.vectors, plain.size());
      EXPECT_LT(info.removed, 900u);
      EXPECT_EQ(info.method, method);
      EXPECT_EQ(mean_recall(index, plain, source, 20, {.recall = 1}), 1);
      if (!in_file) continue;
      index.commit();
      index.verify();
      EXPECT_EQ(mean_recall(Index::open(path), plain, source, 20, {.recall = 1}), 1);
    }
}

TEST(SearchMethods, BadSettingsAreErrors) {
  Clusters source(8, 23);
  Index index({.width = 8});
  fill(index, source, 1200);
  const auto expect_invalid = [&](const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    }
  };
  const Vector query = source.next();
  expect_invalid([&] { index.search(query, {.recall = 0}); });
  expect_invalid([&] { index.search(query, {.recall = 1.5}); });
  expect_invalid([&] { index.search(query, {.recall = std::nan("")}); });
  expect_invalid([&] { index.search(query, {.method = Method::graph}); });
  expect_invalid([&] { index.build({.method = Method::graph, .links = 3}); });
  expect_invalid([&] { index.build({.method = Method::graph, .effort = 0}); });
  index.build({.method = Method::graph});
  expect_invalid([&] { index.search(query, {.method = Method::ivf}); });
}

// Every byte of the new sections may be wrong: a search then returns other rows or an error.
TEST(SearchMethods, DamageIsHarmless) {
  const TemporaryFolder folder;
  for (const Method method : kMethods) {
    const std::string path = folder / "index";
    Clusters source(4, 29);
    Index made({.width = 4, .metric = Metric::l2});
    fill(made, source, 1000);
    made.build({.method = method});
    made.save(path);
    const std::string right = test::read_file(path);
    int found_damage = 0;
    for (int i = 0; i < 400; ++i) {
      std::string wrong = right;
      // Bytes of the sections; the directory has a checksum of its own.
      const size_t at = 4096 + source.random()() % (right.size() - 4096);
      for (size_t j = at; j < std::min(right.size(), at + 8); ++j)
        wrong[j] = static_cast<char>(source.random()());
      test::write_file(path, wrong);
      try {
        const Index index = Index::open(path);
        const auto result =
            index.search(source.next(), {.method = index.info().method, .effort = 30});
        EXPECT_LE(result.hits.size(), 10u);
        try {
          index.verify();
        } catch (const Error&) {
          ++found_damage;
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
        ++found_damage;
      }
    }
    EXPECT_GT(found_damage, 350);
  }
}

}  // namespace
}  // namespace prism::search
