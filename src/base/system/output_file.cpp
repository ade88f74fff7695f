// Writes files under a temporary name and renames them.
#include "base/system/output_file.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "prism/error.h"

#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

namespace prism {

namespace {

bool flush_to_disk(std::FILE* file) {
  if (std::fflush(file) != 0) return false;
#ifdef _WIN32
  return _commit(_fileno(file)) == 0;
#else
  return fsync(fileno(file)) == 0;
#endif
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  static std::atomic<uint64_t> counter{0};
  static const uint64_t process = std::random_device{}();  // two processes never share a name
  temporary_ = path + "." + std::to_string(process) + "." + std::to_string(counter++) + ".tmp";
  file_ = std::fopen(temporary_.c_str(), "wb");
  if (!file_) fail("created");
}

OutputFile::~OutputFile() {
  if (!file_) return;
  std::fclose(file_);
  std::remove(temporary_.c_str());
}

void OutputFile::fail(const char* doing) const {
  throw Error(ErrorCode::kIo, path_ + ": cannot be " + doing + " (after " +
                                  std::to_string(written_) + " bytes): " + std::strerror(errno));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("written");
  written_ += bytes.size();
}

void OutputFile::commit() {
  if (!flush_to_disk(file_)) fail("written");
  std::FILE* const file = file_;
  file_ = nullptr;
  std::error_code failed;
  if (std::fclose(file) == 0) {
    std::filesystem::rename(temporary_, path_, failed);
    if (!failed) return;
    errno = failed.value();
  }
  const int reason = errno;
  std::remove(temporary_.c_str());
  errno = reason;
  fail("written");
}

}  // namespace prism
