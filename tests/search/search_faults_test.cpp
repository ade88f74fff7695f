// Kills the writer of an index at each of its writes, and fails each of them: the file then holds
// the state before the commit or after it, and the next commit works.
#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/io.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/search.h"
#include "support/faults/faults.h"
#include "support/paths.h"
#include "support/seed.h"

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

  static void apply(std::string& file, const FileChange& change) {
    file.resize(std::max<size_t>(file.size(), change.offset + change.bytes.size()));
    std::ranges::copy(change.bytes, file.begin() + static_cast<ptrdiff_t>(change.offset));
  }

  // A disk writes sectors in any order, each whole or not at all.
  std::string with_some(std::string file, const std::vector<FileChange>& changes) {
    constexpr uint64_t kSector = 512;
    std::map<uint64_t, bool> reached;  // by the number of the sector
    for (const FileChange& change : changes)
      for (uint64_t done = 0; done < change.bytes.size();) {
        const uint64_t at = change.offset + done;
        const uint64_t bytes = std::min(kSector - at % kSector, change.bytes.size() - done);
        const auto found = reached.try_emplace(at / kSector, random_() % 2 == 0).first;
        if (found->second) apply(file, {false, 0, at, change.bytes.substr(done, bytes)});
        done += bytes;
      }
    return file;
  }

  // The file is as it was before the commit or after it, and the next one works.
  void expect_either(const std::string& file) {
    write_file(path_, file);
    const uint64_t now = vectors();
    EXPECT_TRUE(now == before_ || now == before_ + kCommitted) << now;
    search::Index index = search::Index::open(path_, search::Access::write);
    index.add(1'000'000, vector_of(1));
    index.commit();
    EXPECT_EQ(vectors(), now + 1);
  }

  TemporaryFolder folder_;
  std::mt19937 random_{test_seed()};
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

// The same for both methods, with every state that the writer or the machine can leave. The
// structures are made once: a kill leaves the writes before it, and a loss of power those before
// the last flush and any parts of later ones.
TEST_F(SearchFaults, CommitsWithMethodsLosePower) {
  save(more_, randn({static_cast<int64_t>(kCommitted), 4}, DType::f32, Device::cpu()));
  for (const search::Method method : {search::Method::graph, search::Method::ivf}) {
    SCOPED_TRACE(search::method_name(method));
    start_with(kWithMethod, method);
    start_anew();
    const std::vector<FileChange> changes =
        recorded_changes(run({"vectors", "add", path_, more_}), path_);
    ASSERT_GT(changes.size(), 8u);
    ASSERT_TRUE(changes.back().is_flush);
    EXPECT_EQ(vectors(), before_ + kCommitted);
    EXPECT_EQ(search::Index::open(path_).info().scanned, 0u);
    const std::string after = read_file(path_);
    std::string flushed = read_file(start_), written = flushed;
    std::vector<FileChange> unflushed;
    for (size_t i = 0; i < changes.size(); ++i) {
      SCOPED_TRACE("before change " + std::to_string(i));
      expect_either(written);
      for (int loss = 0; loss < 3 && !unflushed.empty(); ++loss)
        expect_either(with_some(flushed, unflushed));
      if (changes[i].is_flush) {
        unflushed.clear();
        flushed = written;
      } else {
        unflushed.push_back(changes[i]);
        apply(written, changes[i]);
      }
    }
    EXPECT_TRUE(written == after);
    // A real kill, when all sections are written and no root refers to them.
    start_anew();
    const int64_t number = std::ranges::find(changes, true, &FileChange::is_flush)->number;
    run_with_fault(run({"vectors", "add", path_, more_}), {"flush", number, "kill"});
    EXPECT_GT(read_file(path_).size(), read_file(start_).size());
    EXPECT_EQ(vectors(), before_);
  }
}

}  // namespace
}  // namespace prism::test
