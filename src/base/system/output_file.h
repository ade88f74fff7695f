// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace prism {

// Written under a temporary name beside path; commit() renames it. Without commit() the destructor
// removes it. Every function throws kIo with the system's reason ("No space left on device").
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  uint64_t written() const { return written_; }
  void commit();  // flushes to the disk, then renames; replaces an existing file

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
  uint64_t written_ = 0;
};

}  // namespace prism
