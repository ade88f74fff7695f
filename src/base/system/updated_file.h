// A file that one process at a time may change in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace prism {

// Open for reading and writing, and locked while the object lives. Every function throws kIo with
// the system's reason.
class UpdatedFile {
 public:
  // Throws kNotFound, and kIo naming the file if another process has locked it.
  explicit UpdatedFile(const std::string& path);
  ~UpdatedFile();
  UpdatedFile(const UpdatedFile&) = delete;
  UpdatedFile& operator=(const UpdatedFile&) = delete;

  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  void flush();  // to the disk

 private:
  [[noreturn]] void fail(const char* doing) const;
  std::string path_;
  int file_ = -1;
};

}  // namespace prism
