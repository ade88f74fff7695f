// Tests the methods of an index (lists and graphs) against scans in float64: what they find, with
// filters, and files with their sections.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/search.h"
#include "support/run_program.h"
#include "support/search/clustered_vectors.h"

namespace prism::search {
namespace {

using namespace test;  // clustered vectors and folders

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
