// Runs another program and keeps what it printed; and a folder that is gone afterwards.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace prism::test {

struct ProcessResult {
  int status = 0;      // exit status; 128 + the signal's number for a program killed by one
  std::string output;  // standard output and standard error together
};

// Runs arguments[0], looked for on PATH. Throws std::runtime_error when it cannot be started at
// all.
ProcessResult run_process(const std::vector<std::string>& arguments);

// A new empty folder, removed with its contents by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& contents);
std::string read_file(const std::filesystem::path& path);

}  // namespace prism::test
