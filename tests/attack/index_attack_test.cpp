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

#include <fmt/format.h>
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
constexpr uint64_t kMethodRows = 1000;  // the fewest that get a graph or lists

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

  // Replaces the content of a section, with right checksums.
  std::string with_section(std::string file, const std::string& name, const std::string& content) {
    file.resize((file.size() + 63) / 64 * 64);
    const uint64_t at = file.size();
    file += content;
    return with_directory(file, [&](json& directory) {
      for (json& section : directory["segments"][0]["sections"])
        if (section["name"] == name) {
          section["at"] = at;
          section["bytes"] = content.size();
          section["checksum"] = fmt::format("{:x}", checksum(std::as_bytes(std::span(content))));
        }
    });
  }

  // The sections of a method: name and content.
  static std::vector<std::pair<std::string, std::string>> method_sections(const std::string& file) {
    const Root root = newest_root("original", file);
    const json directory = json::parse(file.substr(root.directory_at, root.directory_bytes));
    std::vector<std::pair<std::string, std::string>> all;
    for (const json& section : directory["segments"][0]["sections"]) {
      const auto name = section["name"].get<std::string>();
      if (name.starts_with("graph ") || name.starts_with("ivf "))
        all.emplace_back(name, file.substr(section["at"], section["bytes"]));
    }
    return all;
  }

  // Numbers that a section of links, rows, lists or centers could use to lead a search astray.
  void change_numbers(std::string& content) {
    const uint64_t words = content.size() / 4;
    if (words == 0) return;
    const uint64_t begin = below(words), most = below(3) == 0 ? words - begin : 1 + below(70);
    for (uint64_t i = begin; i < std::min(words, begin + most); ++i) {
      const uint64_t values[] = {0,          i,          kMethodRows - 1,   kMethodRows,
                                 UINT32_MAX, 0x7fffffff, 0x80000000,        0x7f800000,
                                 0x7fc00000, unusual(),  below(kMethodRows)};
      const auto value = static_cast<uint32_t>(values[below(std::size(values))]);
      std::memcpy(content.data() + i * 4, &value, 4);
    }
  }

  std::string with_method_changed(const std::string& file) {
    const auto sections = method_sections(file);
    const auto& [name, content] = sections[below(sections.size())];
    std::string made = content;
    switch (below(6)) {
      case 0:
        change_bytes(made);
        break;
      case 1: {  // another size
        const uint64_t steps[] = {1, 4, 8, 64, kMethodRows, 4 * kMethodRows, made.size()};
        const uint64_t step = steps[below(std::size(steps))];
        made.resize(below(2) == 0 ? made.size() + step : made.size() - std::min(step, made.size()));
        break;
      }
      case 2:  // what belongs to another section
        made = sections[below(sections.size())].second;
        break;
      case 3:
        if (name.ends_with("curve")) {
          json curve = json::parse(made);
          for (uint64_t i = 1 + below(3); i > 0; --i) change_json(curve);
          made = curve.dump();
          break;
        }
        [[fallthrough]];
      default:
        change_numbers(made);
    }
    std::string result = with_section(file, name, made);
    // Sometimes the directory, too: options, numbers of rows, names.
    if (below(4) == 0) result = with_directory(result, [&](json& each) { change_json(each); });
    return result;
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

  void use_method(const std::string& path, bool compacts) {
    std::optional<Index> index;
    if (!step([&] { index = Index::open(path, Access::write); })) return;
    const IndexInfo info = index->info();
    step([&] { index->verify(); });
    std::vector<float> queries;
    for (uint64_t i = 0; i < 3 * info.options.width; ++i)
      queries.push_back(static_cast<float>(below(2001)) / 1000 - 1);
    const auto search = [&](const SearchOptions& options) {
      step([&] {
        for (const SearchResult& found : index->search_batch(queries, options)) {
          EXPECT_LE(found.hits.size(), options.k);
          for (const Hit& hit : found.hits) (void)hit.id.shown();
        }
      });
    };
    search({});
    search({.k = 2048, .recall = 0.99});
    search({.k = 3, .recall = 0.5, .group_by = "lang"});
    if (info.method != Method::exact) {
      search({.method = info.method});
      for (const uint64_t effort : {uint64_t{1}, uint64_t{30}, uint64_t{1} << 40})
        search({.k = 5, .method = info.method, .effort = effort});
      search({.k = 5, .filter = Filter::parse("year > 2200"), .method = info.method, .effort = 20});
    }
    step([&] {
      index->update(info.options.text_ids ? Id("name 5") : Id(5),
                    std::span(queries).first(info.options.width));
      index->commit();
    });
    search({.k = 5, .method = info.method, .effort = 10});
    if (compacts) step([&] { index->compact(); });
    ++accepted_;
  }

  test::TemporaryFolder folder_;
  std::mt19937_64 random_{20260102 + static_cast<uint64_t>(test::attack_start())};
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

// Graphs and lists whose links, rows, lists, codes, scales and curves are hostile.
TEST_F(IndexAttack, GraphsAndLists) {
  const IndexOptions kinds[] = {
      {.width = kWidth, .metric = Metric::cosine, .type = DType::f16},
      {.width = kWidth, .metric = Metric::dot, .type = DType::b1, .rescore = DType::f32},
      {.width = kWidth, .metric = Metric::l2, .type = DType::i8, .text_ids = true}};
  const std::string path = folder_ / "mutated";
  for (const Method method : {Method::graph, Method::ivf})
    for (const IndexOptions& options : kinds) {
      Index index(options);
      for (uint64_t i = 0; i < kMethodRows; ++i)
        index.add(options.text_ids ? Id("name " + std::to_string(i)) : Id(i), some_vector(random_),
                  {{"year", static_cast<int64_t>(1990 + i)}, {"lang", i % 3 == 0 ? "en" : "de"}});
      index.build({.method = method});
      index.save(folder_ / "original");
      ASSERT_EQ(Index::open(folder_ / "original").info().method, method);
      const std::string original = test::read_file(folder_ / "original");
      for (int64_t round = 0; round < test::attack_rounds(120); ++round) {
        test::write_file(path, with_method_changed(original));
        try {
          use_method(path, round % 20 == 0);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
        if (HasFailure())
          FAIL() << method_name(method) << " " << metric_name(options.metric) << ", round "
                 << round;
      }
    }
  EXPECT_GT(refused_, 100);
  EXPECT_GT(accepted_, 100);
}

// Sizes of sections are computed from the width.
TEST_F(IndexAttack, AWidthOfZeroIsRefused) {
  Index index({.width = kWidth});
  for (uint64_t i = 0; i < kMethodRows; ++i) index.add(i, some_vector(random_));
  index.build({.method = Method::ivf});
  const std::string path = folder_ / "index";
  index.save(path);
  test::write_file(path, with_directory(test::read_file(path), [](json& directory) {
                     directory["width"] = 0;
                     for (json& section : directory["segments"][0]["sections"])
                       if (section["name"] == "vectors") section["bytes"] = 0;
                   }));
  try {
    Index::open(path);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
  }
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
