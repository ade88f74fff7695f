// Tests the formats of plain vectors: what is written is read, and malformed files are errors.
#include "search/vector_file.h"

#include <cstring>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "support/run_program.h"

namespace prism::search {
namespace {

std::string bytes_of(std::initializer_list<int32_t> words) {
  std::string text(words.size() * 4, '\0');
  std::memcpy(text.data(), std::data(words), text.size());
  return text;
}

TEST(VectorFile, WrittenFilesAreRead) {
  const test::TemporaryFolder folder;
  const VectorTable table{2, 3, {1, 2, 3, -4, 5.5f, 6}, {}};
  for (const char* name : {"a.npy", "a.fvecs", "a.fbin"}) {
    write_vectors(folder / name, table);
    const VectorTable read = read_vectors(folder / name);
    EXPECT_EQ(read.rows, 2u) << name;
    EXPECT_EQ(read.width, 3u) << name;
    EXPECT_EQ(read.values, table.values) << name;
  }
  // Integers only.
  const VectorTable integers{2, 3, {1, 2, 3, 4, 255, 0}, {}};
  for (const char* name : {"a.bvecs", "a.ivecs"}) {
    write_vectors(folder / name, integers);
    EXPECT_EQ(read_vectors(folder / name).values, integers.values) << name;
    EXPECT_THROW(write_vectors(folder / name, table), Error);
  }
  EXPECT_THROW(write_vectors(folder / "a.txt", table), Error);
  EXPECT_THROW(read_vectors(folder / "a.txt"), Error);
  EXPECT_THROW(read_vectors(folder / "absent.fbin"), Error);
}

TEST(VectorFile, IntegersAndBytes) {
  EXPECT_EQ(parse_vecs("a", bytes_of({2, 7, -8, 2, 9, 10}), ".ivecs").values,
            (std::vector<float>{7, -8, 9, 10}));
  const std::string bytes = bytes_of({3}) + std::string("\x01\xff\x02", 3);
  EXPECT_EQ(parse_vecs("a", bytes, ".bvecs").values, (std::vector<float>{1, 255, 2}));
}

TEST(VectorFile, MalformedFilesAreErrors) {
  for (const std::string& wrong :
       {std::string(), bytes_of({0}), bytes_of({-1, 1}), bytes_of({2, 1}), bytes_of({1, 5, 2, 6})})
    EXPECT_THROW(parse_vecs("a", wrong, ".fvecs"), Error);
  for (const std::string& wrong :
       {std::string("abc"), bytes_of({1, 0}), bytes_of({2, 1, 5}), bytes_of({-1, -1, 5})})
    EXPECT_THROW(parse_fbin("a", wrong), Error);
}

TEST(VectorFile, WrittenFoldersAreRead) {
  const test::TemporaryFolder folder;
  VectorTable table{2, 2, {3, 4, 0, 1}, {"a", "b"}};
  table.fields = {{{"year", 1999}, {"tags", std::vector<std::string>{"x"}}}, {{"share", 0.5}}};
  write_vectors(folder / "set", table);
  const VectorTable read = read_vectors(folder / "set");
  EXPECT_EQ(read.values, table.values);
  EXPECT_EQ(read.ids, table.ids);
  EXPECT_EQ(read.fields, table.fields);
  EXPECT_EQ(read_vectors(folder / "set/embeddings_norms.npy").values, (std::vector<float>{5, 1}));
  write_vectors(folder / "set/embeddings_norms.npy", {1, 2, {5, 2}, {}});
  EXPECT_THROW(read_vectors(folder / "set"), Error);  // of other vectors
}

// The folder of an export that did not end cannot be read, so it is not taken for a whole one.
TEST(VectorFile, HalfAFolderHasNoVectors) {
  const test::TemporaryFolder folder;
  write_vectors(folder / "set", {1, 2, {3, 4}, {Id("old")}, {}});
  std::filesystem::remove(folder / "set/embeddings_meta.json");
  std::filesystem::create_directories(folder / "set/embeddings_meta.json/in the way");
  EXPECT_THROW(write_vectors(folder / "set", {1, 2, {5, 6}, {Id("new")}, {}}), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "set/embeddings.npy"));
}

TEST(VectorFile, FoldersHaveIdsAndFields) {
  const test::TemporaryFolder folder;
  write_vectors(folder / "embeddings.npy", {2, 2, {1, 2, 3, 4}, {}});
  test::write_file(folder / "embeddings_meta.json",
                   R"([{"id": "a", "year": 1999, "tags": ["x"]}, {"id": "b", "share": 0.5}])");
  const VectorTable table = read_vectors(folder.path().string());
  EXPECT_EQ(table.ids, (std::vector<Id>{"a", "b"}));
  EXPECT_EQ(std::get<int64_t>(table.fields[0].at("year")), 1999);
  EXPECT_EQ(std::get<double>(table.fields[1].at("share")), 0.5);
  test::write_file(folder / "embeddings_meta.json", R"(["a", {"id": "b", "size": -1e300}])");
  const VectorTable mixed = read_vectors(folder.path().string());
  ASSERT_EQ(mixed.fields.size(), 2u);
  EXPECT_TRUE(mixed.fields[0].empty());
  EXPECT_EQ(std::get<double>(mixed.fields[1].at("size")), -1e300);
  // A field is a float in all rows or in none, booleans are numbers, and ids have 64 bits.
  test::write_file(folder / "embeddings_meta.json",
                   R"([{"id": 18446744073709551615, "share": 1, "is_new": true},
                       {"id": 9223372036854775809, "share": 0.5, "is_new": false}])");
  const VectorTable wide = read_vectors(folder.path().string());
  EXPECT_EQ(wide.ids, (std::vector<Id>{UINT64_MAX, uint64_t{9223372036854775809u}}));
  EXPECT_EQ(std::get<double>(wide.fields[0].at("share")), 1.0);
  EXPECT_EQ(std::get<int64_t>(wide.fields[0].at("is_new")), 1);
  for (const char* wrong : {R"(["only one"])", "[", R"([{"id": -1}, {"id": 1.5}])", "[true, 1]"}) {
    test::write_file(folder / "embeddings_meta.json", wrong);
    try {
      read_vectors(folder.path().string());
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("embeddings_meta.json: "), std::string::npos)
          << error.what();
    }
  }
  // Numbers that a double would round.
  test::write_file(folder / "embeddings_meta.json",
                   R"([{"id": 18446744073709551615, "hash": 9007199254740993},
                       {"id": 9223372036854775808, "hash": -9223372036854775808}])");
  const VectorTable large = read_vectors(folder.path().string());
  EXPECT_EQ(large.ids, (std::vector<Id>{UINT64_MAX, uint64_t{1} << 63}));
  EXPECT_EQ(std::get<int64_t>(large.fields[0].at("hash")), 9007199254740993);
  EXPECT_EQ(std::get<int64_t>(large.fields[1].at("hash")), INT64_MIN);
  test::write_file(folder / "embeddings_meta.json", R"(["only one"])");
  EXPECT_THROW(read_vectors(folder.path().string()), Error);
}

}  // namespace
}  // namespace prism::search
