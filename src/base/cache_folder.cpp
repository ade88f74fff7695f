// Checksummed files under one folder, written by rename.
#include "base/cache_folder.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/system/output_file.h"
#include "prism/error.h"
#include "prism/warning.h"

#ifndef _WIN32
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'P', 'R', 'I', 'S', 'M', 'C', '0', '1'};

// Two lanes of a 64-bit multiply-xorshift hash (FNV-style absorption, murmur-style finish).
struct Hash128 {
  uint64_t a = 0x9e3779b97f4a7c15ull, b = 0xc2b2ae3d27d4eb4full;
  void absorb(const void* data, size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) {
      a = (a ^ p[i]) * 0x100000001b3ull;
      b = (b + p[i]) * 0xff51afd7ed558ccdull;
      b ^= b >> 29;
    }
  }
  static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
  }
  std::string text() const { return fmt::format("{:016x}{:016x}", mix(a ^ (b << 1)), mix(b + a)); }
};

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return std::string(value);
}

constexpr const char* kChooseFolder = "set PRISM_CACHE_DIR to a folder of your own";

// The functions of std::filesystem without an error code throw what is not an Error.
fs::path absolute_path(const std::string& folder) {
  std::error_code failed;  // the current folder may be gone
  const fs::path whole = fs::absolute(folder, failed);
  return failed ? fs::path(folder) : whole;
}

fs::path temporary_folder() {
  std::error_code failed;  // TMPDIR may name no folder
  const fs::path folder = fs::temp_directory_path(failed);
  return failed ? fs::path("/tmp") : folder;
}

fs::path chosen_folder() {
  if (auto folder = environment("PRISM_CACHE_DIR")) return absolute_path(*folder);
#ifdef _WIN32
  if (auto folder = environment("LOCALAPPDATA")) return fs::path(*folder) / "prism" / "cache";
  return temporary_folder() / "prism-cache";
#else
  if (auto folder = environment("XDG_CACHE_HOME")) return fs::path(*folder) / "prism";
  if (auto home = environment("HOME")) {
#ifdef __APPLE__
    return fs::path(*home) / "Library" / "Caches" / "prism";
#else
    return fs::path(*home) / ".cache" / "prism";
#endif
  }
  return temporary_folder() / fmt::format("prism-cache-{}", geteuid());
#endif
}

// Returns why the files of a folder must not be trusted. Empty if they can be, and for a missing
// folder.
std::string why_not_trusted(const fs::path& folder, bool may_be_link) {
#ifdef _WIN32
  (void)folder, (void)may_be_link;  // it is inside the user's profile
  return "";
#else
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0) return "";
  if (S_ISLNK(status.st_mode)) {
    if (!may_be_link) return "is a symbolic link";
    if (stat(folder.c_str(), &status) != 0) return "";
  }
  if (!S_ISDIR(status.st_mode)) return "is not a folder";
  if (status.st_uid != geteuid() && status.st_uid != 0) return "belongs to another user";
  if ((status.st_mode & S_IWOTH) != 0) return "can be written by every user";
  return "";
#endif
}

std::string why_not_trusted(const fs::path& folder) {
  return why_not_trusted(folder, environment("PRISM_CACHE_DIR").has_value());
}

// Creates the cache folder with access for this user only; returns false on failure.
bool make_cache_folder(const fs::path& folder) {
  std::error_code failed;
#ifdef _WIN32
  fs::create_directories(folder, failed);
  return !failed;
#else
  if (fs::exists(folder, failed)) return true;
  fs::create_directories(folder.parent_path(), failed);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
  return why_not_trusted(folder).empty();  // another user may have created it first
#endif
}

fs::path cached_path(std::string_view kind, std::string_view key) {
  const fs::path folder = cache_folder();
  if (folder.empty()) return {};
  const std::string hash = hash_text(key);
  return folder / std::string(kind) / hash.substr(0, 2) / hash.substr(2);
}

std::string checksum(std::string_view key, std::span<const std::byte> content) {
  Hash128 hash;
  hash.absorb(key.data(), key.size());
  hash.absorb(content.data(), content.size());
  return hash.text();
}

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return std::nullopt;
  return text;
}

bool write_record(const fs::path& path, std::string_view head, std::string_view body) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (failed) return false;
  try {
    OutputFile file(path.string(), FileKind::record);
    file.write(std::as_bytes(std::span(head)));
    file.write(std::as_bytes(std::span(body)));
    file.commit();
    return true;
  } catch (const Error&) {  // a record can be made again
    return false;
  }
}

}  // namespace

std::string hash_text(std::string_view text) {
  Hash128 hash;
  hash.absorb(text.data(), text.size());
  return hash.text();
}

fs::path cache_folder() {
  const fs::path folder = chosen_folder();
  const std::string reason = why_not_trusted(folder);
  if (reason.empty()) return folder;
  static std::mutex mutex;
  static std::set<std::string> warned;
  const std::lock_guard lock(mutex);
  if (warned.insert(folder.string()).second)
    warn(fmt::format("nothing is cached: {} {}; {}", folder.string(), reason, kChooseFolder));
  return {};
}

fs::path required_cache_folder() {
  const fs::path folder = chosen_folder();
  if (const std::string reason = why_not_trusted(folder); !reason.empty())
    throw Error(ErrorCode::kIo,
                fmt::format("the cache folder {} {}; {}", folder.string(), reason, kChooseFolder));
  make_cache_folder(folder);
  return folder;
}

void make_private_folder(const fs::path& folder, const std::string& what,
                         const std::string& advice) {
  const bool is_made = make_cache_folder(folder);
  std::error_code failed;
  std::string reason = why_not_trusted(folder, true);
  if (reason.empty() && (!is_made || !fs::is_directory(folder, failed))) reason = "cannot be made";
  if (!reason.empty())
    throw Error(ErrorCode::kIo,
                fmt::format("the folder {} of {} {}; {}", folder.string(), what, reason, advice));
}

fs::path cache_subfolder(std::string_view name) {
  const fs::path folder = cache_folder();
  return folder.empty() ? folder : folder / std::string(name);
}

std::string cache_file_head(std::string_view key, std::span<const std::byte> content) {
  return std::string(kMagic, sizeof(kMagic)) + checksum(key, content);
}

std::optional<std::span<const std::byte>> cached_content(std::string_view key,
                                                         std::span<const std::byte> file) {
  constexpr size_t kHead = sizeof(kMagic) + 32;
  if (file.size() < kHead) return std::nullopt;
  const std::span<const std::byte> content = file.subspan(kHead);
  const std::string_view head(reinterpret_cast<const char*>(file.data()), kHead);
  if (!head.starts_with({kMagic, sizeof(kMagic)}) || head != cache_file_head(key, content))
    return std::nullopt;
  return content;
}

std::optional<std::vector<std::byte>> read_cached(std::string_view kind, std::string_view key) {
  const fs::path path = cached_path(kind, key);
  if (path.empty()) return std::nullopt;
  const auto file = read_file(path);
  if (!file) return std::nullopt;
  const auto content = cached_content(key, std::as_bytes(std::span(*file)));
  if (!content) return std::nullopt;
  return std::vector<std::byte>(content->begin(), content->end());
}

bool write_cached(std::string_view kind, std::string_view key, std::span<const std::byte> content) {
  const fs::path path = cached_path(kind, key);
  if (path.empty() || !make_cache_folder(chosen_folder())) return false;
  return write_record(path, cache_file_head(key, content),
                      {reinterpret_cast<const char*>(content.data()), content.size()});
}

fs::path dump_folder() { return environment("PRISM_DUMP").value_or(""); }

fs::path dump_file(std::string_view name, std::span<const std::byte> content) {
  return dump_file(name,
                   std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
}

fs::path dump_file(std::string_view name, std::string_view text) {
  const fs::path folder = dump_folder();
  if (folder.empty()) return {};
  const fs::path path = folder / std::string(name);
  return write_record(path, "", text) ? path : fs::path();
}

std::optional<std::string> replaced_text(std::string_view name) {
  const fs::path folder = dump_folder();
  if (folder.empty()) return std::nullopt;
  return read_file(folder / "replace" / std::string(name));
}

}  // namespace prism
