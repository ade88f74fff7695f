// Tests that a file is replaced as a whole, and that temporary files are cleaned up.
#include "base/system/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/system/mapped_file.h"
#include "prism/error.h"
#include "support/run_program.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using test::read_file;

class OutputFileTest : public testing::Test {
 protected:
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "file";
};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST_F(OutputFileTest, AppearsWholeOrNotAtAll) {
  write_whole_file(path_, "before");
  {
    OutputFile file(path_);
    file.write(bytes("half"));
    EXPECT_EQ(read_file(path_), "before");
    EXPECT_EQ(files(), 2u);
  }
  EXPECT_EQ(read_file(path_), "before");
  write_whole_file(path_, "after");
  EXPECT_EQ(read_file(path_), "after");
  EXPECT_EQ(files(), 1u) << "no temporary file is left";
}

#ifndef _WIN32
TEST_F(OutputFileTest, RemovesWhatAKilledProcessLeft) {
  test::write_file(path_ + ".prism-0123abcd-0.tmp", "half a file");
  test::write_file(path_ + ".tmp", "of the user");
  test::write_file(folder_ / "other.prism-0123abcd-0.tmp", "of another file");
  OutputFile living(path_);
  EXPECT_EQ(files(), 3u);
  EXPECT_FALSE(fs::exists(path_ + ".prism-0123abcd-0.tmp"));
  living.write(bytes("first"));
  write_whole_file(path_, "second");
  EXPECT_EQ(read_file(path_), "second");
  living.commit();
  EXPECT_EQ(read_file(path_), "first") << "its temporary file was in use, so it was not removed";
}

TEST_F(OutputFileTest, ASignalHandlerCanRemoveTemporaryFiles) {
  OutputFile one(path_), two(folder_ / "other");
  EXPECT_EQ(files(), 2u);
  remove_temporary_files();
  EXPECT_EQ(files(), 0u);
}

TEST_F(OutputFileTest, DevicesAreWrittenAndNeverReplaced) {
  try {
    write_whole_file("/dev/full", "text");
    FAIL() << "a full disk must be an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  write_whole_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFileTest, WritesThroughLinksAndKeepsAccess) {
  write_whole_file(path_, "before");
  fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", folder_.path() / "link");
  write_whole_file(folder_ / "link", "after");
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "link"));
  EXPECT_EQ(read_file(path_), "after");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  write_whole_file(folder_ / "secret", "x", FileKind::owner_only);
  EXPECT_EQ(fs::status(folder_.path() / "secret").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputFileTest, ARecordReplacesALink) {
  write_whole_file(path_, "before");
  fs::create_symlink("file", folder_.path() / "link");
  write_whole_file(folder_ / "link", "after", FileKind::record);
  EXPECT_FALSE(fs::is_symlink(folder_.path() / "link"));
  EXPECT_EQ(read_file(folder_ / "link"), "after");
  EXPECT_EQ(read_file(path_), "before");
}
#endif

#ifndef _WIN32
TEST_F(OutputFileTest, NamesTheMappedFileThatBecameShorter) {
  const std::string source = folder_ / "source";
  write_whole_file(source, std::string(1 << 20, 'x'));
  const MappedFile mapped = map_file(source, MapAccess::read);
  fs::resize_file(source, 0);
  OutputFile file(path_);
  try {
    file.write({mapped.data.get(), mapped.bytes});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("reading " + source + ": the file became shorter"),
              std::string::npos)
        << error.what();
  }
}
#endif

TEST_F(OutputFileTest, FoldersAreErrors) {
  EXPECT_THROW(write_whole_file(folder_.path().string(), "x"), Error);
  EXPECT_THROW(write_whole_file(folder_ / "absent/file", "x"), Error);
}

}  // namespace
}  // namespace prism
