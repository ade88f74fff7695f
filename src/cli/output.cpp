// Stream buffers that escape text on its way to standard output and standard error.
#include "cli/output.h"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <mutex>
#include <random>
#include <streambuf>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/system/is_terminal.h"
#include "base/utf8.h"
#include "prism/error.h"

#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif

namespace prism::cli {
namespace {

constexpr char kEnd = '\a';  // ends a wrapped control sequence

// The beginning of a wrapped control sequence: different in every run, so that no file can hold it.
const std::string& wrapping() {
  static const std::string text = [] {
    std::random_device random;
    return fmt::format("\033{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  }();
  return text;
}

// Opens the standard streams that the caller has closed, in the direction in which they cannot be
// used. Otherwise the next file that is opened would take their place, and text for standard output
// would be written into it.
void occupy_standard_streams() {
#ifndef _WIN32
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)!open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);  // takes the lowest free number
#endif
}

class Escaping : public std::streambuf {
 public:
  explicit Escaping(std::ostream& stream) : stream_(stream), target_(stream.rdbuf(this)) {}
  ~Escaping() override {
    write_pending();
    if (!pending_.empty()) put(printable(pending_, Lines::kept));  // an incomplete character
    target_->pubsync();
    stream_.rdbuf(target_);
  }
  Escaping(const Escaping&) = delete;
  Escaping& operator=(const Escaping&) = delete;

  // The system's reason for the first write that failed; 0 if there is none.
  int failure() const { return failure_; }

  bool write_unchanged(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    write_pending();
    put(text);
    return flush();
  }

 protected:
  int overflow(int byte) override {
    const auto one = traits_type::to_char_type(byte);
    return byte == traits_type::eof() || xsputn(&one, 1) == 1 ? traits_type::not_eof(byte)
                                                              : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    const std::scoped_lock lock(mutex_);
    pending_.append(text, static_cast<size_t>(count));
    if (pending_.size() >= kBlock) write_pending();
    return failure_ == 0 ? count : 0;
  }
  int sync() override {
    const std::scoped_lock lock(mutex_);
    write_pending();
    return flush() ? 0 : -1;
  }

 private:
  static constexpr size_t kBlock = 1 << 14;

  bool flush() {
    errno = 0;
    if (target_->pubsync() != 0) fail();
    return failure_ == 0;
  }
  void put(std::string_view text) {
    errno = 0;
    const auto count = static_cast<std::streamsize>(text.size());
    if (failure_ == 0 && target_->sputn(text.data(), count) != count) fail();
  }
  void fail() {
    if (failure_ == 0) failure_ = errno != 0 ? errno : EIO;
  }
  // Leaves the bytes of an incomplete character at the end.
  void write_pending() {
    std::string_view text = pending_;
    text.remove_suffix(utf8_open_bytes(text));
    const size_t taken = text.size();
    std::string escaped;
    while (!text.empty()) {
      const size_t plain = std::min(text.find(wrapping()), text.size());
      escaped += printable(text.substr(0, plain), Lines::kept);
      text.remove_prefix(plain);
      if (text.empty()) break;
      text.remove_prefix(wrapping().size());
      const size_t end = std::min(text.find(kEnd), text.size());
      escaped += text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    pending_.erase(0, taken);
    if (!escaped.empty()) put(escaped);
  }

  std::ostream& stream_;
  std::streambuf* target_;
  std::mutex mutex_;  // warnings and progress come from other threads
  std::string pending_;
  int failure_ = 0;
};

}  // namespace

struct ProgramOutput::Streams {
  Escaping output{std::cout}, error{std::cerr};
};

ProgramOutput::ProgramOutput() {
  occupy_standard_streams();
  streams_ = std::make_unique<Streams>();
}

ProgramOutput::~ProgramOutput() = default;

void ProgramOutput::finish() {
  std::cout.flush();
  if (std::cout.good()) return;
  const int reason = streams_->output.failure();
  throw Error(ErrorCode::kIo,
              fmt::format("standard output cannot be written: {}; the output is incomplete",
                          std::strerror(reason != 0 ? reason : EIO)));
}

std::string control_sequence(const std::string& code) { return wrapping() + code + kEnd; }

bool write_generated(std::string_view text) {
  auto* const escaping = dynamic_cast<Escaping*>(std::cout.rdbuf());
  if (!escaping || is_terminal(Stream::output))
    std::cout << text << std::flush;
  else if (!escaping->write_unchanged(text))
    std::cout.setstate(std::ios::badbit);
  return std::cout.good();
}

}  // namespace prism::cli
