// Downloads a Python package with pip and reports the bytes as they arrive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace prism {

struct PipOptions {
  std::function<void(const std::string& line)> line;  // each line that pip prints
  // Called a few times a second, from another thread. all is 0 until pip has printed the size.
  std::function<void(uint64_t done, uint64_t all)> progress;
};

struct PipResult {
  bool is_installed = false;  // false: there is no pip on this machine
  bool is_right = false;      // the wheel is in the folder
  std::string last_line;      // of pip's output
};

// Downloads the wheel of one package, without its dependencies, into an existing folder.
// requirement: "name==1.2". Throws kIo if no process can be started.
PipResult pip_download(const std::string& requirement, const std::filesystem::path& folder,
                       const PipOptions& options = {});

// Returns the bytes of "Downloading x.whl (92.9 MB)", a line that pip prints; 0 for other lines.
uint64_t pip_size(const std::string& line);

}  // namespace prism
