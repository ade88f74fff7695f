// Decides about requests and answers of resumed downloads.
#include "llm/store/resume.h"

#include <fmt/format.h>

#include <algorithm>

#include "prism/error.h"

namespace prism::llm {

void refuse(const std::string& url, const HttpAnswer& answer) {
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

Resume::Resume(const std::string& url, ResumeIo& io, uint64_t bytes, const ContentVersion& version,
               int attempts)
    : url_(url),
      io_(io),
      bytes_(bytes),
      resumed_(bytes),
      version_(version),
      attempts_(std::max(attempts, 1)),
      mark_(bytes) {}

// Without a size a complete file could not be told from a cut one.
bool Resume::can_continue() const {
  return bytes_ > 0 && version_.bytes && bytes_ <= *version_.bytes && !version_.validator().empty();
}

void Resume::run() {
  if (can_continue() && is_complete()) return;
  while (!attempt()) {
    count_attempt();
    io_.pause(idle_);
  }
}

// Returns whether the content is complete.
bool Resume::attempt() {
  is_refused_ = false;
  HttpRequest request;
  if (can_continue()) {
    request.first_byte = bytes_;
    request.headers.push_back("If-Range: " + version_.validator());
  } else {
    drop();
  }
  bool is_taken = false;
  request.answer = [&](const HttpAnswer& answer) { return is_taken = accept(answer); };
  request.content = [&](std::span<const std::byte> bytes) {
    take(bytes);
    return true;
  };
  HttpAnswer answer;
  try {
    answer = io_.get(request);
  } catch (const HttpNoAnswer& error) {  // the server may come back
    problem_ = error.what();
    return false;
  }
  if (is_refused_) refuse(url_, answer);
  if (!is_taken) return false;
  problem_ =
      answer.problem.empty()
          ? fmt::format("the server ended its answer after {} bytes", bytes_)
          : fmt::format("the connection was cut after {} bytes ({})", bytes_, answer.problem);
  if (ignores_ranges_) problem_ += "; the server does not continue downloads (it ignores Range)";
  const bool is_end = version_.bytes ? is_complete() : answer.problem.empty();
  if (is_end && bytes_ == 0)
    throw Error(ErrorCode::kIo, fmt::format("{}: the server sends an empty file", url_));
  return is_end;
}

// Returns whether the content that follows is to be taken.
bool Resume::accept(const HttpAnswer& answer) {
  is_answered_ = true;
  if (answer.status == 416 && bytes_ > 0) {
    problem_ = fmt::format("the server answers 416 to a request from byte {} of {}", bytes_,
                           *version_.bytes);
    drop();
    return false;
  }
  if (answer.status != 200 && answer.status != 206) {
    is_refused_ = true;
    return false;
  }
  const std::string encoding = header(answer, "content-encoding");
  if (!encoding.empty() && encoding != "identity")
    throw Error(ErrorCode::kIo, fmt::format("{}: the server sends the file encoded as \"{}\", but "
                                            "the plain file was requested",
                                            url_, encoding));
  const std::string length = header(answer, "content-length");
  if (!length.empty() && !parse_bytes(length))
    throw Error(ErrorCode::kIo, fmt::format("{}: the server sends Content-Length \"{}\", which is "
                                            "not a number",
                                            url_, length));
  const ContentVersion sent = version_of(answer);
  return answer.status == 206 ? accept_part(answer, sent) : accept_whole(sent);
}

bool Resume::accept_part(const HttpAnswer& answer, const ContentVersion& sent) {
  const std::string text = header(answer, "content-range");
  const auto range = parse_content_range(text);
  const auto length = parse_bytes(header(answer, "content-length"));
  const bool is_right = range && range->first == bytes_ &&
                        (!length || *length == range->last - range->first + 1) &&
                        (sent.bytes || version_.bytes);
  if (!is_right) {
    problem_ = fmt::format(
        "the server answers a request from byte {} with Content-Range \"{}\" and Content-Length "
        "\"{}\"",
        bytes_, text, header(answer, "content-length"));
    drop();
    return false;
  }
  if (bytes_ > 0 && !version_.is_continued_by(sent)) {
    note_change(sent);
    drop();
    return false;
  }
  if (bytes_ == 0) version_ = sent;
  if (version_.linked_sha256.empty()) version_.linked_sha256 = sent.linked_sha256;
  expected_ = range->last - range->first + 1;
  io_.begin(version_);
  return true;
}

bool Resume::accept_whole(const ContentVersion& sent) {
  if (bytes_ > 0) {
    if (version_.is_continued_by(sent))
      ignores_ranges_ = true;
    else
      note_change(sent);
  }
  drop();
  version_ = sent;
  expected_ = sent.bytes;
  io_.begin(version_);
  return true;
}

void Resume::take(std::span<const std::byte> bytes) {
  if (expected_) {
    if (bytes.size() > *expected_) {
      const uint64_t announced = *version_.bytes;
      drop();
      throw Error(ErrorCode::kIo,
                  fmt::format("{}: the server sends more than the {} bytes that it announced", url_,
                              announced));
    }
    *expected_ -= bytes.size();
  }
  io_.append(bytes);
  bytes_ += bytes.size();
}

void Resume::drop() {
  if (bytes_ > 0) io_.clear();
  bytes_ = resumed_ = 0;
  version_ = {};
}

// A new version starts from nothing, so earlier sizes say nothing about its progress.
void Resume::note_change(const ContentVersion& sent) {
  mark_ = 0;
  problem_ = fmt::format(
      "the file changed on the server during the download (ETag {} and {} bytes, then ETag {} and "
      "{} bytes)",
      version_.etag.empty() ? "none" : version_.etag, *version_.bytes,
      sent.etag.empty() ? "none" : sent.etag, sent.bytes ? std::to_string(*sent.bytes) : "unknown");
  if (++changes_ < attempts_) return;
  drop();
  give_up(fmt::format("the server sent {} versions", changes_ + 1));
}

void Resume::count_attempt() {
  if (bytes_ >= mark_ + kLeastProgress) {
    mark_ = bytes_;
    idle_ = 0;
    return;
  }
  ++idle_;
  if (!is_answered_ && idle_ >= std::min(2, attempts_)) throw Error(ErrorCode::kIo, problem_);
  if (idle_ >= attempts_)
    give_up(fmt::format("{} attempts brought less than {} KiB", idle_, kLeastProgress >> 10));
}

void Resume::give_up(const std::string& reason) const {
  const std::string kept =
      can_continue() ? fmt::format("{} bytes are kept, and the next try goes on from there", bytes_)
                     : "nothing is kept";
  throw Error(ErrorCode::kIo,
              fmt::format("{}: {}; the last time {}; {}", url_, reason, problem_, kept));
}

}  // namespace prism::llm
