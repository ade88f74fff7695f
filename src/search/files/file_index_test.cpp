#include <filesystem>

#include <gtest/gtest.h>

#include "base/json.h"
#include "prism/error.h"
#include "prism/file_search.h"
#include "search/files/search_json.h"
#include "support/run_program.h"
#include "support/word_embedder.h"

namespace prism::search {
namespace {

namespace fs = std::filesystem;

class FileIndexTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    test::write_file(root_ / name, text);
  }
  UpdateResult update(const UpdateOptions& options = {}) const {
    return FileIndex::open_or_create(path_).update({root_.string()}, options);
  }
  FileSearchResult search(const std::string& question,
                          const FileSearchOptions& options = {}) const {
    return FileIndex::open(path_).search(question, options);
  }
  // The names of the files found, in order.
  std::string found(const std::string& question, const FileSearchOptions& options = {}) const {
    std::string names;
    for (const FoundPassage& each : search(question, options).passages)
      names += (names.empty() ? "" : " ") + fs::path(each.path).filename().string();
    return names;
  }
  static void expect_error(ErrorCode code, const std::string& part, const auto& action) {
    try {
      action();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path() / "files";
  const std::string path_ = folder_ / "an.index";
};

TEST_F(FileIndexTest, FindsByWords) {
  write("cake.md", "# Cakes\n\nA cake without eggs needs apple sauce.\n");
  write("cache.cpp", "// Drops entries.\nvoid invalidateCache(int key) {\n  erase(key);\n}\n");
  write("data.bin", std::string("a\0b", 3));
  const UpdateResult done = update();
  EXPECT_EQ(done.files, 2u);
  EXPECT_EQ(done.changed, 2u);
  EXPECT_EQ(done.binary, 1u);
  EXPECT_EQ(found("where is the cache invalidated?"), "cache.cpp");
  EXPECT_EQ(found("eggs"), "cake.md");
  EXPECT_EQ(found("data"), "");
  const FoundPassage hit = search("invalidated cache").passages[0];
  EXPECT_EQ(hit.best_line, 2u);
  EXPECT_EQ(hit.kind, ContentKind::code);
  ASSERT_FALSE(hit.marks.empty());
  EXPECT_EQ(hit.text.substr(hit.marks[0].begin, hit.marks[0].end - hit.marks[0].begin),
            "invalidate");
  EXPECT_EQ(found("cake cache", {.only = ContentKind::text}), "cake.md");
  EXPECT_EQ(found("cake cache", {.under = (root_ / "cache.cpp").string()}), "cache.cpp");
  expect_error(ErrorCode::kInvalidArgument, "empty", [&] { search("  "); });
}

TEST_F(FileIndexTest, FollowsChanges) {
  uint64_t embedded = 0;
  const PassageEmbedder embedder = test::word_embedder(&embedded);
  const UpdateOptions options{.embedder = &embedder};
  write("a.txt", "apples and pears\n");
  write("b.txt", "boats on a river\n");
  EXPECT_EQ(update(options).embedded, 2u);
  EXPECT_EQ(update(options).changed, 0u);
  EXPECT_EQ(embedded, 2u);
  // A changed file is embedded, a moved one is not.
  write("a.txt", "apples and plums\n");
  fs::rename(root_ / "b.txt", root_ / "c.txt");
  const UpdateResult done = update(options);
  EXPECT_EQ(done.changed, 2u);
  EXPECT_EQ(done.removed, 1u);
  EXPECT_EQ(embedded, 3u);
  EXPECT_EQ(found("pears"), "");
  EXPECT_EQ(found("river"), "c.txt");
  EXPECT_EQ(FileIndex::open(path_).info().vectors, 2u);
  // The result says that the file has changed since.
  write("a.txt", "apples only\n");
  fs::remove(root_ / "c.txt");
  EXPECT_EQ(search("apples").passages[0].freshness, Freshness::changed);
  EXPECT_EQ(search("plums").passages[0].text, "apples and plums");
  EXPECT_EQ(search("river").passages[0].freshness, Freshness::missing);
}

TEST_F(FileIndexTest, VectorsFindOtherWords) {
  const PassageEmbedder embedder = test::word_embedder();
  write("vehicles.txt", "The automobile stands there\n");
  write("garden.txt", "The rose grows there\n");
  write("rust.txt", "A rusty bicycle stands there\n");
  update({.embedder = &embedder});
  FileSearchOptions options{.count = 1, .embedder = &embedder};
  EXPECT_EQ(found("car", {.count = 1}), "");
  options.ranking = Ranking::vectors;
  EXPECT_EQ(found("car", options), "vehicles.txt");
  options.ranking = Ranking::hybrid;
  EXPECT_EQ(found("car", options), "vehicles.txt");
  EXPECT_EQ(search("car", options).ranking, Ranking::hybrid);
  const FoundPassage both = search("automobile", options).passages[0];
  EXPECT_EQ(both.word_rank, 1u);
  EXPECT_EQ(both.vector_rank, 1u);
  EXPECT_NEAR(both.score, 2.0 / 61, 1e-9);
  options.under = (root_ / "garden.txt").string();
  EXPECT_EQ(found("car", options), "garden.txt");
}

TEST_F(FileIndexTest, OneFileDoesNotFillThePage) {
  std::string many;
  for (int i = 0; i < 40; ++i)
    many += "# Part " + std::to_string(i) + "\n\nAn owl " + std::string(200, 'x') +
            std::to_string(i) +
            " and much more text about one owl in the night that is long enough to be a passage of "
            "its own, since short ones are joined.\n\n";
  write("owls.md", many);
  write("one.md", "An owl.\n");
  write("same.md", "An owl.\n");
  update();
  EXPECT_EQ(search("owl").passages.size(), 3u);
  EXPECT_EQ(search("owl", {.count = 30, .per_file = 50}).passages.size(), 30u);
}

TEST_F(FileIndexTest, GoesOnAfterAnInterrupt) {
  const PassageEmbedder embedder = test::word_embedder();
  for (int i = 0; i < 600; ++i) write(std::to_string(i) + ".txt", "number " + std::to_string(i));
  uint64_t calls = 0;
  UpdateResult done = update({.embedder = &embedder, .progress = [&](const UpdateProgress& now) {
                                ++calls;
                                return now.embedded == 0;
                              }});
  EXPECT_FALSE(done.is_complete);
  EXPECT_EQ(done.embedded, 256u);
  EXPECT_GT(calls, 600u);
  EXPECT_EQ(found("599"), "599.txt");  // words come first
  done = update({.embedder = &embedder});
  EXPECT_TRUE(done.is_complete);
  EXPECT_EQ(done.changed, 0u);
  EXPECT_EQ(done.embedded, 344u);
  // Ended while files are read: what was read stays, and nothing is taken for removed.
  write("new.txt", "a new one");
  done = update({.progress = [](const UpdateProgress& now) { return now.files_done < 100; }});
  EXPECT_FALSE(done.is_complete);
  EXPECT_EQ(FileIndex::open(path_).info().files, 600u);
  EXPECT_EQ(update().changed, 1u);
}

TEST_F(FileIndexTest, AnIndexOfWordsGetsVectorsLater) {
  write("a.txt", "one automobile\n");
  update();
  EXPECT_EQ(FileIndex::open(path_).info().embedder, "");
  PassageEmbedder embedder = test::word_embedder();
  EXPECT_EQ(search("car", {.embedder = &embedder}).ranking, Ranking::words);
  EXPECT_EQ(update({.embedder = &embedder}).embedded, 1u);
  EXPECT_EQ(found("car", {.embedder = &embedder}), "a.txt");
  EXPECT_EQ(found("one"), "a.txt");
  embedder.name = "another";
  expect_error(ErrorCode::kInvalidArgument, "cannot be compared",
               [&] { update({.embedder = &embedder}); });
  expect_error(ErrorCode::kInvalidArgument, "made by words",
               [&] { search("car", {.embedder = &embedder}); });
  EXPECT_EQ(found("one"), "a.txt");
}

TEST_F(FileIndexTest, ManyUpdatesStaySmall) {
  write("a.txt", "start\n");
  write("still.txt", "unchanged words\n");
  for (int i = 0; i < 40; ++i) {
    write("a.txt", "version " + std::to_string(i) + " unique" + std::to_string(i) + "\n");
    if (i == 20) fs::remove(root_ / "still.txt");
    update();
  }
  EXPECT_EQ(found("39"), "a.txt");
  EXPECT_EQ(found("38"), "");
  EXPECT_EQ(found("unchanged"), "");
  EXPECT_LT(fs::file_size(path_), 2u << 20);
  Index::open(path_).verify();
}

TEST_F(FileIndexTest, TwoWritersAndForeignFiles) {
  write("a.txt", "text\n");
  update();
  const FileIndex writer = FileIndex::open(path_, Access::write);
  expect_error(ErrorCode::kIo, "another process", [&] { update(); });
  EXPECT_EQ(found("text"), "a.txt");  // readers are not disturbed
  Index({.width = 2}).save(folder_ / "plain");
  expect_error(ErrorCode::kCorruptFile, "plain vectors",
               [&] { FileIndex::open(folder_ / "plain"); });
  expect_error(ErrorCode::kNotFound, "none", [&] { FileIndex::open(folder_ / "none"); });
}

TEST_F(FileIndexTest, BadFiles) {
  write("latin.txt", "caf\xe9 au lait, a long enough text so that one byte is rare\n");
  write("min.js", std::string(300000, 'a'));
  write("large.txt", std::string(5 << 20, '\n'));
  write("empty.txt", "");
  write("blank.txt", " \n\n\t\n");
  write("windows.txt", "first\r\nsecond line\r\n");
  fs::create_directories(root_ / "closed");
  write("closed/b.txt", "hidden away\n");
  UpdateResult done = update();
  EXPECT_EQ(done.minified, 1u);
  EXPECT_EQ(done.large, 1u);
  EXPECT_EQ(found("lait"), "latin.txt");
  EXPECT_EQ(search("second").passages[0].text, "first\nsecond line");
  // A folder that cannot be read for now keeps its entries.
  fs::permissions(root_ / "closed", fs::perms::none);
  done = update();
  fs::permissions(root_ / "closed", fs::perms::owner_all);
  EXPECT_EQ(found("hidden"), "b.txt");
  EXPECT_EQ(done.removed, 0u);
}

TEST_F(FileIndexTest, DamagedCataloguesAreRefused) {
  write("a.txt", "some words to find here\n");
  write("b.cpp", "int some_function() { return 1; }\n");
  update();
  const Index right = Index::open(path_);
  for (const std::string& name : right.attachments()) {
    const std::string bytes(right.attachment(name)->text());
    for (size_t at = 0; at < bytes.size(); at += at < 64 ? 1 : 11) {
      std::string wrong = bytes;
      wrong[at] = static_cast<char>(wrong[at] ^ (at % 2 == 0 ? 0xff : 0x01));
      Index made({.width = 1});
      for (const std::string& each : right.attachments())
        made.attach(each, each == name ? wrong : std::string(right.attachment(each)->text()));
      const std::string path = folder_ / "wrong";
      made.save(path);
      try {
        FileIndex::open(path).search("some words function");
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
      }
    }
  }
}

TEST_F(FileIndexTest, JsonHasAllOfIt) {
  write("a.txt", "one line\n");
  update();
  const Json json = result_json(search("line"));
  const JsonView top(json);
  EXPECT_EQ(top["ranking"].string(), "words");
  const JsonView first = top["results"].items().at(0);
  EXPECT_EQ(first["line"].integer(), 1);
  EXPECT_EQ(first["text"].string(), "one line");
  EXPECT_EQ(first["freshness"].string(), "fresh");
  EXPECT_EQ(first["marks"].items().size(), 1u);
}

}  // namespace
}  // namespace prism::search
