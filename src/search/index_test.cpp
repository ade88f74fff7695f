// Tests search::Index: types, filters, changes against a plain map, files and damage to them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/search.h"
#include "support/run_program.h"

namespace prism::search {
namespace {

using test::TemporaryFolder;

std::vector<float> random_vector(uint64_t width, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> vector(width);
  for (float& value : vector) value = normal(random);
  return vector;
}

double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return sum;
}

std::vector<uint64_t> numbers(const SearchResult& result) {
  std::vector<uint64_t> ids;
  for (const Hit& hit : result.hits) ids.push_back(hit.id.number());
  return ids;
}

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& call) {
  try {
    call();
    FAIL() << "no error with " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(SearchIndex, EveryTypeFindsItsOwnVectors) {
  std::mt19937 random(1);
  const uint64_t width = 48, count = 300;
  std::vector<std::vector<float>> vectors;
  for (uint64_t i = 0; i < count; ++i) vectors.push_back(random_vector(width, random));
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::b1})
    for (const Metric metric : {Metric::cosine, Metric::l2, Metric::dot}) {
      for (const bool rescored : {false, true}) {
        if (type == DType::b1 && !rescored) continue;
        IndexOptions options{.width = width, .metric = metric, .type = type};
        if (rescored) options.rescore = DType::f16;
        Index index(options);
        for (uint64_t i = 0; i < count; ++i) index.add(i, vectors[i]);
        for (uint64_t i = 0; i < count; i += 37) {
          if (metric == Metric::dot) continue;  // a longer vector may be nearer
          EXPECT_EQ(index.search(vectors[i], {.k = 1}).hits[0].id, Id(i)) << dtype_name(type);
        }
        const std::vector<float> stored = *index.vector(5);
        const double size = distance(vectors[5], std::vector<float>(width));
        const double most = type == DType::b1 && !rescored ? 2 : 1e-3;
        EXPECT_LT(distance(stored, vectors[5]), most * size) << dtype_name(type);
      }
    }
}

TEST(SearchIndex, Filters) {
  Index index({.width = 2, .metric = Metric::l2});
  for (int i = 0; i < 1000; ++i) {
    Fields fields = {{"n", i}, {"share", i / 1000.0}, {"lang", i % 2 == 0 ? "en" : "de"}};
    if (i % 10 == 0)
      fields.emplace("tags", std::vector<std::string>{"ten", i % 20 == 0 ? "a" : "b"});
    index.add(i, {static_cast<float>(i), 0}, fields);
  }
  const auto first = [&](const std::string& filter, uint64_t k = 3) {
    const float zero[2] = {};
    return numbers(index.search(zero, {.k = k, .filter = Filter::parse(filter)}));
  };
  using Ids = std::vector<uint64_t>;
  EXPECT_EQ(first("n >= 500"), (Ids{500, 501, 502}));
  EXPECT_EQ(first("n > 500 and lang == 'en'"), (Ids{502, 504, 506}));
  EXPECT_EQ(first("not (n < 100 or lang != \"de\")"), (Ids{101, 103, 105}));
  EXPECT_EQ(first("n in (7, 3, 12.0)"), (Ids{3, 7, 12}));
  EXPECT_EQ(first("share >= 0.9985"), (Ids{999}));
  EXPECT_EQ(first("tags == 'b'"), (Ids{10, 30, 50}));
  EXPECT_EQ(first("tags in ('a', 'x')"), (Ids{0, 20, 40}));
  EXPECT_EQ(first("absent == 1"), Ids{});
  EXPECT_EQ(first("lang == 5"), Ids{});
  const float zero[2] = {};
  EXPECT_EQ(numbers(index.search(zero, {.k = 9, .filter = Filter::ids({9, 4, 2000})})),
            (Ids{4, 9}));
  const Filter odd = Filter::where([](const Id& id) { return id.number() % 2 == 1; });
  const Filter later = Filter::none_of(Filter::parse("n < 4"));
  EXPECT_EQ(numbers(index.search(zero, {.k = 2, .filter = Filter::all_of(odd, later)})),
            (Ids{5, 7}));
  for (const char* wrong : {"", "n", "n ==", "n == 1 and", "(n == 1", "n = 1", "n == 'a", "n in 1",
                            "n == 1 2", "and", "n == 12x"})
    expect_error(ErrorCode::kInvalidArgument, "expected", [&] { Filter::parse(wrong); });
}

TEST(SearchIndex, GroupsAndRanges) {
  Index index({.width = 1, .metric = Metric::l2});
  for (int i = 0; i < 100; ++i) index.add(i, {static_cast<float>(i)}, {{"document", i / 40}});
  const float zero[1] = {};
  EXPECT_EQ(numbers(index.search(zero, {.k = 5, .group_by = "document"})),
            (std::vector<uint64_t>{0, 40, 80}));
  EXPECT_EQ(numbers(index.search_within(zero, 9.0f)), (std::vector<uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(numbers(index.search_within(zero, 9.0f, Filter::parse("document > 0"))),
            std::vector<uint64_t>{});
}

TEST(SearchIndex, ManyChangesAgreeWithAMap) {
  std::mt19937 random(7);
  const TemporaryFolder folder;
  const std::string path = folder / "index";
  const uint64_t width = 8;
  Index({.width = width, .metric = Metric::l2}).save(path);
  std::optional<Index> index = Index::open(path, Access::write);
  std::map<uint64_t, std::vector<float>> plain;
  for (int step = 0; step < 10000; ++step) {
    const uint64_t id = random() % 400, kind = random() % 100;
    if (kind < 45) {
      const std::vector<float> vector = random_vector(width, random);
      index->update(id, vector);
      plain[id] = vector;
    } else if (kind < 80) {
      EXPECT_EQ(index->remove(id), plain.erase(id) == 1);
    } else if (kind < 97) {
      const std::vector<float> query = random_vector(width, random);
      std::vector<std::pair<double, uint64_t>> all;
      for (const auto& [each, vector] : plain) all.emplace_back(distance(query, vector), each);
      std::ranges::sort(all);
      const std::vector<uint64_t> found = numbers(index->search(query, {.k = 5}));
      ASSERT_EQ(found.size(), std::min<size_t>(5, all.size()));
      for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], all[i].second) << step;
    } else if (kind == 97) {
      index->commit();
    } else if (kind == 98) {
      index->commit();
      index.reset();
      index = Index::open(path, Access::write);
    } else if (step % 10 == 0) {
      index->compact();
    }
    ASSERT_EQ(index->info().vectors, plain.size());
  }
  index->commit();
  index->verify();
  EXPECT_EQ(Index::open(path).info().vectors, plain.size());
}

TEST(SearchIndex, FilesKeepEverything) {
  const TemporaryFolder folder;
  const std::string path = folder / "index";
  Index made({.width = 3, .type = DType::i8, .rescore = DType::f32, .text_ids = true});
  made.add("a", {1, 2, 3}, {{"year", 1999}, {"tags", std::vector<std::string>{"x", "y"}}});
  made.add("b", {3, 2, 1}, {{"year", 2024}});
  made.add("c", {-1, 0, 1});
  EXPECT_TRUE(made.remove("c"));
  made.save(path);
  Index read = Index::open(path);
  read.verify();
  EXPECT_EQ(read.info().vectors, 2u);
  EXPECT_EQ(*read.vector("a"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(read.search({1, 2, 3}, {.k = 5, .filter = Filter::parse("tags == 'y'")}).hits.size(),
            1u);
  expect_error(ErrorCode::kInvalidArgument, "open for reading", [&] { read.add("d", {1, 1, 1}); });
  {
    Index writer = Index::open(path, Access::write);
    expect_error(ErrorCode::kIo, "another process", [&] { Index::open(path, Access::write); });
    writer.add("d", {0, 1, 0}, {{"year", 2000}});
    EXPECT_TRUE(writer.contains("d"));
    EXPECT_FALSE(Index::open(path).contains("d"));
    writer.commit();
  }
  EXPECT_FALSE(read.contains("d"));
  read.refresh();
  EXPECT_TRUE(read.contains("d"));
}

TEST(SearchIndex, AttachmentsAreCommittedWithTheVectors) {
  const TemporaryFolder folder;
  const std::string path = folder / "index";
  Index made({.width = 2});
  made.attach("first", "one");
  made.save(path);
  const Index reader = Index::open(path);
  const Attachment held = *reader.attachment("first");
  {
    Index writer = Index::open(path, Access::write);
    EXPECT_EQ(writer.attachment("first")->text(), "one");
    writer.attach("second", std::string(100000, 'x'));
    writer.add(1, {1, 0});
    EXPECT_EQ(Index::open(path).attachments(), std::vector<std::string>{"first"});
    writer.commit();
    const uint64_t bytes = writer.info().file_bytes;
    writer.attach("third", "");
    writer.commit();  // writes neither of the others again
    EXPECT_LT(writer.info().file_bytes, bytes + 5000);
    writer.attach("first", std::nullopt);
    writer.compact();
    EXPECT_EQ(writer.attachments(), (std::vector<std::string>{"second", "third"}));
  }
  EXPECT_EQ(held.text(), "one");
  Index again = Index::open(path);
  EXPECT_EQ(again.attachment("second")->bytes, 100000u);
  EXPECT_EQ(again.attachment("third")->bytes, 0u);
  EXPECT_FALSE(again.attachment("first"));
  again.verify();
  expect_error(ErrorCode::kInvalidArgument, "open for reading", [&] { again.attach("a", "b"); });
  std::string wrong = test::read_file(path);
  wrong[wrong.find("xxxx") + 5000] = 'y';
  test::write_file(path, wrong);
  expect_error(ErrorCode::kCorruptFile, "attachment second", [&] { Index::open(path).verify(); });
}

TEST(SearchIndex, BadInputChangesNothing) {
  Index index({.width = 2});
  index.add(1, {1, 0}, {{"n", 5}});
  const auto invalid = ErrorCode::kInvalidArgument;
  expect_error(invalid, "has 3 numbers", [&] { index.add(2, {1, 0, 0}); });
  expect_error(invalid, "finite", [&] { index.add(2, {1, std::nanf("")}); });
  expect_error(invalid, "already", [&] { index.add(1, {0, 1}); });
  expect_error(invalid, "is a text", [&] { index.add("x", {0, 1}); });
  expect_error(invalid, "is of type text", [&] { index.add(2, {0, 1}, {{"n", "five"}}); });
  expect_error(invalid, "a field named", [&] { index.add(2, {0, 1}, {{"a b", 1}}); });
  expect_error(invalid, "has 1 numbers", [&] { index.search({1}); });
  expect_error(invalid, "at most 2048", [&] { index.search({1, 0}, {.k = 5000}); });
  expect_error(invalid, "bits", [] { Index({.width = 2, .metric = Metric::hamming}); });
  EXPECT_EQ(index.info().vectors, 1u);
}

TEST(SearchIndex, DamageIsFound) {
  const TemporaryFolder folder;
  const std::string path = folder / "index";
  Index made({.width = 4});
  for (int i = 0; i < 50; ++i) made.add(i, {1, 2, 3, static_cast<float>(i)}, {{"n", i}});
  made.save(path);
  const std::string right = test::read_file(path);
  for (size_t at = 0; at < right.size(); at += 7) {
    // A byte that nothing covers (a gap between sections) may change.
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
    test::write_file(path, wrong);
    try {
      const Index index = Index::open(path);
      index.verify();
      EXPECT_EQ(right[at], 0) << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
    }
  }
  for (const size_t size : {size_t{0}, size_t{7}, size_t{63}, size_t{4096}, right.size() - 1}) {
    test::write_file(path, right.substr(0, size));
    expect_error(ErrorCode::kCorruptFile, path, [&] { Index::open(path); });
  }
  test::write_file(path, "GGUF and more bytes that are not an index of vectors at all");
  expect_error(ErrorCode::kCorruptFile, "is not an index", [&] { Index::open(path); });
}

}  // namespace
}  // namespace prism::search
