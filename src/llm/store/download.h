// Fetches one file over HTTP: resumed, checked, under its name only when whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace prism::llm {

struct DownloadOptions {
  std::string sha256;                // that the file must have; empty: what the server tells, if it
                                     // does (x-linked-etag, or an ETag that is one)
  std::vector<std::string> headers;  // "Name: value"
  std::function<void(uint64_t done, uint64_t all)> progress;  // all 0: the server does not say
  int attempts = 5;          // in a row without a single byte, before a cut connection is an error
  double pause_seconds = 1;  // before the second attempt; doubled for each further one
};

struct DownloadResult {
  std::string sha256;                     // of the content
  bool is_checked = false;                // whether there was one to compare it with
  uint64_t bytes = 0, resumed_bytes = 0;  // resumed: that were there already
};

// Goes on where an earlier download of the same content to path stopped. What is not whole lies in
// path.part (and path.tag.part, which content it is of). Throws kNotFound for 404 and refused
// access, kCorruptFile for a wrong checksum (nothing is left then), kIo for a full disk and for
// connections that stay cut.
DownloadResult download(const std::string& url, const std::string& path,
                        const DownloadOptions& options = {});

// The first bytes of a file by a range request (fewer where it is shorter), and its size.
struct FileStart {
  std::vector<std::byte> bytes;
  uint64_t file_bytes = 0;
};
FileStart download_start(const std::string& url, uint64_t bytes,
                         const std::vector<std::string>& headers = {});

}  // namespace prism::llm
