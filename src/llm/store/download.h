// Downloads one file over HTTP: resumes, checks, and gives it its name only when complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace prism::llm {

struct DownloadOptions {
  // The checksum that the file must have. If empty, the one that the server sends is used
  // (x-linked-etag, or an ETag that is a sha256).
  std::string sha256;
  std::string begins_with;           // the first bytes that the file must have; empty: any
  std::vector<std::string> headers;  // "Name: value"
  std::function<void(uint64_t done, uint64_t all)> progress;  // all 0: the size is unknown
  int attempts = 5;          // consecutive attempts without a byte before the download fails
  double pause_seconds = 1;  // before the second attempt; doubled for each further one
};

struct DownloadResult {
  std::string sha256;                     // of the content
  bool is_checked = false;                // whether there was a checksum to compare it with
  uint64_t bytes = 0, resumed_bytes = 0;  // resumed: bytes that an earlier download left
};

// Downloads url to path and resumes an earlier download of the same content. An incomplete download
// is kept in path.part, and path.tag.part identifies its content. Throws kNotFound for 404 and
// refused access, kCorruptFile for a wrong checksum or a wrong beginning, kIo for a full disk and
// for connections that stay cut. After an error path.part is kept only if it holds bytes that a
// later download can use.
DownloadResult download(const std::string& url, const std::string& path,
                        const DownloadOptions& options = {});

// The first bytes of a file from a range request (fewer if the file is shorter), and its size.
struct FileStart {
  std::vector<std::byte> bytes;
  uint64_t file_bytes = 0;
};
FileStart download_start(const std::string& url, uint64_t bytes,
                         const std::vector<std::string>& headers = {});

}  // namespace prism::llm
