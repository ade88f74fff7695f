// Appends to a locked file, on POSIX systems and on Windows.
#include "llm/store/part_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "prism/error.h"

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <share.h>
#include <sys/stat.h>
#else
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace prism {

namespace {

#ifdef _WIN32
int open_locked(const char* path) {
  int file = -1;
  _sopen_s(&file, path, _O_RDWR | _O_CREAT | _O_BINARY | _O_NOINHERIT, _SH_DENYRW,
           _S_IREAD | _S_IWRITE);
  return file;
}
int64_t seek(int file, int64_t to, int from) { return _lseeki64(file, to, from); }
int64_t read_some(int file, void* to, size_t bytes) {
  return _read(file, to, static_cast<unsigned>(bytes));
}
int64_t write_some(int file, const void* from, size_t bytes) {
  return _write(file, from, static_cast<unsigned>(std::min<size_t>(bytes, 1 << 30)));
}
bool cut(int file) { return _chsize_s(file, 0) == 0; }
bool flush(int file) { return _commit(file) == 0; }
void close_file(int file) { _close(file); }
#else
// Returns whether the path still names the open file. Between opening and locking another process
// may have renamed or removed it.
bool is_named(int file, const char* path) {
  struct stat opened {
  }, named{};
  return fstat(file, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}
int open_locked(const char* path) {
  for (;;) {
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0) return -1;
    const bool is_locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    if (is_locked && is_named(file, path)) return file;
    const int reason = errno;
    close(file);
    errno = reason;
    if (!is_locked) return -1;
  }
}
int64_t seek(int file, int64_t to, int from) { return lseek(file, to, from); }
int64_t read_some(int file, void* to, size_t bytes) { return ::read(file, to, bytes); }
int64_t write_some(int file, const void* from, size_t bytes) { return write(file, from, bytes); }
bool cut(int file) { return ftruncate(file, 0) == 0; }
bool flush(int file) { return fsync(file) == 0; }
void close_file(int file) { close(file); }
#endif

}  // namespace

PartFile::PartFile(const std::string& path) : path_(path), part_(path + ".part") {
  file_ = open_locked(part_.c_str());
  if (file_ < 0) {
    if (errno == EWOULDBLOCK)
      throw Error(ErrorCode::kIo, part_ + ": another process is fetching this file; wait for it");
    fail("opened");
  }
  const int64_t end = seek(file_, 0, SEEK_END);
  if (end < 0) fail("measured");
  bytes_ = static_cast<uint64_t>(end);
}

PartFile::~PartFile() {
  if (file_ >= 0) close_file(file_);
}

void PartFile::fail(const char* doing) const {
  throw Error(ErrorCode::kIo, part_ + ": cannot be " + doing + " (after " + std::to_string(bytes_) +
                                  " bytes): " + std::strerror(errno));
}

void PartFile::read(const std::function<void(std::span<const std::byte>)>& use) const {
  if (seek(file_, 0, SEEK_SET) < 0) fail("read");
  std::vector<std::byte> piece(1 << 20);
  for (uint64_t done = 0; done < bytes_;) {
    const int64_t got = read_some(file_, piece.data(), piece.size());
    if (got <= 0) fail("read");
    use(std::span(piece).first(static_cast<size_t>(got)));
    done += static_cast<uint64_t>(got);
  }
  if (seek(file_, 0, SEEK_END) < 0) fail("read");
}

void PartFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const int64_t put = write_some(file_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail("written");
    bytes_ += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void PartFile::clear() {
  if (!cut(file_) || seek(file_, 0, SEEK_SET) < 0) fail("emptied");
  bytes_ = 0;
}

void PartFile::remove() {
  std::error_code ignored;
#ifndef _WIN32
  std::filesystem::remove(part_, ignored);  // while locked: the name is still this file's
#endif
  if (file_ >= 0) close_file(file_);
  file_ = -1;
#ifdef _WIN32
  std::filesystem::remove(part_, ignored);  // Windows cannot remove an open file
#endif
}

void PartFile::commit() {
  if (!flush(file_)) fail("written");
#ifdef _WIN32
  close_file(file_);  // Windows cannot rename an open file
  file_ = -1;
#endif
  std::error_code failed;
  std::filesystem::rename(part_, path_, failed);
  if (failed) {
    errno = failed.value();
    fail("renamed");
  }
}

}  // namespace prism
