// Tests the folder of the prompt cache: private files, damage, the limit, and several users.
#include "llm/generate/prompt_store.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/warning.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPlenty = uint64_t{1} << 40;

class PromptStores : public testing::Test {
 protected:
  PromptStores()
      : before_(
            set_warning_handler([this](const std::string& text) { warnings_.push_back(text); })) {}
  ~PromptStores() override { set_warning_handler(before_); }

  // A chain of blocks with two tokens and one layer of 1,000 bytes each.
  struct Chain {
    std::vector<std::string> keys;
    std::vector<std::vector<std::byte>> files;
  };
  Chain chain(size_t count, int32_t first = 0) const {
    Chain made;
    for (size_t i = 0; i < count; ++i) {
      const PromptFile file{layout_,
                            i > 0 ? made.keys.back() : PromptFile::kNoParent,
                            {first, static_cast<int32_t>(i)},
                            {layer_}};
      made.keys.push_back(PromptFile::key(file.layout, file.parent, file.tokens));
      made.files.push_back(file.text());
    }
    return made;
  }
  static void write(PromptStore& store, const Chain& chain) {
    for (size_t i = 0; i < chain.keys.size(); ++i) store.write(chain.keys[i], i, chain.files[i]);
    store.wait();
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& each : fs::directory_iterator(folder_ / "cache")) all.push_back(each.path());
    return all;
  }
  PromptStore open(uint64_t most_bytes = kPlenty) {
    return {folder_ / "cache/", most_bytes, model_, layout_};
  }

  test::TemporaryFolder folder_;
  std::vector<std::byte> layer_ = std::vector<std::byte>(1000, std::byte{7});
  std::string model_ = std::string(32, '1'), layout_ = std::string(64, 'a');
  std::vector<std::string> warnings_;
  WarningHandler before_;
};

TEST_F(PromptStores, FilesSurviveTheirWriter) {
  const Chain all = chain(3);
  {
    PromptStore store = open();
    for (size_t i = 0; i < 3; ++i) store.write(all.keys[i], i, all.files[i]);
  }
  ASSERT_EQ(files().size(), 3u);
  for (const fs::path& each : files())
    EXPECT_EQ(fs::status(each).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(folder_ / "cache").permissions(), fs::perms::owner_all);
  PromptStore store = open();
  EXPECT_TRUE(store.has(all.keys[2]));
  EXPECT_FALSE(store.has(chain(1, 9).keys[0]));
  const auto read = store.read(all.keys[1], 1, kPlenty);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->file.parent, all.keys[0]);
  EXPECT_TRUE(std::ranges::equal(read->file.layers[0], layer_));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(PromptStores, DamagedFilesAreRemovedWithOneWarning) {
  const Chain all = chain(4);
  PromptStore store = open();
  write(store, all);
  const auto file_of = [&](size_t i) {
    for (const fs::path& each : files())
      if (each.string().find(all.keys[i]) != std::string::npos) return each;
    return fs::path();
  };
  fs::resize_file(file_of(0), 100);
  test::write_file(file_of(1), "");
  // A whole file under the name of another one.
  fs::copy_file(file_of(2), file_of(3), fs::copy_options::overwrite_existing);
  for (const size_t i : {0, 1, 3}) {
    EXPECT_FALSE(store.read(all.keys[i], i, kPlenty).has_value());
    EXPECT_FALSE(store.has(all.keys[i])) << i;
  }
  EXPECT_TRUE(store.read(all.keys[2], 2, kPlenty).has_value());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("was removed"), std::string::npos) << warnings_[0];
  // Larger than any block of the model.
  EXPECT_FALSE(store.read(all.keys[2], 2, 500).has_value());
}

TEST_F(PromptStores, FilesOfAnotherLayoutAreNotUsed) {
  {
    PromptStore store = open();
    write(store, chain(2));
  }
  const std::vector<std::string> keys = chain(2).keys;
  layout_ = std::string(64, 'b');
  PromptStore store = open();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("2 files"), std::string::npos) << warnings_[0];
  EXPECT_FALSE(store.has(keys[0]));
  EXPECT_FALSE(store.read(keys[0], 0, kPlenty).has_value());
  model_ = std::string(32, '2');
  const PromptStore other = open();
  EXPECT_EQ(warnings_.size(), 1u);  // the files of other models are their own
}

TEST_F(PromptStores, TheLeastRecentlyUsedAreRemovedFromTheirEnd) {
  const Chain old = chain(3), young = chain(3, 1), third = chain(2, 2);
  const uint64_t bytes = old.files[0].size();
  PromptStore store = open(6 * bytes);
  write(store, old);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // later than the order of blocks
  write(store, young);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(store.read(old.keys[0], 0, kPlenty).has_value());
  write(store, third);
  EXPECT_EQ(files().size(), 6u);
  EXPECT_TRUE(store.has(old.keys[0]));
  EXPECT_FALSE(store.has(old.keys[1]));
  EXPECT_FALSE(store.has(old.keys[2]));
  for (const std::string& each : young.keys) EXPECT_TRUE(store.has(each));
  // A smaller limit applies at once.
  const PromptStore smaller = open(2 * bytes);
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(PromptStores, SeveralProcessesShareTheFolder) {
  PromptStore one = open(), two = open();
  const Chain all = chain(20);
  for (size_t i = 0; i < 20; ++i) {
    one.write(all.keys[i], i, all.files[i]);
    two.write(all.keys[i], i, all.files[i]);
  }
  one.wait();
  two.wait();
  EXPECT_EQ(files().size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_TRUE(two.read(all.keys[i], i, kPlenty).has_value());
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(PromptStores, AFolderThatOthersWriteIsRefused) {
  fs::create_directory(folder_ / "cache");
  fs::permissions(folder_ / "cache", fs::perms::all);
  EXPECT_THROW(open(), Error);
  fs::permissions(folder_ / "cache", fs::perms::owner_all);
  EXPECT_NO_THROW(open());
  test::write_file(folder_ / "file", "x");
  EXPECT_THROW(PromptStore(folder_ / "file", kPlenty, model_, layout_), Error);
}

TEST_F(PromptStores, AFolderThatVanishesEndsTheWritingWithOneWarning) {
  PromptStore store = open();
  fs::remove_all(folder_ / "cache");
  write(store, chain(3));
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(store.is_full());
  EXPECT_FALSE(store.has(chain(1).keys[0]));
}

}  // namespace
}  // namespace prism::llm
