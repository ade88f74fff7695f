// Tests indexes on every device: real vectors against faiss and float64, every type, filters,
// changes, lists, and memory that is too small.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "base/system/input_file.h"
#include "prism/device.h"
#include "prism/error.h"
#include "prism/search.h"
#include "support/devices/devices.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/seed.h"
#include "tensor/storage.h"

namespace prism::search {
namespace {

using test::TemporaryFolder;

void on_every_device(const std::function<void(const Device&)>& run) {
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      SCOPED_TRACE(device.id());
      run(device);
    }
}

struct RealSet {
  uint64_t width = 0;
  std::vector<float> rows, queries;  // queries: those of faiss, in its order
};

// GloVe: two i32, then f32 rows. SIFT: text with tabs.
RealSet read_set(const std::string& name) {
  const std::filesystem::path data = test::shared_dir() / "data";
  RealSet set;
  const auto add_every = [&](uint64_t step) {
    for (uint64_t r = 0; r < set.rows.size() / set.width; r += step)
      set.queries.insert(set.queries.end(),
                         set.rows.begin() + static_cast<ptrdiff_t>(r * set.width),
                         set.rows.begin() + static_cast<ptrdiff_t>((r + 1) * set.width));
  };
  if (name == "glove") {
    const std::string bytes = read_input_file((data / "glove100-10k.f32").string());
    int32_t header[2];
    std::memcpy(header, bytes.data(), sizeof header);
    set.width = static_cast<uint64_t>(header[1]);
    set.rows.resize((bytes.size() - sizeof header) / sizeof(float));
    std::memcpy(set.rows.data(), bytes.data() + sizeof header, set.rows.size() * sizeof(float));
    add_every(400);
    return set;
  }
  set.width = 128;
  const auto parse = [&](const std::string& text, std::vector<float>& to) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      float value = 0;
      for (int i = 0; i < 128 && words >> value; ++i) to.push_back(value);
    }
  };
  const TemporaryFolder folder;
  const test::ProcessResult text =
      test::run_process({"gzip", "-dc", (data / "sift-5k-128.tsv.gz").string()});
  parse(text.output, set.rows);
  parse(read_input_file((data / "sift-query-3.tsv").string()), set.queries);
  add_every(400);
  return set;
}

double exact_score(Metric metric, std::span<const float> a, std::span<const float> b) {
  double product = 0, apart = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    product += x * y;
    apart += (x - y) * (x - y);
    aa += x * x;
    bb += y * y;
  }
  return metric == Metric::l2    ? apart
         : metric == Metric::dot ? product
                                 : product / std::sqrt(aa * bb);
}

// The ids of faiss (tests/data/search/make_expected.py) and the scores of float64.
TEST(SearchDevice, RealVectorsAgreeWithFaiss) {
  if (!std::filesystem::exists(test::shared_dir() / "data" / "glove100-10k.f32"))
    GTEST_SKIP() << "there is no ../shared/data";
  std::map<std::string, RealSet> sets;
  for (const char* name : {"glove", "sift"}) sets[name] = read_set(name);
  on_every_device([&](const Device& device) {
    std::map<std::string, Index> indexes;
    std::ifstream expected(test::source_dir() / "tests/data/search/expected.txt");
    int lines = 0;
    for (std::string line; std::getline(expected, line); ++lines) {
      std::istringstream words(line);
      std::string name, metric_word;
      uint64_t number = 0, id = 0;
      words >> name >> metric_word >> number;
      const Metric metric = *parse_metric(metric_word);
      const RealSet& set = sets[name];
      auto found = indexes.find(name + metric_word);
      if (found == indexes.end()) {
        Index index({.width = set.width, .metric = metric});
        for (uint64_t r = 0; r < set.rows.size() / set.width; ++r)
          index.add(r, std::span(set.rows).subspan(r * set.width, set.width));
        // A file, so that devices get all rows.
        const TemporaryFolder folder;
        index.save(folder / "index");
        found = indexes.emplace(name + metric_word, Index::open(folder / "index")).first;
        found->second.set_device(device.id());
      }
      const auto query = std::span(set.queries).subspan(number * set.width, set.width);
      const SearchResult result = found->second.search(query, {.k = 10});
      ASSERT_EQ(result.hits.size(), 10u) << line;
      for (const Hit& hit : result.hits) {
        words >> id;
        ASSERT_EQ(hit.id.number(), id) << line;
        const double right =
            exact_score(metric, query, std::span(set.rows).subspan(id * set.width, set.width));
        ASSERT_NEAR(hit.score, right, 2e-6 * std::max(1.0, std::abs(right))) << line;
      }
    }
    EXPECT_GT(lines, 100);
  });
}

std::vector<float> random_vector(uint64_t width, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> vector(width);
  for (float& value : vector) value = normal(random);
  return vector;
}

std::vector<Id> ids(const SearchResult& result) {
  std::vector<Id> all;
  for (const Hit& hit : result.hits) all.push_back(hit.id);
  return all;
}

// The device finds what the CPU finds, before and after changes.
void expect_same(Index& index, const Device& device, std::mt19937& random, SearchOptions options) {
  std::vector<float> queries;
  const uint64_t width = index.info().options.width;
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> query = random_vector(width, random);
    queries.insert(queries.end(), query.begin(), query.end());
  }
  index.set_device("cpu");
  const auto right = index.search_batch(queries, options);
  index.set_device(device.id());
  const auto found = index.search_batch(queries, options);
  for (size_t q = 0; q < right.size(); ++q) EXPECT_EQ(ids(found[q]), ids(right[q])) << found[q].how;
  if (!device.info().is_cpu) {
    EXPECT_NE(found[0].how.find(device.id()), std::string::npos) << found[0].how;
  }
}

TEST(SearchDevice, EveryTypeFiltersAndChanges) {
  std::mt19937 random(3);
  const TemporaryFolder folder;
  on_every_device([&](const Device& device) {
    using Pair = std::pair<DType, Metric>;
    // The conformance suite of the op has all combinations.
    for (const auto& [type, metric] :
         {Pair(DType::f32, Metric::cosine), Pair(DType::f16, Metric::dot),
          Pair(DType::bf16, Metric::l2), Pair(DType::i8, Metric::l2),
          Pair(DType::b1, Metric::hamming)}) {
      SCOPED_TRACE(std::string(dtype_name(type)) + " " + metric_name(metric));
      const std::string path = folder / "index";
      Index made({.width = 40, .metric = metric, .type = type});
      for (uint64_t i = 0; i < 300; ++i)
        made.add(i, random_vector(40, random), {{"n", static_cast<int64_t>(i)}});
      made.save(path);
      Index index = Index::open(path, Access::write);
      expect_same(index, device, random, {});
      expect_same(index, device, random, {.k = 5, .filter = Filter::parse("n >= 250")});
      index.add(1000, random_vector(40, random));
      index.remove(7);
      expect_same(index, device, random, {.k = 20});
      index.commit();
      expect_same(index, device, random, {.k = 20});
    }
  });
}

// Coarse vectors are scanned on the device, and the best ranked by the precise copy: nearly all of
// the nearest are found, with the scores of that copy.
TEST(SearchDevice, CoarseTypesAreRescored) {
  const uint64_t width = 48, rows = 3000, k = 10;
  std::mt19937 random(test_seed());
  struct Case {
    DType type, rescore;
    Metric metric;
    uint64_t oversample;
    double recall;
  };
  for (const Case& each : {Case{DType::i8, DType::f32, Metric::cosine, 8, 0.99},
                           Case{DType::i8, DType::f16, Metric::dot, 8, 0.99},
                           Case{DType::i8, DType::f16, Metric::l2, 8, 0.99},
                           Case{DType::b1, DType::f32, Metric::cosine, 100, 0.85}}) {
    SCOPED_TRACE(std::string(dtype_name(each.type)) + " " + metric_name(each.metric));
    const TemporaryFolder folder;
    std::vector<std::vector<float>> all;
    {
      Index made(
          {.width = width, .metric = each.metric, .type = each.type, .rescore = each.rescore});
      for (uint64_t i = 0; i < rows; ++i) {
        all.push_back(random_vector(width, random));
        made.add(i, all.back());
      }
      made.save(folder / "index");
    }
    Index index = Index::open(folder / "index");
    on_every_device([&](const Device& device) {
      index.set_device(device.id());
      uint64_t found = 0;
      constexpr uint64_t kQueries = 20;
      for (uint64_t q = 0; q < kQueries; ++q) {
        const std::vector<float> query = random_vector(width, random);
        std::vector<std::pair<double, uint64_t>> right;
        for (uint64_t i = 0; i < rows; ++i) {
          const double score = exact_score(each.metric, query, all[i]);
          right.emplace_back(is_distance(each.metric) ? score : -score, i);
        }
        std::ranges::sort(right);
        const SearchResult result = index.search(query, {.k = k, .oversample = each.oversample});
        ASSERT_EQ(result.hits.size(), k);
        EXPECT_NE(result.how.find("rescored"), std::string::npos);
        for (const Hit& hit : result.hits) {
          const uint64_t id = hit.id.number();
          found += std::any_of(right.begin(), right.begin() + k,
                               [&](const auto& one) { return one.second == id; });
          const double exact = exact_score(each.metric, query, all[id]);
          const double tolerance = each.rescore == DType::f16 ? 5e-3 : 1e-5;
          EXPECT_NEAR(hit.score, exact, tolerance * std::max(1.0, std::abs(exact)));
        }
      }
      EXPECT_GE(static_cast<double>(found), each.recall * kQueries * k);
    });
  }
}

TEST(SearchDevice, ListsOnEveryDevice) {
  std::mt19937 random(5);
  on_every_device([&](const Device& device) {
    const TemporaryFolder folder;
    Index made({.width = 12, .metric = Metric::l2});
    for (uint64_t i = 0; i < 1000; ++i) made.add(i, random_vector(12, random));
    made.build({.method = Method::ivf, .lists = 12, .device = device.id()});
    made.save(folder / "index");
    Index index = Index::open(folder / "index");
    uint64_t equal = 0, all = 0;
    for (int i = 0; i < 5; ++i) {
      const std::vector<float> query = random_vector(12, random);
      index.set_device(device.id());
      const SearchResult found = index.search(query, {.method = Method::ivf, .effort = 2});
      EXPECT_NE(found.how.find("ivf, lists 2"), std::string::npos) << found.how;
      index.set_device("cpu");
      const std::vector<Id> right = ids(index.search(query, {.method = Method::ivf, .effort = 2}));
      EXPECT_EQ(ids(found), right);
      const std::vector<Id> exact = ids(index.search(query, {.recall = 1}));
      for (const Id& id : right) equal += std::ranges::find(exact, id) != exact.end();
      all += exact.size();
    }
    EXPECT_GT(equal * 2, all);
  });
}

// Queries of a batch share the lists that they have in common: each finds what it finds alone.
TEST(SearchDevice, BatchesOverLists) {
  std::mt19937 random(test_seed());
  const TemporaryFolder folder;
  using Pair = std::pair<DType, Metric>;
  for (const auto& [type, metric] :
       {Pair(DType::f32, Metric::l2), Pair(DType::i8, Metric::cosine)}) {
    const uint64_t width = 19, rows = 6000, queries = 150;
    {
      Index made({.width = width, .metric = metric, .type = type});
      for (uint64_t i = 0; i < rows; ++i)
        made.add(i, random_vector(width, random), {{"n", static_cast<int64_t>(i)}});
      made.build({.method = Method::ivf, .lists = 60});
      made.save(folder / "index");
    }
    Index index = Index::open(folder / "index");
    std::vector<float> batch;
    for (uint64_t q = 0; q < queries; ++q) {
      const std::vector<float> query = random_vector(width, random);
      batch.insert(batch.end(), query.begin(), query.end());
    }
    for (const char* filter : {"n >= 0", "n >= 2500"}) {
      const SearchOptions options{
          .k = 7, .filter = Filter::parse(filter), .method = Method::ivf, .effort = 3};
      index.set_device("cpu");
      const auto right = index.search_batch(batch, options);
      EXPECT_NE(right[0].how.find("ivf, lists 3"), std::string::npos) << right[0].how;
      on_every_device([&](const Device& device) {
        index.set_device(device.id());
        const auto found = index.search_batch(batch, options);
        for (uint64_t q = 0; q < queries; ++q)
          ASSERT_EQ(ids(found[q]), ids(right[q])) << q << " " << found[q].how;
      });
    }
  }
}

// Parts begin at words of bitmaps, so that rows of an odd end are in two of them.
TEST(SearchDevice, VectorsAddedBetweenSearches) {
  std::mt19937 random(9);
  on_every_device([&](const Device& device) {
    if (device.info().is_cpu) return;
    Index here({.width = 8, .metric = Metric::l2}), there({.width = 8, .metric = Metric::l2});
    there.set_device(device.id());
    uint64_t next = 0;
    const auto add = [&](uint64_t count) {
      for (; count > 0; --count, ++next) {
        const std::vector<float> vector = random_vector(8, random);
        here.add(next, vector);
        there.add(next, vector);
      }
    };
    const auto expect_same_ids = [&](bool uses_cpu) {
      const std::vector<float> query = random_vector(8, random);
      const SearchResult found = there.search(query, {.k = 50});
      EXPECT_EQ(ids(found), ids(here.search(query, {.k = 50})));
      EXPECT_EQ(found.how.find(" and cpu") != std::string::npos, uses_cpu) << found.how;
    };
    add(1001);
    expect_same_ids(false);
    add(37);
    expect_same_ids(true);
    for (uint64_t id = 980; id < 1020; id += 3) {
      here.remove(id);
      there.remove(id);
    }
    expect_same_ids(true);
    add(9000);
    expect_same_ids(true);
    expect_same_ids(false);
    add(66000);
    expect_same_ids(false);
  });
}

TEST(SearchDevice, WhatDoesNotFitIsScannedOnTheCpu) {
  std::mt19937 random(7);
  on_every_device([&](const Device& device) {
    if (device.info().is_cpu) return;
    const TemporaryFolder folder;
    {
      Index made({.width = 4, .metric = Metric::l2});
      for (uint64_t i = 0; i < 200000; ++i) made.add(i, random_vector(4, random));
      made.build({.method = Method::ivf, .lists = 40});
      made.save(folder / "index");
    }
    Index index = Index::open(folder / "index");
    const MemoryStats before = memory_stats(device);
    // Two parts of 65,536 vectors need 2 MiB, all of them 3.2 MB.
    set_memory_limit(device, before.in_use_bytes + (uint64_t{5} << 19));
    const std::vector<float> query = random_vector(4, random);
    for (const SearchOptions& options :
         {SearchOptions{.recall = 1}, SearchOptions{.method = Method::ivf, .effort = 8}}) {
      index.set_device("cpu");
      const std::vector<Id> right = ids(index.search(query, options));
      index.set_device(device.id());
      const SearchResult found = index.search(query, options);
      EXPECT_EQ(ids(found), right);
      EXPECT_NE(found.how.find(device.id() + " and cpu"), std::string::npos) << found.how;
    }
    set_memory_limit(device, 0);
  });
}

}  // namespace
}  // namespace prism::search
