// Downloads one file over HTTP: resumes, checks, and gives it its name only when complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace prism::llm {

// Reads the first bytes of a file. Returns the least size that the file must have, or nothing if
// more bytes are needed to tell. Throws kCorruptFile if no right file begins so. file_bytes: the
// size of the whole file, if known.
using StartCheck = std::function<std::optional<uint64_t>(std::span<const std::byte> start,
                                                         std::optional<uint64_t> file_bytes)>;

struct DownloadOptions {
  // The checksum that the file must have. If empty, one that a server sends is used.
  std::string sha256;
  StartCheck check_start;                                     // empty: any content is right
  std::vector<std::string> headers;                           // "Name: value"
  std::function<void(uint64_t done, uint64_t all)> progress;  // all 0: the size is unknown
  int attempts = 5;          // consecutive attempts without progress before the download fails
  double pause_seconds = 1;  // before the second attempt; doubled for each further one
  int stall_seconds = 60;    // an attempt ends after this time almost without bytes
};

// Where the checksum came from that the content was compared with.
enum class ChecksumSource {
  none,    // there was none
  given,   // DownloadOptions
  linked,  // x-linked-etag, from a server that redirected to the one with the content
  own,     // the ETag of the server that sent the content
};

struct DownloadResult {
  std::string sha256;  // of the content
  ChecksumSource checked_by = ChecksumSource::none;
  uint64_t bytes = 0, resumed_bytes = 0;  // resumed: bytes that an earlier download left
};

// Downloads url to path and resumes an earlier download of the same content. An incomplete download
// is kept in path.part, and path.tag.part identifies its content. The file gets its name after its
// size, its start and its checksum were checked. Throws kNotFound for 404 and refused access,
// kCorruptFile for a wrong checksum or content, kIo for a full disk and for servers that do not
// deliver the file; the message says what the server did. After an error path.part is kept only if
// a later download can continue it.
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
