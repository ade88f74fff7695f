// The protocol of a download that continues after interruptions: which request comes next, which
// answers continue the bytes at hand, and when to give up. Does no input or output itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "llm/store/content_version.h"
#include "llm/store/http.h"

namespace prism::llm {

// An attempt counts as progress when the content has grown by this since the last progress. A
// server that sends a few bytes for each request would otherwise never be given up.
inline constexpr uint64_t kLeastProgress = 64 << 10;

// What a download reads from and writes to.
class ResumeIo {
 public:
  virtual ~ResumeIo() = default;
  // As http_get(): sends the request with the address and further headers added.
  virtual HttpAnswer get(HttpRequest& request) = 0;
  virtual void clear() = 0;                               // drops the content so far
  virtual void begin(const ContentVersion& version) = 0;  // the content that follows, and its size
  virtual void append(std::span<const std::byte> bytes) = 0;
  virtual void pause(int idle_attempts) = 0;  // before the next attempt
};

class Resume {
 public:
  // url is for messages. `bytes` of content exist, of that version. attempts: consecutive ones
  // without progress before it fails.
  Resume(const std::string& url, ResumeIo& io, uint64_t bytes, const ContentVersion& version,
         int attempts);

  // Fetches the rest. The content then is of one version and has the announced size. Throws kIo
  // with what the server did, kNotFound for refusals; rethrows the exceptions of io.
  void run();

  uint64_t bytes() const { return bytes_; }
  uint64_t resumed_bytes() const { return resumed_; }  // existing bytes that were used
  const ContentVersion& version() const { return version_; }
  // Returns whether a later download can continue the content.
  bool can_continue() const;

 private:
  bool is_complete() const { return version_.bytes && bytes_ == *version_.bytes; }
  bool attempt();
  bool accept(const HttpAnswer& answer);
  bool accept_part(const HttpAnswer& answer, const ContentVersion& sent);
  bool accept_whole(const ContentVersion& sent);
  void take(std::span<const std::byte> bytes);
  void drop();
  void note_change(const ContentVersion& sent);
  void count_attempt();
  [[noreturn]] void give_up(const std::string& reason) const;

  const std::string& url_;
  ResumeIo& io_;
  uint64_t bytes_, resumed_;
  ContentVersion version_;
  const int attempts_;

  std::optional<uint64_t> expected_;  // bytes that the current answer announced
  bool is_refused_ = false;
  bool is_answered_ = false;  // by any request so far
  bool ignores_ranges_ = false;
  std::string problem_;  // of the last attempt
  uint64_t mark_;        // size at the last progress
  int idle_ = 0;         // attempts since then
  int changes_ = 0;      // of the version, on the server
};

// Throws the error for a status that is neither 200 nor 206.
[[noreturn]] void refuse(const std::string& url, const HttpAnswer& answer);

}  // namespace prism::llm
