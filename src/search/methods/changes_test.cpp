// Tests changes of indexes that have a graph or lists: additions, removals, commits and compaction.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/search.h"
#include "support/run_program.h"
#include "support/search/clustered_vectors.h"
#include "support/seed.h"

namespace prism::search {
namespace {

using namespace test;  // clustered vectors and folders

const Method kMethods[] = {Method::ivf, Method::graph};

TEST(SearchChanges, ChangesAgreeWithAMap) {
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

TEST(SearchChanges, LargeAdditionsGetStructures) {
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

// Vectors are added, replaced and removed while a thread compacts.
TEST(SearchChanges, BackgroundCompactionLosesNothing) {
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

// Structures that were built do not know what is added later: it is scanned, so that every method
// finds it at once, and finds no version of it that was replaced.
TEST(SearchChanges, AdditionsAfterBuildAreFoundAtOnce) {
  const TemporaryFolder folder;
  for (const Method built : {Method::exact, Method::ivf, Method::graph})
    for (const bool in_file : {false, true}) {
      SCOPED_TRACE(std::string(method_name(built)) + (in_file ? " in a file" : " in memory"));
      Clusters source(7, test_seed());
      Index made({.width = 7, .metric = Metric::l2});
      Plain plain = fill(made, source, 1300);
      made.build({.method = built});
      const std::string path = folder / "index";
      if (in_file) made.save(path);
      std::optional<Index> index =
          in_file ? Index::open(path, Access::write) : std::optional(std::move(made));
      std::vector<SearchOptions> ways = {{.k = 1}, {.k = 1, .recall = 1}, {.k = 1, .recall = 0.5}};
      ways.push_back({.k = 1, .method = Method::exact});
      if (built != Method::exact) ways.push_back({.k = 1, .method = built, .effort = 10});
      const auto expect_found = [&](uint64_t id) {
        for (const SearchOptions& way : ways) {
          const SearchResult found = index->search(plain.at(id), way);
          ASSERT_EQ(found.hits.size(), 1u) << found.how;
          EXPECT_EQ(found.hits[0].id, Id(id)) << found.how;
          EXPECT_EQ(found.hits[0].score, 0) << found.how;
        }
      };
      for (uint64_t step = 0; step < 40; ++step) {
        // New ones, and old ones at a new place.
        const uint64_t id = step % 2 == 0 ? 5000 + step : source.random()() % 1300;
        const Vector before = plain.contains(id) ? plain[id] : Vector();
        plain[id] = source.next();
        index->update(id, plain[id]);
        expect_found(id);
        if (!before.empty()) {
          EXPECT_NE(index->search(before, ways.back()).hits[0].score, 0);
        }
      }
      EXPECT_EQ(index->info().method, built);
      if (!in_file) continue;
      index->commit();
      for (uint64_t step = 0; step < 40; step += 2) expect_found(5000 + step);
      EXPECT_GE(mean_recall(Index::open(path), plain, source, 20, ways.back()), 0.9);
    }
}

// Searches by the method go on while a thread compacts, and the compacted index has structures that
// find its vectors. Named bytes stay.
TEST(SearchChanges, MethodsWorkDuringAndAfterBackgroundCompaction) {
  const TemporaryFolder folder;
  for (const Method method : kMethods) {
    SCOPED_TRACE(method_name(method));
    const std::string path = folder / method_name(method);
    Clusters source(9, test_seed());
    Plain plain;
    {
      Index made({.width = 9, .metric = Metric::l2});
      plain = fill(made, source, 4000);
      made.build({.method = method});
      made.attach("note", "kept");
      made.save(path);
    }
    Index index = Index::open(path, Access::write);
    for (uint64_t id = 0; id < 1500; ++id) {
      index.remove(id);
      plain.erase(id);
    }
    index.commit();
    const uint64_t generation = index.info().generation;
    const SearchOptions options{
        .k = 5, .method = method, .effort = method == Method::graph ? uint64_t{60} : uint64_t{20}};
    index.compact_in_background();
    std::atomic<int> wrong = 0, searches = 0;
    std::vector<Vector> queries;
    for (int i = 0; i < 20; ++i) queries.push_back(source.next());
    std::thread searching([&] {
      for (const Vector& query : queries)
        for (const Hit& hit : index.search(query, options).hits) {
          wrong += hit.id.number() < 1500;
          ++searches;
        }
    });
    for (uint64_t id = 1500; id < 1600; ++id) {
      index.remove(id);
      plain.erase(id);
      plain[id + 10000] = source.next();
      index.add(id + 10000, plain[id + 10000]);
    }
    searching.join();
    index.wait_for_compaction();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(searches, 0);
    const IndexInfo info = index.info();
    EXPECT_GT(info.generation, generation);
    EXPECT_EQ(info.vectors, plain.size());
    EXPECT_LE(info.removed, 100u);
    EXPECT_LE(info.scanned, 100u);
    EXPECT_EQ(info.method, method);
    EXPECT_FALSE(info.measured.empty());
    EXPECT_GE(mean_recall(index, plain, source, 30, options), 0.9);
    index.commit();
    index.verify();
    const Index opened = Index::open(path);
    EXPECT_EQ(opened.attachment("note")->text(), "kept");
    EXPECT_GE(mean_recall(opened, plain, source, 30, options), 0.9);
    EXPECT_EQ(mean_recall(opened, plain, source, 10, {.recall = 1}), 1);
  }
}

// A commit during a compaction: either may win, and nothing is lost.
TEST(SearchChanges, CommitsDuringBackgroundCompactionLoseNothing) {
  const TemporaryFolder folder;
  for (const Method method : kMethods) {
    SCOPED_TRACE(method_name(method));
    const std::string path = folder / method_name(method);
    Clusters source(5, test_seed());
    Plain plain;
    {
      Index made({.width = 5, .metric = Metric::l2});
      plain = fill(made, source, 2500);
      made.build({.method = method});
      made.save(path);
    }
    Index index = Index::open(path, Access::write);
    for (uint64_t id = 0; id < 300; ++id) {
      index.remove(id);
      plain.erase(id);
    }
    index.compact_in_background();
    for (uint64_t id = 300; id < 340; ++id) {
      plain[id] = source.next();
      index.update(id, plain[id]);
      if (id % 10 == 0) index.commit();
    }
    index.wait_for_compaction();
    index.commit();
    index.verify();
    EXPECT_EQ(index.info().vectors, plain.size());
    EXPECT_EQ(mean_recall(index, plain, source, 10, {.recall = 1}), 1);
    EXPECT_EQ(mean_recall(Index::open(path), plain, source, 10, {.recall = 1}), 1);
    EXPECT_EQ(Index::open(path).info().method, method);
  }
}

// Numbers that the type cannot hold are refused, and vectors so long that products of two would be
// infinite. Others are found.
TEST(SearchChanges, LargeNumbers) {
  const TemporaryFolder folder;
  Index small({.width = 3, .metric = Metric::dot, .type = DType::f16});
  EXPECT_THROW(small.add(1, {1, 70000, 0}), Error);
  Index coarse({.width = 3, .type = DType::i8, .rescore = DType::f16});
  EXPECT_THROW(coarse.add(1, {1, -70000, 0}), Error);
  EXPECT_NO_THROW(coarse.add(1, {1, -65504, 0}));
  for (const Method method : kMethods)
    for (const Metric metric : {Metric::dot, Metric::l2, Metric::cosine}) {
      SCOPED_TRACE(std::string(method_name(method)) + " " + metric_name(metric));
      Clusters source(6, test_seed());
      Index index({.width = 6, .metric = metric});
      Plain plain = fill(index, source, 1200);
      const Vector too_long(6, 3e38f);
      EXPECT_THROW(index.add(3000, too_long), Error);
      EXPECT_THROW(index.search(too_long), Error);
      EXPECT_THROW(index.search_within(too_long, 1), Error);
      for (uint64_t id = 2000; id < 2100; ++id) {
        Vector vector = source.next();
        for (float& value : vector) value *= 1e17f;
        index.add(id, vector);
        plain[id] = vector;
      }
      index.build({.method = method});
      index.save(folder / "index");
      const Index opened = Index::open(folder / "index");
      EXPECT_EQ(opened.info().method, method);
      EXPECT_EQ(opened.search(source.next(), {.method = method, .effort = 30}).hits.size(), 10u);
      EXPECT_EQ(mean_recall(opened, plain, source, 10, {.recall = 1}), 1);
    }
}

}  // namespace
}  // namespace prism::search
