// Runs pip and watches the folder that it downloads to.
#include "base/system/pip_download.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/system/process.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

uint64_t folder_bytes(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code failed;
  for (auto at = fs::recursive_directory_iterator(folder, failed);
       !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) bytes += at->file_size(ignored);
  }
  return bytes;
}

// While it lives, reports the size of a folder a few times a second.
class FolderWatch {
 public:
  FolderWatch(const fs::path& folder, const PipOptions& options)
      : folder_(folder), options_(options) {
    if (!options.progress) return;
    try {
      thread_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {  // no thread can be started: progress is not shown
    }
  }
  ~FolderWatch() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  void set_all(uint64_t bytes) { all_ = bytes; }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, std::chrono::milliseconds(200), [&] { return is_over_; }))
      if (const uint64_t all = all_; all > 0)
        options_.progress(std::min(folder_bytes(folder_), all), all);
  }

  const fs::path folder_;
  const PipOptions& options_;
  std::atomic<uint64_t> all_ = 0;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace

uint64_t pip_size(const std::string& line) {
  const size_t open = line.rfind('(');
  if (line.find("Downloading ") == std::string::npos || open == std::string::npos) return 0;
  char* end = nullptr;
  const double number = std::strtod(line.c_str() + open + 1, &end);
  const std::string unit = end;  // pip counts in powers of 1000
  const double factor = unit == " MB)" ? 1e6 : unit == " kB)" ? 1e3 : unit == " GB)" ? 1e9 : 0;
  return number > 0 ? static_cast<uint64_t>(number * factor) : 0;
}

PipResult pip_download(const std::string& requirement, const fs::path& folder,
                       const PipOptions& options) {
  PipResult result;
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{
           {"python3", "-I", "-m", "pip"}, {"python", "-I", "-m", "pip"}, {"pip3"}, {"pip"}}) {
    for (const char* word : {"download", "--no-deps", "--only-binary=:all:",
                             "--disable-pip-version-check", "--progress-bar=off", "--dest"})
      words.push_back(word);
    words.push_back(folder.string());
    words.push_back(requirement);
    result.last_line.clear();
    FolderWatch watch(folder, options);
    // pip downloads to a temporary folder; TMPDIR makes it one that can be watched.
    const int status = run_process(words,
                                   [&](const std::string& line) {
                                     result.last_line = line;
                                     if (const uint64_t bytes = pip_size(line); bytes > 0)
                                       watch.set_all(bytes);
                                     if (options.line) options.line(line);
                                   },
                                   {{"TMPDIR", folder.string()}});
    const bool is_missing =
        status == 127 || result.last_line.find("No module named") != std::string::npos;
    if (is_missing) continue;
    result.is_installed = true;
    result.is_right = status == 0;
    if (!result.is_right && result.last_line.empty())
      result.last_line = "it ended with status " + std::to_string(status);
    break;
  }
  return result;
}

}  // namespace prism
