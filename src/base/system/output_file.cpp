// Writes files under a temporary name and renames them.
//
// A process holds a lock on its temporary file while it writes. So a temporary file that can be
// locked was left by a process that is gone.
#include "base/system/output_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include "base/system/mapped_file.h"
#include "prism/error.h"

#ifdef _WIN32
#include <io.h>
#else
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace prism {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".prism-", kEnd = ".tmp";

// The temporary files that are being written, for a signal handler. One without a slot is not
// removed by the handler, but by the next process that writes the same file.
std::array<std::atomic<const char*>, 64> temporaries;
#ifndef _WIN32
std::atomic<pid_t> owner = 0;  // the process whose files these are; a child must not remove them
#endif

bool flush_to_disk(std::FILE* file) {
  if (std::fflush(file) != 0) return false;
#ifdef _WIN32
  return _commit(_fileno(file)) == 0;
#else
  return fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP;  // devices and pipes
#endif
}

#ifdef _WIN32
// A file that is open cannot be removed.
void remove_if_left(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

std::FILE* create(const std::string& path, const std::string&, FileKind) {
  return std::fopen(path.c_str(), "wbx");
}

std::FILE* open_directly(const std::string& path) { return std::fopen(path.c_str(), "wb"); }
#else
void remove_if_left(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  struct stat facts {};
  if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0)
    unlink(path.c_str());
  close(file);
}

// Returns null with errno EEXIST if another writer took the new file for one that was left.
std::FILE* create(const std::string& path, const std::string& replaces, FileKind kind) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                        kind == FileKind::owner_only ? 0600 : 0666);
  if (file < 0) return nullptr;
  const bool is_taken = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat here {
  }, there{};
  if (is_taken || fstat(file, &here) != 0 || stat(path.c_str(), &there) != 0 ||
      here.st_ino != there.st_ino) {
    close(file);
    errno = EEXIST;
    return nullptr;
  }
  if (kind == FileKind::usual && stat(replaces.c_str(), &there) == 0)
    (void)!fchmod(file, there.st_mode & 0777);
  return fdopen(file, "wb");
}

// Waits two seconds for the reader of a pipe.
std::FILE* open_directly(const std::string& path) {
  constexpr int kWaits = 40, kWaitMs = 50;
  int file = -1;
  for (int waits = 0; waits <= kWaits; ++waits) {
    file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file >= 0 || errno != ENXIO) break;
    poll(nullptr, 0, kWaitMs);
  }
  if (file < 0) return nullptr;
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return fdopen(file, "wb");
}
#endif

// Removes the temporary files that killed processes left beside the file.
void remove_left_files(const fs::path& path) {
  const std::string start = path.filename().string() + std::string(kMark);
  std::error_code failed;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end;
       each.increment(failed)) {
    const std::string name = each->path().filename().string();
    if (name.starts_with(start) && name.ends_with(kEnd)) remove_if_left(each->path());
  }
}

}  // namespace

OutputFile::OutputFile(const std::string& path, FileKind kind) : path_(path), kind_(kind) {
  std::error_code ignored;
  if (kind != FileKind::record && fs::is_symlink(path, ignored))
    if (const fs::path target = fs::weakly_canonical(path, ignored); !ignored)
      path_ = target.string();
  const fs::file_status status = fs::symlink_status(path_, ignored);
  if (fs::is_directory(status)) {
    errno = EISDIR;
    fail("created");
  }
  if (kind != FileKind::record && fs::exists(status) && !fs::is_regular_file(status))
    file_ = open_directly(path_);
  else
    open_beside();
  if (!file_) fail("created");
}

void OutputFile::open_beside() {
  static std::atomic<uint64_t> counter{0};
  static const uint64_t process = std::random_device{}();  // two processes never share a name
#ifndef _WIN32
  owner = getpid();
#endif
  remove_left_files(path_);
  do {
    temporary_ = fmt::format("{}{}{:08x}-{}{}", path_, kMark, process, counter++, kEnd);
    const char* const name = temporary_.c_str();
    slot_ = 0;
    for (const char* none = nullptr; slot_ < temporaries.size(); ++slot_, none = nullptr)
      if (temporaries[slot_].compare_exchange_strong(none, name)) break;
    file_ = create(temporary_, path_, kind_);
    if (!file_) forget();
  } while (!file_ && errno == EEXIST);
}

void OutputFile::forget() {
  if (!temporary_.empty() && slot_ < temporaries.size()) temporaries[slot_] = nullptr;
}

OutputFile::~OutputFile() {
  if (!file_) return;
  if (!temporary_.empty()) std::remove(temporary_.c_str());
  std::fclose(file_);
  forget();
}

void OutputFile::fail(const char* doing) const {
  throw Error(ErrorCode::kIo, path_ + ": cannot be " + doing + " (after " +
                                  std::to_string(written_) + " bytes): " + std::strerror(errno));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    // Where a program that reads these bytes gets a signal, the system's write fails.
    const char* const source = errno == EFAULT ? mapped_file_at(bytes.data()) : nullptr;
    if (source) throw Error(ErrorCode::kIo, fmt::format("reading {}{}", source, kMappedFileIsGone));
    fail("written");
  }
  written_ += bytes.size();
}

void OutputFile::commit() {
  const bool flushed = kind_ == FileKind::record ? std::fflush(file_) == 0 : flush_to_disk(file_);
  if (!flushed) fail("written");
  std::FILE* const file = file_;
  file_ = nullptr;
  std::error_code failed;
#ifndef _WIN32
  // Before the file is closed, and with it unlocked: then no other process takes it for a left one.
  if (!temporary_.empty()) fs::rename(temporary_, path_, failed);
#endif
  const bool closed = std::fclose(file) == 0;
#ifdef _WIN32
  if (closed && !temporary_.empty()) fs::rename(temporary_, path_, failed);
#endif
  const int reason = failed ? failed.value() : errno;
  if (failed) std::remove(temporary_.c_str());
  forget();
  if (!failed && closed) return;
  errno = reason;
  fail("written");
}

void write_whole_file(const std::string& path, std::string_view content, FileKind kind) {
  OutputFile file(path, kind);
  file.write(std::as_bytes(std::span(content)));
  file.commit();
}

void remove_temporary_files() noexcept {
#ifndef _WIN32
  if (owner != getpid()) return;
  for (const auto& each : temporaries)
    if (const char* const name = each.load()) unlink(name);
#endif
}

}  // namespace prism
