// Reads input files in blocks, up to a limit.
#include "base/system/input_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "prism/error.h"

#ifndef _WIN32
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#endif

namespace prism {
namespace {

constexpr size_t kBlock = 1 << 16;

[[noreturn]] void fail(ErrorCode code, const std::string& name, const std::string& reason) {
  throw Error(code, fmt::format("\"{}\" cannot be read: {}", name, reason));
}

[[noreturn]] void fail_too_long(const std::string& name, uint64_t limit) {
  fail(ErrorCode::kInvalidArgument, name,
       fmt::format("it has more than {}; is it the right file?", size_text(limit)));
}

#ifndef _WIN32
// A descriptor that does not block when it is opened.
class Input {
 public:
  explicit Input(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (file_ < 0)
      fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path_,
           fmt::format("{}; is the path right?", std::strerror(errno)));
  }
  ~Input() { close(file_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Returns 0 at the end.
  size_t read(char* to, size_t count, bool is_pipe) {
    constexpr int kWaits = 40, kWaitMs = 50;
    for (int waits = 0;;) {
      const ssize_t got = ::read(file_, to, count);
      if (got > 0 || (got == 0 && (!is_pipe || has_writer_))) {
        has_writer_ = true;
        return static_cast<size_t>(got);
      }
      if (got == 0) {  // a pipe before its writer has come
        if (++waits > kWaits) fail(ErrorCode::kIo, path_, "it is a pipe that no process writes to");
        poll(nullptr, 0, kWaitMs);
      } else if (errno == EAGAIN) {
        has_writer_ = true;
        pollfd wanted{.fd = file_, .events = POLLIN, .revents = 0};
        poll(&wanted, 1, -1);
      } else if (errno != EINTR) {
        fail(errno == EISDIR ? ErrorCode::kInvalidArgument : ErrorCode::kIo, path_,
             std::strerror(errno));
      }
    }
  }

 private:
  std::string path_;
  int file_;
  bool has_writer_ = false;
};
#endif

}  // namespace

std::string read_input(std::istream& stream, const std::string& name, uint64_t limit) {
  std::string content;
  std::vector<char> block(kBlock);
  while (stream.read(block.data(), kBlock), stream.gcount() > 0) {
    content.append(block.data(), static_cast<size_t>(stream.gcount()));
    if (content.size() > limit) fail_too_long(name, limit);
  }
  if (stream.bad()) fail(ErrorCode::kIo, name, std::strerror(errno));
  return content;
}

#ifdef _WIN32
std::string read_input_file(const std::string& path, uint64_t limit) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail(ErrorCode::kNotFound, path, "is the path right?");
  return read_input(stream, path, limit);
}
#else
std::string read_input_file(const std::string& path, uint64_t limit) {
  Input input(path);
  std::error_code ignored;
  const bool is_pipe = std::filesystem::is_fifo(path, ignored);
  std::string content;
  std::vector<char> block(kBlock);
  while (const size_t got = input.read(block.data(), kBlock, is_pipe)) {
    content.append(block.data(), got);
    if (content.size() > limit) fail_too_long(path, limit);
  }
  return content;
}
#endif

}  // namespace prism
