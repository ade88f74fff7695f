// Kills the writer of an index at each of its writes, and fails each of them: the file then holds
// the state before the commit or after it, and the next commit works.
#include <filesystem>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/io.h"
#include "prism/ops/elementwise.h"
#include "prism/search.h"
#include "support/faults/faults.h"
#include "support/paths.h"

namespace prism::test {
namespace {

constexpr uint64_t kBefore = 20, kAfter = 35;

class SearchFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_inject_faults()) GTEST_SKIP() << "a sanitizer replaces the allocator";
    save(more_, ones({static_cast<int64_t>(kAfter - kBefore), 4}, DType::f32, Device::cpu()));
    search::Index index({.width = 4});
    for (uint64_t i = 0; i < kBefore; ++i) index.add(i, {1, 2, 3, static_cast<float>(i)});
    index.save(start_);
  }

  ProgramRun run(const std::vector<std::string>& words) const {
    return {words, {"PRISM_CACHE_DIR=" + folder_ / "cache", "PRISM_BACKENDS=cpu"}};
  }

  void start_anew() const {
    std::filesystem::copy_file(start_, path_, std::filesystem::copy_options::overwrite_existing);
  }

  // Opens the file, compares its checksums and returns the number of vectors.
  uint64_t vectors() const {
    const search::Index index = search::Index::open(path_);
    index.verify();
    const float query[] = {1, 2, 3, 4};
    EXPECT_EQ(index.search(query, {.k = 100}).hits.size(), index.info().vectors);
    return index.info().vectors;
  }

  void attack(const std::vector<std::string>& words, uint64_t after) {
    start_anew();
    const std::map<std::string, std::vector<int64_t>> calls = count_calls(run(words));
    EXPECT_EQ(vectors(), after);
    int runs = 0;
    for (const char* call : {"write", "flush", "change"})
      for (const char* action : {"kill", "ENOSPC", "short"}) {
        if (std::string(action) == "short" && std::string(call) != "write") continue;
        for (const int64_t number : calls.at(call)) {
          const Fault fault{call, number, action};
          SCOPED_TRACE(fault.text());
          start_anew();
          const ProcessResult result = run_with_fault(run(words), fault);
          ++runs;
          const uint64_t now = vectors();
          EXPECT_TRUE(now == kBefore || now == after) << now;
          EXPECT_TRUE(result.status != 0 || now == after) << result.output;
          EXPECT_TRUE(result.status != 1 || result.output.find("error: ") != std::string::npos)
              << result.output;
          EXPECT_EQ(run_with_fault(run(words), {}).status, 0);
          vectors();
        }
      }
    EXPECT_GT(runs, 6);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "index", start_ = folder_ / "start",
                    more_ = folder_ / "more.npy";
};

TEST_F(SearchFaults, Add) { attack({"vectors", "add", path_, more_}, kAfter); }

TEST_F(SearchFaults, Remove) { attack({"vectors", "remove", path_, "3", "4", "5"}, kBefore - 3); }

TEST_F(SearchFaults, Compact) { attack({"vectors", "compact", path_}, kBefore); }

}  // namespace
}  // namespace prism::test
