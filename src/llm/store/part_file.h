// A file that grows over several runs as NAME.part and is renamed to NAME when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace prism {

// The destructor keeps the file, so that a later object can continue it. Throws kIo with the
// system's reason, also if another process has the same file open.
class PartFile {
 public:
  explicit PartFile(const std::string& path);  // of the complete file
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  uint64_t bytes() const { return bytes_; }  // so far
  // Calls use with the existing content, in pieces.
  void read(const std::function<void(std::span<const std::byte>)>& use) const;
  void append(std::span<const std::byte> bytes);
  void clear();
  void remove();  // deletes the file
  void commit();  // flushes to the disk, then renames

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, part_;
  int file_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace prism
