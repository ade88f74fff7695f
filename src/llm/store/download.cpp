// Downloads with range requests, appended to a part file until it is complete.
#include "llm/store/download.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "base/sha256.h"
#include "base/system/output_file.h"
#include "llm/store/content_version.h"
#include "llm/store/http.h"
#include "llm/store/part_file.h"
#include "llm/store/resume.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

void check_space(const std::string& path, uint64_t missing) {
  std::error_code failed;
  const fs::space_info space = fs::space(fs::path(path).parent_path(), failed);
  if (!failed && space.available < missing)
    throw Error(ErrorCode::kIo,
                fmt::format("{}: {} bytes are missing and the disk has {} free; make room, or set "
                            "PRISM_CACHE_DIR to a folder on a larger disk",
                            path, missing, static_cast<uint64_t>(space.available)));
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Checks the start of a growing file, as soon as it is long enough to tell.
class StartGuard {
 public:
  StartGuard(const std::string& url, const StartCheck& check) : url_(url), check_(check) {}

  void restart() { *this = StartGuard(url_, check_); }

  void add(std::span<const std::byte> bytes, std::optional<uint64_t> file_bytes) {
    if (!check_) return;
    bytes_ += bytes.size();
    if (!least_) {
      start_.insert(start_.end(), bytes.begin(), bytes.end());
      if (start_.size() >= next_) look(file_bytes);
    }
    // A server that announces no size must not fill the disk.
    if (least_ && !file_bytes && bytes_ > *least_ + kMostPadding)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: the file should end at byte {} by its header, but the server "
                              "goes on sending",
                              url_, *least_));
  }

  void finish(uint64_t file_bytes) {
    if (!check_) return;
    if (!least_) look(file_bytes);
    if (!least_ || file_bytes < *least_)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: the server sent {} bytes, but the file needs {} by its header; "
                              "the server cut it off without saying so",
                              url_, file_bytes, least_ ? std::to_string(*least_) : "more"));
  }

 private:
  static constexpr size_t kFirstLook = 4, kMostStart = 256 << 20;
  static constexpr uint64_t kMostPadding = 1 << 20;

  void look(std::optional<uint64_t> file_bytes) {
    least_ = check_(start_, file_bytes);
    if (least_) {
      start_ = {};
    } else if (start_.size() >= kMostStart) {
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: its header has not ended after {} bytes", url_, start_.size()));
    }
    next_ = std::max<size_t>(64 << 10, start_.size() * 4);
  }

  std::string url_;
  StartCheck check_;
  std::vector<std::byte> start_;
  std::optional<uint64_t> least_;
  uint64_t bytes_ = 0;
  size_t next_ = kFirstLook;
};

class Download : private ResumeIo {
 public:
  Download(const std::string& url, const std::string& path, const DownloadOptions& options)
      : url_(url),
        path_(path),
        tag_path_(path + ".tag.part"),
        options_(options),
        part_(path),
        kept_(ContentVersion::parse(read_text(tag_path_))),
        guard_(url, options.check_start),
        resume_(url_, *this, part_.bytes(), kept_, options.attempts) {}

  DownloadResult run() {
    try {
      if (resume_.can_continue())
        part_.read([&](std::span<const std::byte> bytes) { look_at(bytes); });
      resume_.run();
      return finish();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCorruptFile || !resume_.can_continue()) discard();
      throw;
    } catch (...) {
      if (!resume_.can_continue()) discard();
      throw;
    }
  }

 private:
  HttpAnswer get(HttpRequest& request) override {
    request.url = url_;
    request.headers.insert(request.headers.end(), options_.headers.begin(), options_.headers.end());
    request.stall_seconds = options_.stall_seconds;
    return http_get(request);
  }

  void clear() override {
    part_.clear();
    hash_ = {};
    guard_.restart();
  }

  // The version is on the disk before the first byte of its content.
  void begin(const ContentVersion& version) override {
    const uint64_t all = version.bytes.value_or(0);
    if (all > part_.bytes()) check_space(path_, all - part_.bytes());
    if (version.text() == kept_.text()) return;
    kept_ = version;
    const std::string text = version.text();
    OutputFile file(tag_path_);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }

  void append(std::span<const std::byte> bytes) override {
    part_.append(bytes);
    look_at(bytes);
    if (options_.progress) options_.progress(part_.bytes(), kept_.bytes.value_or(0));
  }

  void pause(int idle_attempts) override {
    const double seconds = std::ldexp(options_.pause_seconds, std::max(idle_attempts - 1, 0));
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  void look_at(std::span<const std::byte> bytes) {
    hash_.update(bytes);
    guard_.add(bytes, kept_.bytes);
  }

  void discard() {
    std::error_code ignored;
    fs::remove(tag_path_, ignored);
    part_.remove();
  }

  DownloadResult finish() {
    guard_.finish(part_.bytes());
    DownloadResult result;
    result.sha256 = hash_.finish();
    result.bytes = part_.bytes();
    result.resumed_bytes = resume_.resumed_bytes();
    const ContentVersion& version = resume_.version();
    for (const auto& [source, wanted] : {std::pair(ChecksumSource::given, options_.sha256),
                                         std::pair(ChecksumSource::linked, version.linked_sha256),
                                         std::pair(ChecksumSource::own, version.own_sha256())}) {
      if (wanted.empty()) continue;
      if (result.sha256 != wanted)
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("{}: the download has the sha256 {}, but {} was expected; it was "
                                "removed, try again",
                                url_, result.sha256, wanted));
      result.checked_by = source;
      break;
    }
    std::error_code ignored;
    fs::remove(tag_path_, ignored);
    part_.commit();
    return result;
  }

  const std::string &url_, &path_;
  const std::string tag_path_;
  const DownloadOptions& options_;
  PartFile part_;
  ContentVersion kept_;  // as in the file tag_path_
  Sha256 hash_;
  StartGuard guard_;
  Resume resume_;
};

}  // namespace

DownloadResult download(const std::string& url, const std::string& path,
                        const DownloadOptions& options) {
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  if (failed)
    throw Error(ErrorCode::kIo, fmt::format("{}: its folder cannot be made: {}; set "
                                            "PRISM_CACHE_DIR to a folder that can be written",
                                            path, failed.message()));
  return Download(url, path, options).run();
}

FileStart download_start(const std::string& url, uint64_t bytes,
                         const std::vector<std::string>& headers) {
  FileStart start;
  HttpRequest request;
  request.url = url;
  request.headers = headers;
  request.byte_count = bytes;
  bool is_whole = false;
  request.answer = [&](const HttpAnswer& answer) {
    start.file_bytes = version_of(answer).bytes.value_or(0);
    return answer.status == 200 || answer.status == 206;
  };
  request.content = [&](std::span<const std::byte> piece) {
    const size_t taken = std::min<size_t>(piece.size(), bytes - start.bytes.size());
    start.bytes.insert(start.bytes.end(), piece.begin(),
                       piece.begin() + static_cast<ptrdiff_t>(taken));
    is_whole = start.bytes.size() == bytes;
    return !is_whole;  // a server without range support would send the whole file
  };
  const HttpAnswer answer = http_get(request);
  if (answer.status != 200 && answer.status != 206) refuse(url, answer);
  if (!is_whole && !answer.problem.empty())
    throw Error(ErrorCode::kIo, fmt::format("{}: {}", url, answer.problem));
  return start;
}

}  // namespace prism::llm
