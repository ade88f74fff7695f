// In-place changes under a lock, on POSIX systems and on Windows.
#include "base/system/updated_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

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

void UpdatedFile::fail(const char* doing) const {
  throw Error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              path_ + ": cannot be " + doing + ": " + std::strerror(errno));
}

#ifdef _WIN32

UpdatedFile::UpdatedFile(const std::string& path) : path_(path) {
  if (_sopen_s(&file_, path.c_str(), _O_RDWR | _O_BINARY, _SH_DENYWR, _S_IREAD | _S_IWRITE) != 0)
    fail("opened for writing");
}
UpdatedFile::~UpdatedFile() { _close(file_); }
void UpdatedFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  if (_lseeki64(file_, static_cast<int64_t>(offset), SEEK_SET) < 0) fail("written");
  while (!bytes.empty()) {
    const size_t some = std::min<size_t>(bytes.size(), 1 << 30);
    const int done = _write(file_, bytes.data(), static_cast<unsigned>(some));
    if (done <= 0) fail("written");
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
}
void UpdatedFile::flush() {
  if (_commit(file_) != 0) fail("flushed to the disk");
}

#else

UpdatedFile::UpdatedFile(const std::string& path) : path_(path) {
  // A writer may replace the file between open and lock; then lock the new one.
  for (;;) {
    file_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file_ < 0) fail("opened for writing");
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      close(file_);
      if (!taken) fail("locked");
      throw Error(ErrorCode::kIo,
                  path_ + ": another process is writing to it; try again when it has ended");
    }
    struct stat here {
    }, there{};
    if (fstat(file_, &here) == 0 && stat(path.c_str(), &there) == 0 &&
        here.st_ino == there.st_ino && here.st_dev == there.st_dev)
      return;
    close(file_);
  }
}

UpdatedFile::~UpdatedFile() { close(file_); }

void UpdatedFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("written");
    offset += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
}

void UpdatedFile::flush() {
  if (fsync(file_) != 0) fail("flushed to the disk");
}

#endif

}  // namespace prism
