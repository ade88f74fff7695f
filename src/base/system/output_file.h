// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace prism {

enum class FileKind {
  usual,
  owner_only,  // no other user may read it
  record  // can be made again: not flushed to the disk; replaces a link instead of following it
};

// Written under a temporary name beside path; commit() renames it. Without commit() the destructor
// removes it. Temporary files that a killed process left beside path are removed. A path that names
// a device or a pipe is written directly, other than for a record. Every function throws kIo with
// the system's reason ("No space left on device").
class OutputFile {
 public:
  explicit OutputFile(const std::string& path, FileKind kind = FileKind::usual);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  uint64_t written() const { return written_; }
  void commit();  // flushes to the disk, then renames; replaces an existing file

 private:
  [[noreturn]] void fail(const char* doing) const;
  void open_beside();
  void forget();

  std::string path_;
  FileKind kind_;
  std::string temporary_;  // empty if path_ is written directly
  std::FILE* file_ = nullptr;
  size_t slot_ = 0;  // of the list of temporary files
  uint64_t written_ = 0;
};

// Writes a whole file, or leaves what was there.
void write_whole_file(const std::string& path, std::string_view content,
                      FileKind kind = FileKind::usual);

// Removes the temporary files of this process. For a signal handler that ends the process: it calls
// only async-signal-safe functions.
void remove_temporary_files() noexcept;

}  // namespace prism
