// A file that grows over several runs under the name NAME.part, and gets its name when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace prism {

// Stays when it is let go, so that the next one goes on. Throws kIo with the system's reason; also
// where another process has the same file open.
class PartFile {
 public:
  explicit PartFile(const std::string& path);  // of the whole file
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  uint64_t bytes() const { return bytes_; }  // so far
  // What is there already, in pieces.
  void read(const std::function<void(std::span<const std::byte>)>& use) const;
  void append(std::span<const std::byte> bytes);
  void clear();
  void remove();  // gives up: nothing is left
  void commit();  // flushes to the disk, then renames

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, part_;
  int file_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace prism
