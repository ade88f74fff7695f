// Attacks everything that reads an index of vectors or a file of vectors with mutated files. Each
// run must end with results or with an Error; never with a crash, a hang or a large allocation.
//
// Half of the files have right checksums, as a hostile writer would make them.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prism/error.h"
#include "prism/search.h"
#include "search/checksum.h"
#include "search/index_file.h"
#include "search/vector_file.h"
#include "support/attack_rounds.h"
#include "support/run_program.h"

namespace prism::search {
namespace {

using nlohmann::json;

constexpr uint64_t kWidth = 9;

std::vector<float> some_vector(std::mt19937_64& random) {
  std::vector<float> vector(kWidth);
  for (float& each : vector) each = static_cast<float>(random() % 2001) / 1000 - 1;
  return vector;
}

// A file with two segments, removed vectors and fields of every type.
void write_index_file(const std::string& path, const IndexOptions& options) {
  std::mt19937_64 random(7);
  const auto id = [&](int number) {
    return options.text_ids ? Id("name " + std::to_string(number)) : Id(number);
  };
  const auto add = [&](Index& index, int number) {
    index.add(id(number), some_vector(random),
              {{"year", 1990 + number},
               {"share", 0.25 * number},
               {"lang", number % 2 == 0 ? "en" : "de"},
               {"tags", std::vector<std::string>{"a", std::to_string(number)}}});
  };
  Index index(options);
  for (int i = 0; i < 40; ++i) add(index, i);
  index.save(path);
  Index opened = Index::open(path, Access::write);
  for (int i = 40; i < 50; ++i) add(opened, i);
  for (const int i : {3, 39, 44}) opened.remove(id(i));
  opened.commit();
}

class IndexAttack : public testing::Test {
 protected:
  uint64_t below(uint64_t count) { return random_() % count; }

  uint64_t unusual() {
    const uint64_t values[] = {0,
                               1,
                               below(100),
                               UINT64_MAX - below(3),
                               (UINT64_MAX >> 1) + below(3),
                               uint64_t{1} << below(64),
                               random_(),
                               std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN())};
    return values[below(std::size(values))];
  }

  void change_bytes(std::string& file) {
    for (uint64_t i = 1 + below(4); i > 0; --i) {
      const uint64_t value = unusual(), bytes = 1 + below(8);
      const uint64_t at = below(file.size());
      std::memcpy(file.data() + at, &value, std::min<uint64_t>(bytes, file.size() - at));
    }
  }

  // Replaces a value of the directory; counts, places, names and types.
  void change_json(json& value) {
    if ((value.is_object() || value.is_array()) && !value.empty() && below(16) != 0) {
      auto chosen = value.begin();
      std::advance(chosen, static_cast<ptrdiff_t>(below(value.size())));
      if (below(24) == 0 && value.is_array()) return value.push_back(json(*chosen));
      if (below(24) == 0 && value.is_array()) {
        value.erase(chosen);
        return;
      }
      return change_json(*chosen);
    }
    if (value.is_number_integer() && below(3) != 0)
      value = value.get<uint64_t>() + below(129) - 64;
    else if (value.is_number_integer())
      value = unusual() >> below(64);
    else if (value.is_string() && below(2) == 0)
      value = std::vector<std::string>{
          "",   "vectors", "ids",     "alive", "id_bytes", "f16",
          "b1", "i8",      "hamming", "l2",    "dot",      "field"}[below(12)];
    else
      value = below(2) == 0 ? json(nullptr) : json(below(3));
  }

  // Puts a changed directory behind everything else, with right checksums.
  std::string with_directory(std::string file, const std::function<void(json&)>& change) {
    Root root = newest_root("original", file);
    const std::string text = file.substr(root.directory_at, root.directory_bytes);
    json directory = json::parse(text);
    change(directory);
    const std::string changed = directory.dump();
    root.directory_at = (file.size() + 63) / 64 * 64;
    file.resize(root.directory_at);
    file += changed;
    root.directory_bytes = changed.size();
    root.directory_checksum = checksum(std::as_bytes(std::span(changed)));
    root.end = file.size();
    ++root.generation;
    const auto bytes = std::as_bytes(std::span(&root, 1));
    root.own_checksum = checksum(bytes.first(sizeof(Root) - sizeof(uint64_t)));
    std::memcpy(file.data(), &root, sizeof root);
    return file;
  }

  std::string mutated(const std::string& file) {
    std::string made = file;
    switch (below(4)) {
      case 0:
        change_bytes(made);
        return made;
      case 1:
        return made.substr(0, below(made.size()));
      case 2:
        change_bytes(made);  // with sections that are damaged, the directory is not
        try {
          return with_directory(made, [](json&) {});
        } catch (const std::exception&) {  // a header that is damaged itself
          return made;
        }
      default:
        return with_directory(made, [&](json& directory) {
          for (uint64_t i = 1 + below(2); i > 0; --i) change_json(directory);
        });
    }
  }

  bool step(const std::function<void()>& work) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      ++refused_;
      EXPECT_GT(std::string(error.what()).size(), 10u);
      return false;
    }
  }

  void use(const std::string& path) {
    std::optional<Index> index;
    if (!step([&] { index = Index::open(path); })) return;
    const IndexInfo info = index->info();
    EXPECT_LT(info.vectors, 10000u);
    step([&] { index->verify(); });
    const std::vector<float> query(info.options.width, 0.5f);
    step([&] { (void)index->search(query, {.k = 5}); });
    step([&] { (void)index->search(query, {.k = 3, .group_by = "lang"}); });
    step([&] {
      const Filter filter = Filter::parse(
          "year > 2000 and share < 9 and (lang == \"en\" or tags in (\"a\")) and not (year == 1)");
      (void)index->search(query, {.k = 5, .filter = filter});
    });
    step([&] { (void)index->search_within(query, 0.5f); });
    step([&] {
      (void)index->contains(info.options.text_ids ? Id("name 5") : Id(5));
      index->each([](const Id& id, std::span<const float>) { (void)id.shown(); });
    });
    index.reset();
    step([&] {
      Index written = Index::open(path, Access::write);
      written.compact();
    });
    ++accepted_;
  }

  test::TemporaryFolder folder_;
  std::mt19937_64 random_{20260102};
  int64_t refused_ = 0, accepted_ = 0;
};

TEST_F(IndexAttack, IndexFiles) {
  const IndexOptions kinds[] = {
      {.width = kWidth, .metric = Metric::cosine, .type = DType::i8},
      {.width = kWidth, .metric = Metric::l2, .type = DType::f16, .text_ids = true},
      {.width = kWidth, .metric = Metric::dot, .type = DType::b1, .rescore = DType::f32}};
  const std::string path = folder_ / "mutated";
  for (const IndexOptions& options : kinds) {
    write_index_file(folder_ / "original", options);
    const std::string original = test::read_file(folder_ / "original");
    for (int64_t round = 0; round < test::attack_rounds(150); ++round) {
      test::write_file(path, mutated(original));
      try {
        use(path);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      if (HasFailure()) FAIL() << metric_name(options.metric) << ", round " << round;
    }
  }
  EXPECT_GT(refused_, 0);
  EXPECT_GT(accepted_, 0);
}

// A directory of some kilobytes could else claim any number of vectors.
TEST_F(IndexAttack, SectionsThatShareBytesAreRefused) {
  const std::string path = folder_ / "index";
  write_index_file(path, {.width = kWidth});
  const std::string original = test::read_file(path);
  test::write_file(path, with_directory(original, [](json&) {}));
  EXPECT_EQ(Index::open(path).info().vectors, 47u);
  test::write_file(path, with_directory(original, [](json& directory) {
                     json& segments = directory["segments"];
                     for (int i = 0; i < 1000; ++i) segments.push_back(json(segments[0]));
                   }));
  EXPECT_THROW(Index::open(path), Error);
}

TEST_F(IndexAttack, FilesOfVectors) {
  std::vector<float> values;
  for (int i = 0; i < 12; ++i)
    for (const float each : some_vector(random_)) values.push_back(each);
  const VectorTable table{12, kWidth, values, {}, {}};
  const std::string described =
      R"([{"id": "a", "year": 1e300, "tags": ["x"]}, {"id": "b", "share": 0.5}, "c"])";
  for (const std::string name : {"a.npy", "a.fvecs", "a.fbin", "a.bvecs", "a.ivecs"}) {
    const std::string path = folder_ / name;
    const bool is_read_only = name.ends_with(".bvecs") || name.ends_with(".ivecs");
    write_vectors(is_read_only ? folder_ / "a.fvecs" : path, table);
    const std::string original = test::read_file(is_read_only ? folder_ / "a.fvecs" : path);
    for (int64_t round = 0; round < test::attack_rounds(100); ++round) {
      std::string made = original;
      if (below(4) == 0)
        made.resize(below(made.size()));
      else
        change_bytes(made);
      test::write_file(path, made);
      std::string meta = described;
      change_bytes(meta);
      const auto attempt = [&](const std::function<void()>& work) {
        try {
          step(work);
        } catch (const std::exception& error) {
          ADD_FAILURE() << name << ", round " << round << ": " << error.what();
        }
      };
      attempt([&] {
        const VectorTable read = read_vectors(path);
        EXPECT_EQ(read.values.size(), read.rows * read.width);
        EXPECT_LE(read.rows, 10000u);
      });
      attempt([&] {
        VectorTable three{3, 1, {1, 2, 3}, {}, {}};
        parse_meta("meta", meta, three);
        EXPECT_EQ(three.ids.size(), 3u);
      });
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(refused_, 0);
}

}  // namespace
}  // namespace prism::search
