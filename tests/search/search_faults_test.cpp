// Kills the writer of an index at each of its writes, and fails each of them: the file then holds
// the state before the commit or after it, and the next commit works.
#include <filesystem>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/io.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/search.h"
#include "support/faults/faults.h"
#include "support/paths.h"

namespace prism::test {
namespace {

constexpr uint64_t kBefore = 20, kAfter = 35;
// The fewest vectors that get a graph or lists, and those of a commit that get their own.
constexpr uint64_t kWithMethod = 1000, kCommitted = 20000;

class SearchFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_inject_faults()) GTEST_SKIP() << "a sanitizer replaces the allocator";
    save(more_, ones({static_cast<int64_t>(kAfter - kBefore), 4}, DType::f32, Device::cpu()));
    start_with(kBefore, search::Method::exact);
  }

  void start_with(uint64_t vectors, search::Method method) {
    search::Index index({.width = 4, .metric = Metric::l2});
    for (uint64_t i = 0; i < vectors; ++i) index.add(i, vector_of(i));
    index.build({.method = method});
    index.save(start_);
    before_ = vectors;
    method_ = method;
  }

  // Around the corners of a square, so that lists have something to divide.
  static std::vector<float> vector_of(uint64_t i) {
    return {static_cast<float>(i % 2) * 1000, static_cast<float>(i / 2 % 2) * 1000,
            static_cast<float>(i % 61), static_cast<float>(i)};
  }

  ProgramRun run(const std::vector<std::string>& words) const {
    return {words, {"PRISM_CACHE_DIR=" + folder_ / "cache", "PRISM_BACKENDS=cpu"}};
  }

  void start_anew() const {
    std::filesystem::copy_file(start_, path_, std::filesystem::copy_options::overwrite_existing);
  }

  // Opens the file, compares its checksums and returns the number of vectors. Every vector can be
  // found, and the method finds what a scan finds.
  uint64_t vectors() const {
    const search::Index index = search::Index::open(path_);
    index.verify();
    const search::IndexInfo info = index.info();
    EXPECT_EQ(info.method, method_);
    const std::vector<float> query = vector_of(7);
    EXPECT_EQ(index.search(query, {.k = 100, .recall = 1}).hits.size(),
              std::min<uint64_t>(100, info.vectors));
    if (method_ == search::Method::exact) return info.vectors;
    const search::SearchResult found =
        index.search(query, {.k = 1, .method = method_, .effort = 8});
    EXPECT_NE(found.how.find(search::method_name(method_)), std::string::npos) << found.how;
    EXPECT_EQ(found.hits[0].id, index.search(query, {.k = 1, .recall = 1}).hits[0].id);
    return info.vectors;
  }

  // Each write, flush and change of a name is the last one of the process, or fails. `repeats`: the
  // next run works.
  void attack(const std::vector<std::string>& words, uint64_t after,
              const std::vector<const char*>& actions = {"kill", "ENOSPC", "short"},
              bool repeats = true) {
    start_anew();
    const std::map<std::string, std::vector<int64_t>> calls = count_calls(run(words));
    EXPECT_EQ(vectors(), after);
    int runs = 0;
    for (const char* call : {"write", "flush", "change"})
      for (const char* action : actions) {
        if (std::string(action) == "short" && std::string(call) != "write") continue;
        for (const int64_t number : calls.at(call)) {
          const Fault fault{call, number, action};
          SCOPED_TRACE(fault.text());
          start_anew();
          const ProcessResult result = run_with_fault(run(words), fault);
          ++runs;
          const uint64_t now = vectors();
          EXPECT_TRUE(now == before_ || now == after) << now;
          EXPECT_TRUE(result.status != 0 || now == after) << result.output;
          EXPECT_TRUE(result.status != 1 || result.output.find("error: ") != std::string::npos)
              << result.output;
          if (!repeats) continue;
          EXPECT_EQ(run_with_fault(run(words), {}).status, 0);
          vectors();
        }
      }
    EXPECT_GT(runs, 4);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "index", start_ = folder_ / "start",
                    more_ = folder_ / "more.npy";
  uint64_t before_ = kBefore;
  search::Method method_ = search::Method::exact;
};

TEST_F(SearchFaults, Add) { attack({"vectors", "add", path_, more_}, kAfter); }

TEST_F(SearchFaults, Remove) { attack({"vectors", "remove", path_, "3", "4", "5"}, kBefore - 3); }

TEST_F(SearchFaults, Compact) { attack({"vectors", "compact", path_}, kBefore); }

TEST_F(SearchFaults, GraphsAndLists) {
  for (const search::Method method : {search::Method::graph, search::Method::ivf}) {
    SCOPED_TRACE(search::method_name(method));
    start_with(kWithMethod + 50, method);
    attack({"vectors", "add", path_, more_}, before_ + kAfter - kBefore, {"kill"});
    // Structures are made anew and written with the whole file.
    attack({"vectors", "remove", path_, "3", "4", "5"}, before_ - 3, {"kill"});
    attack({"vectors", "compact", path_}, before_, {"kill", "ENOSPC"});
  }
}

// A commit that appends the sections of a method.
TEST_F(SearchFaults, CommitsWithLists) {
  start_with(kWithMethod, search::Method::ivf);
  save(more_, randn({static_cast<int64_t>(kCommitted), 4}, DType::f32, Device::cpu()));
  attack({"vectors", "add", path_, more_}, before_ + kCommitted, {"kill"}, false);
  EXPECT_EQ(search::Index::open(path_).info().scanned, 0u);
}

}  // namespace
}  // namespace prism::test
