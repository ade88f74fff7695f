// Runs another program and captures its output; also a temporary folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace prism::test {

struct ProcessResult {
  int status = 0;      // exit status; 128 + the signal number if a signal killed it
  std::string output;  // standard output and standard error together
};

// Runs arguments[0], searched on PATH. Throws std::runtime_error if it cannot be started.
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
