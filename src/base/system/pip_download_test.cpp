// Tests pip_download with a shell script as pip, which writes its wheel in two steps.
#include "base/system/pip_download.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <mutex>

#include "support/run_program.h"

namespace prism {
namespace {

TEST(PipDownload, ReadsTheSizeThatPipPrints) {
  EXPECT_EQ(pip_size("  Downloading x-1-py3-none-any.whl (92.9 MB)"), 92900000u);
  EXPECT_EQ(pip_size("Downloading x.whl (512 kB)"), 512000u);
  EXPECT_EQ(pip_size("Saved ./x.whl"), 0u);
  EXPECT_EQ(pip_size("Downloading x.whl"), 0u);
}

TEST(PipDownload, ReportsTheBytesAsTheyArrive) {
  const test::TemporaryFolder folder;
  const std::string python = folder / "python3";
  test::write_file(python,
                   "#!/bin/sh\n"
                   "for word; do last=$before; before=$word; done\n"
                   "echo \"$1\" > \"$0.word\"\n"
                   "echo 'Downloading x.whl (2 kB)'\n"
                   "head -c 1000 /dev/zero > \"$TMPDIR/half\"\n"
                   "sleep 0.7\n"
                   "head -c 2000 /dev/zero > \"$last/x.whl\"\n"
                   "rm \"$TMPDIR/half\"\n");
  chmod(python.c_str(), 0755);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  const std::string into = folder / "into";
  std::filesystem::create_directories(into);
  std::mutex mutex;
  std::vector<uint64_t> seen;
  const PipResult result =
      pip_download("x==1", into, {.line = {}, .progress = [&](uint64_t done, uint64_t all) {
                                    EXPECT_EQ(all, 2000u);
                                    const std::scoped_lock lock(mutex);
                                    seen.push_back(done);
                                  }});
  setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(result.is_installed && result.is_right) << result.last_line;
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), 1000u) << "the bytes in pip's temporary folder count";
  EXPECT_TRUE(std::filesystem::exists(into + "/x.whl"));
  // Isolated: neither the current folder nor PYTHONPATH can replace pip.
  EXPECT_EQ(test::read_file(python + ".word"), "-I\n");
}

}  // namespace
}  // namespace prism
