// Library search paths, and trial loads in a forked child.
#include "base/system/probe_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "base/system/child_run.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCache = "libraries";

void add_folders(std::vector<fs::path>& folders, const char* list) {
  if (!list) return;
  const std::string_view listed = list;
  for (size_t start = 0; start < listed.size();) {
    const size_t end = std::min(listed.find(':', start), listed.size());
    if (end > start) folders.emplace_back(listed.substr(start, end - start));
    start = end + 1;
  }
}

// Changes whenever the file does; empty if there is no such file.
std::string identity(const std::string& file) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (failed) return "";
  const auto bytes = fs::file_size(real, failed);
  if (failed) return "";
  const auto changed = fs::last_write_time(real, failed).time_since_epoch().count();
  return fmt::format("{}|{}|{}", real.string(), bytes, changed);
}

}  // namespace

std::vector<fs::path> loader_folders() {
  std::vector<fs::path> folders;
  add_folders(folders, std::getenv("LD_LIBRARY_PATH"));
  add_folders(folders, std::getenv("DYLD_LIBRARY_PATH"));
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/etc/ld.so.conf.d", ignored)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (line.starts_with('/')) folders.emplace_back(line);
  }
  for (const char* usual :
       {"/usr/local/lib", "/usr/lib", "/lib", "/usr/lib64", "/lib64", "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/opt/homebrew/lib"})
    folders.emplace_back(usual);
  return folders;
}

std::string find_library(const std::vector<std::string>& names) {
  std::error_code ignored;
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos) {
      if (fs::is_regular_file(name, ignored)) return name;
      continue;
    }
    for (const fs::path& folder : loader_folders())
      if (fs::is_regular_file(folder / name, ignored)) return (folder / name).string();
  }
  return "";
}

ProbeResult probe_library(const std::string& file, const std::string& what,
                          const LibraryTrial& trial, std::chrono::milliseconds limit) {
  ProbeResult result;
#ifdef __linux__
  const std::string known = identity(file);
  if (known.empty()) {
    result.reason = file + " is not a readable file";
    return result;
  }
  const std::string key = hash_text(what + "|" + known);
  if (const auto kept = read_cached(kCache, key)) {
    result.reason.assign(reinterpret_cast<const char*>(kept->data()), kept->size());
    result.remembered = true;
    if (!result.usable())
      result.reason += fmt::format(" by an earlier run; remove {} to have it tried again",
                                   cache_subfolder(kCache).string());
    return result;
  }
  const auto tried = run_in_child(
      [&](const Say& say) {
        try {
          say(trial(file));
        } catch (const std::exception& error) {
          say(error.what());
        }
      },
      limit);
  if (!tried) return result;  // no child could be made: accept the library untested
  result.reason = tried->failure.empty() ? tried->said : file + " " + tried->failure;
  write_cached(kCache, key, std::as_bytes(std::span(result.reason)));
#else
  (void)file, (void)what, (void)trial, (void)limit;
#endif
  return result;
}

}  // namespace prism
