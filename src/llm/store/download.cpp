// Downloads with range requests, appended to a part file until it is complete.
#include "llm/store/download.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "base/sha256.h"
#include "llm/store/http.h"
#include "llm/store/part_file.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

std::string header(const HttpAnswer& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string unquoted(std::string text) {
  if (text.starts_with("W/")) text.erase(0, 2);
  std::erase(text, '"');
  return text;
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// "bytes 100-199/5000": the first byte of the content, and the size of the file.
struct ContentRange {
  uint64_t first = 0, all = 0;
};
std::optional<ContentRange> content_range(const HttpAnswer& answer) {
  const std::string text = header(answer, "content-range");
  if (!text.starts_with("bytes ")) return std::nullopt;
  ContentRange range;
  range.first = number(std::string_view(text).substr(6));
  if (const size_t slash = text.find('/'); slash != std::string::npos)
    range.all = number(std::string_view(text).substr(slash + 1));
  return range;
}

[[noreturn]] void refuse(const std::string& url, const HttpAnswer& answer) {
  const int status = answer.status;
  if (status == 404 || status == 410)
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("{}: the server has no such file ({}); is the name right?", url, status));
  if (status == 401 || status == 403)
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: the server refuses access ({}); set HF_TOKEN to a token that may "
                            "read it, and accept the model's terms on its page",
                            url, status));
  throw Error(ErrorCode::kIo, fmt::format("{}: the server answers {}", url, status));
}

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
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  return text;
}

class Download {
 public:
  Download(const std::string& url, const std::string& path, const DownloadOptions& options)
      : url_(url),
        path_(path),
        tag_path_(path + ".tag.part"),
        options_(options),
        part_(path),
        tag_(read_text(tag_path_)),
        wanted_(options.sha256) {
    if (part_.bytes() > 0 && tag_.empty()) part_.clear();  // its content is unknown
    part_.read([&](std::span<const std::byte> bytes) { add(bytes); });
    resumed_ = part_.bytes();
  }

  DownloadResult run() {
    try {
      fetch();
      return finish();
    } catch (...) {
      if (part_.bytes() == 0 || !begins_right()) discard();
      throw;
    }
  }

 private:
  void fetch() {
    double pause = options_.pause_seconds;
    for (int idle = 0; !attempt();) {
      idle = is_moved_ ? 0 : idle + 1;
      if (idle >= (is_answered_ ? options_.attempts : std::min(2, options_.attempts)))
        throw Error(ErrorCode::kIo,
                    is_answered_ ? fmt::format("{}: the connection was cut {} times ({}); {} bytes "
                                               "are kept, and the next try goes on from there",
                                               url_, idle, problem_, part_.bytes())
                                 : problem_);
      if (is_moved_) pause = options_.pause_seconds;
      std::this_thread::sleep_for(std::chrono::duration<double>(pause));
      pause *= 2;
    }
  }

  void add(std::span<const std::byte> bytes) {
    hash_.update(bytes);
    for (size_t i = 0; i < bytes.size() && head_.size() < options_.begins_with.size(); ++i)
      head_ += static_cast<char>(bytes[i]);
  }

  bool begins_right() const { return options_.begins_with.starts_with(head_); }

  // Returns true when the file is complete.
  bool attempt() {
    is_moved_ = false;
    HttpRequest request;
    request.url = url_;
    request.headers = options_.headers;
    request.first_byte = part_.bytes();
    if (part_.bytes() > 0 && !tag_.empty()) request.headers.push_back("If-Range: " + tag_);
    bool is_wanted = false;
    request.answer = [&](const HttpAnswer& answer) { return is_wanted = begin(answer); };
    request.content = [&](std::span<const std::byte> bytes) {
      part_.append(bytes);
      add(bytes);
      if (!begins_right())
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("{}: the content does not begin with \"{}\", so it is not a model "
                                "file; is this the address of the file itself?",
                                url_, options_.begins_with));
      is_moved_ = true;
      if (options_.progress) options_.progress(part_.bytes(), all_);
      return true;
    };
    HttpAnswer answer;
    try {
      answer = http_get(request);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo || !std::string_view(error.what()).starts_with(url_))
        throw;
      problem_ = error.what();  // no answer: the server may come back
      return false;
    }
    if (is_restart_) {
      is_restart_ = false;
      is_moved_ = true;
      return false;
    }
    if (is_complete_) return true;
    if (!is_wanted) refuse(url_, answer);
    problem_ = answer.problem;
    if (all_ > 0) return part_.bytes() == all_;
    return answer.problem.empty();
  }

  // Returns whether the content that follows is to be kept.
  bool begin(const HttpAnswer& answer) {
    is_answered_ = true;
    if (wanted_.empty())
      for (const char* name : {"x-linked-etag", "etag"})
        if (const std::string tag = unquoted(header(answer, name)); is_sha256(tag)) {
          wanted_ = tag;
          break;
        }
    if (answer.status == 416 && part_.bytes() > 0) {  // complete, or the file has changed
      const auto range = content_range(answer);
      if (range && range->all == part_.bytes()) {
        is_complete_ = true;
      } else {
        restart();
        is_restart_ = true;
      }
      return false;
    }
    if (answer.status == 206) {
      const auto range = content_range(answer);
      if (!range || range->first != part_.bytes()) {
        restart();
        is_restart_ = true;
        return false;
      }
      all_ = range->all;
    } else if (answer.status == 200) {
      restart();
      all_ = number(header(answer, "content-length"));
    } else {
      return false;
    }
    keep_tag(answer);
    if (all_ > part_.bytes()) check_space(path_, all_ - part_.bytes());
    return true;
  }

  void restart() {
    part_.clear();
    hash_ = {};
    head_.clear();
    resumed_ = 0;
  }

  void discard() {
    part_.remove();
    std::error_code ignored;
    fs::remove(tag_path_, ignored);
  }

  void keep_tag(const HttpAnswer& answer) {
    std::string tag = header(answer, "etag");
    if (tag.empty() || tag.starts_with("W/")) tag = header(answer, "last-modified");
    if (tag == tag_) return;
    tag_ = tag;
    std::ofstream(tag_path_) << tag_ << "\n";
  }

  DownloadResult finish() {
    DownloadResult result;
    result.sha256 = hash_.finish();
    result.is_checked = !wanted_.empty();
    result.bytes = part_.bytes();
    result.resumed_bytes = resumed_;
    std::error_code ignored;
    fs::remove(tag_path_, ignored);
    if (result.is_checked && result.sha256 != wanted_) {
      discard();
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: the download has the sha256 {}, but {} was expected; it was "
                              "removed, try again",
                              url_, result.sha256, wanted_));
    }
    part_.commit();
    return result;
  }

  const std::string &url_, &path_;
  const std::string tag_path_;
  const DownloadOptions& options_;
  PartFile part_;
  Sha256 hash_;
  std::string tag_, wanted_, problem_;
  std::string head_;  // the first bytes, as many as options_.begins_with has
  uint64_t all_ = 0, resumed_ = 0;
  bool is_moved_ = false, is_restart_ = false, is_answered_ = false, is_complete_ = false;
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
    const auto range = content_range(answer);
    start.file_bytes = range ? range->all : number(header(answer, "content-length"));
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
