// Faults in the middle of the program's work: after each one the files are whole, the program has
// ended with an error message, and the next run works.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/attack_rounds.h"
#include "support/faults/faults.h"
#include "support/faults/traced_run.h"
#include "support/http_server.h"
#include "support/models/chat_model.h"
#include "support/models/expected_text.h"
#include "support/paths.h"

namespace prism::test {
namespace {

namespace fs = std::filesystem;

constexpr int kKilled = 128 + 9;

const Fault kFaults[] = {
    {"new", 0, "ENOMEM"},          {"new", 0, "ENOMEM", false}, {"open", 0, "EMFILE"},
    {"open", 0, "EMFILE", false},  {"read", 0, "short"},        {"read", 0, "EIO"},
    {"read", 0, "EIO", false},     {"write", 0, "short"},       {"write", 0, "ENOSPC"},
    {"write", 0, "ENOSPC", false}, {"write", 0, "EIO"},         {"flush", 0, "EIO"},
    {"flush", 0, "ENOSPC", false}, {"change", 0, "EROFS"},      {"change", 0, "EROFS", false},
    {"map", 0, "ENOMEM"},          {"any", 0, "kill"},          {"system", 0, "kill"}};

// What the program does, and what must hold of its files.
struct Work {
  ProgramRun run;
  std::function<void()> prepare = [] {};
  // Looks at the files after a run; is_complete: the run has reported success.
  std::function<void(bool is_complete)> look = [](bool) {};
  bool prints_the_same = false;  // in each run
};

class FaultAttack : public testing::Test {
 protected:
  void SetUp() override {
    if (model_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
    if (!can_inject_faults()) GTEST_SKIP() << "a sanitizer replaces the allocator";
  }

  ProgramRun run(std::vector<std::string> words, std::string input = "") const {
    return {std::move(words),
            {"PRISM_CACHE_DIR=" + folder_ / "cache", "PRISM_DATA_DIR=" + folder_ / "data",
             "PRISM_BACKENDS=cpu", "PRISM_THREADS=2"},
            std::move(input)};
  }

  void start_anew(const Work& work) {
    for (const char* name : {"cache", "data", "work"}) {
      fs::remove_all(folder_.path() / name);
      fs::create_directories(folder_.path() / name);
    }
    work.prepare();
  }

  std::vector<std::string> files(const std::string& folder) const {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / folder))
      if (entry.is_regular_file()) all.push_back(entry.path().string());
    return all;
  }

  // The calls to hit: a few at random, all of them in a long attack.
  std::vector<int64_t> choose(std::vector<int64_t> calls) {
    const auto wanted = static_cast<size_t>(attack_rounds(2));
    if (wanted >= calls.size()) return calls;
    std::ranges::shuffle(calls, random_);
    calls.resize(wanted);
    return calls;
  }

  void attack(const Work& work) {
    start_anew(work);
    auto calls = count_calls(work.run);
    work.look(true);
    start_anew(work);
    if (tracing_problem().empty())
      calls["system"] = count_system_calls(work.run);
    else
      std::cout << "not killed at system calls: " << tracing_problem() << std::endl;
    start_anew(work);
    const std::string right = run_with_fault(work.run, {}).output;
    for (Fault fault : kFaults) {
      const std::vector<int64_t> chosen = choose(calls[fault.call]);
      if (attack_rounds(1) > 1)
        std::cout << fault.call << " " << fault.action << (fault.is_last ? "" : " from then on")
                  << ": " << chosen.size() << " of " << calls[fault.call].size() << std::endl;
      for (const int64_t number : chosen) {
        fault.number = number;
        SCOPED_TRACE(fault.text());
        hit(work, fault, right);
        if (HasFailure()) return;
      }
    }
  }

  void hit(const Work& work, const Fault& fault, const std::string& right) {
    start_anew(work);
    const ProcessResult result = run_with_fault(work.run, fault);
    const bool is_killed = fault.action == "kill" && result.status == kKilled;
    if (!is_killed) expect_proper_end(result);
    const std::vector<std::string> left = temporaries();
    // A process that was killed, or that can remove no file, leaves the one that it was writing.
    const bool may_leave = is_killed || fault.call == "change" || fault.call == "new";
    EXPECT_TRUE(left.empty() || may_leave) << left.front();
    // A conversation goes on after an error.
    work.look(result.status == 0 && result.output.find("warning: ") == std::string::npos &&
              result.output.find("error: ") == std::string::npos);
    // The next run depends on the files alone, so those that were tried need no other.
    if (!tried_.insert(all_files()).second) return;
    const ProcessResult next = run_with_fault(work.run, {});
    EXPECT_EQ(next.status, 0) << next.output << "\nafter: " << result.output;
    if (work.prints_the_same) {
      EXPECT_EQ(next.output, right);
    }
    work.look(true);
    // A record that was kept is not written again, nor what was left beside it removed.
    const std::vector<std::string> stale = temporaries();
    EXPECT_LE(stale.size(), left.size());
    for (const std::string& file : stale) EXPECT_TRUE(file.starts_with(folder_ / "cache")) << file;
  }

  static void expect_proper_end(const ProcessResult& result) {
    EXPECT_TRUE(result.status == 0 || result.status == 1 || result.status == 2)
        << "status " << result.status << ": " << result.output;
    const bool has_message = result.output.find("error: ") != std::string::npos;
    EXPECT_TRUE(result.status == 0 || has_message) << result.output;
    EXPECT_EQ(result.output.find("bad_alloc"), std::string::npos) << result.output;
  }

  std::vector<std::string> temporaries() const {
    std::vector<std::string> all;
    for (const char* name : {"cache", "data", "work"})
      for (const std::string& file : files(name))
        if (file.ends_with(".tmp")) all.push_back(file);
    return all;
  }

  // The names and contents of all files that the program may have changed.
  std::map<std::string, std::string> all_files() const {
    std::map<std::string, std::string> all;
    for (const char* name : {"cache", "data", "work"})
      for (const std::string& file : files(name)) all[file] = read_file(file);
    return all;
  }

  TemporaryFolder folder_;
  std::set<std::map<std::string, std::string>> tried_;  // after which the next run worked
  const std::string model_ = shared_model("stories260K");
  std::mt19937 random_{20260101};
};

TEST_F(FaultAttack, LoadAndGenerate) {
  attack({.run = run(
              {"run", model_, "--raw", "-q", "-n", "4", "--temperature", "0", "-p", "Once upon"}),
          .prints_the_same = true});
}

// Work goes on with the threads there are. A server needs one for its model; it says so.
TEST_F(FaultAttack, ThreadsThatCannotBeStarted) {
  const std::string text = folder_ / "text.txt", notes = folder_ / "notes";
  std::string numbers;
  for (int i = 0; i < 2000; ++i) numbers += std::to_string(i * i) + "\n";
  write_file(text, numbers);
  fs::create_directory(notes);
  write_file(notes + "/cake.md", "A cake without eggs.\n");
  const std::vector<std::vector<std::string>> commands = {
      {"run", model_, "--raw", "-q", "-n", "4", "-p", "Once upon", "-t", "8", "--prompt-cache",
       folder_ / "prompts"},
      {"model", "quantize", model_, folder_ / "q8.gguf", "Q8_0", "--overwrite"},
      {"train", "--data", text, "-o", folder_ / "new.gguf", "--steps", "1", "--shape", "nano",
       "--device", "cpu", "--overwrite", "-q"},
      {"index", notes},
      {"search", "eggs", notes, "--mcp"},
      {"serve", model_, "--port", "0"}};
  for (const std::vector<std::string>& words : commands)
    for (int number = 1; number <= 4; ++number) {
      ProgramRun program = run(words);
      program.variables.push_back("PATH=/var/empty");  // nothing is fetched
      const Fault fault{"thread", number, "EAGAIN", false};
      SCOPED_TRACE(words[0] + " " + fault.text());
      if (words[0] == "serve") {
        const ProcessResult result = run_for_a_second(program, fault);
        constexpr int kStopped = 124;
        if (result.status != kStopped) expect_proper_end(result);
        continue;
      }
      const ProcessResult result = run_with_fault(program, fault);
      expect_proper_end(result);
      const bool needs_a_thread = words.back() == "--mcp" || words[0] == "run";
      EXPECT_TRUE(result.status == 0 || needs_a_thread) << result.output;
      EXPECT_EQ(result.output.find("error: Resource"), result.output.npos) << result.output;
    }
}

TEST_F(FaultAttack, Quantise) {
  const std::string to = folder_ / "work/q8.gguf", old = "an older file";
  std::string right;
  attack({.run = run({"model", "quantize", model_, to, "Q8_0", "--overwrite"}),
          .prepare = [&] { write_file(to, old); },
          .look =
              [&](bool is_complete) {
                const std::string now = read_file(to);
                if (right.empty()) right = now;
                EXPECT_TRUE(now == right || (!is_complete && now == old))
                    << now.size() << " of " << right.size() << " bytes";
              }});
}

TEST_F(FaultAttack, Fetch) {
  const std::string right = read_file(model_);
  HttpServer server;
  server.serve("/u/r/resolve/main/m.gguf", {.content = right, .etag = "\"one\""});
  ProgramRun fetch = run({"model", "fetch", "hf:u/r:m.gguf"});
  fetch.variables.push_back("HF_ENDPOINT=" + server.url(""));
  const std::string to = folder_ / "cache/models/hf/u/r/m.gguf";
  attack({.run = fetch, .look = [&](bool is_complete) {
            const bool is_there = fs::exists(to);
            EXPECT_TRUE(is_there || !is_complete);
            EXPECT_TRUE(!is_there || read_file(to) == right) << "half a file";
          }});
}

TEST_F(FaultAttack, ChatSave) {
  const std::string model = with_template(model_, folder_.path());
  attack({.run = run({"chat", model, "-q", "-n", "4", "--temperature", "0"}, "Once upon a time\n"),
          .look = [&](bool is_complete) {
            int kept = 0;
            for (const std::string& file : files("data"))
              if (file.ends_with(".json")) {
                ++kept;
                EXPECT_TRUE(read_file(file).ends_with("}\n")) << file << " is half a file";
              }
            EXPECT_TRUE(kept > 0 || !is_complete);
          }});
}

}  // namespace
}  // namespace prism::test
