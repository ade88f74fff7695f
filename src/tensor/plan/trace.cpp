// Writes the trace as a JSON array, flushed after each event so that a crash leaves a readable
// file.
#include "tensor/plan/trace.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + '"';
}

class TraceFile {
 public:
  TraceFile() : began_(std::chrono::steady_clock::now()) {
    const char* path = std::getenv("PRISM_TRACE");
    if (!path || !*path) return;
    file_.open(path);
    if (!file_) {
      throw Error(ErrorCode::kIo,
                  fmt::format("PRISM_TRACE: cannot write {}; name a file in an existing "
                              "folder",
                              path));
    }
    file_ << "[\n";
    on_ = true;
  }
  ~TraceFile() {
    if (on_) file_ << "{}]\n";
  }

  bool on() const { return on_; }
  double now() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began_)
        .count();
  }
  void step(const std::string& device, const std::string& name, double start, double duration,
            uint64_t bytes, const std::string& details) {
    const std::scoped_lock lock(mutex_);
    const auto [line, fresh] = lines_.try_emplace(device, lines_.size() + 1);
    if (fresh)
      file_ << fmt::format(
          R"({{"name":"thread_name","ph":"M","pid":1,"tid":{},"args":{{"name":{}}}}},)"
          "\n",
          line->second, quoted(device));
    file_ << fmt::format(
        R"({{"name":{},"ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"shapes":{},"bytes":{},"GB/s":{:.1f}}}}},)"
        "\n",
        quoted(name), line->second, start, duration, quoted(details), bytes,
        static_cast<double>(bytes) / (duration > 0 ? duration : 1) * 1e-3);
    file_.flush();
  }

 private:
  std::chrono::steady_clock::time_point began_;
  std::ofstream file_;
  bool on_ = false;
  std::mutex mutex_;
  std::map<std::string, size_t> lines_;  // device to line of the trace
};

TraceFile& trace_file() {
  static TraceFile file;
  return file;
}

}  // namespace

bool tracing() { return trace_file().on(); }

double trace_now() { return trace_file().now(); }

void trace_step(const std::string& device, const std::string& name, double start_us,
                double duration_us, uint64_t bytes, const std::string& details) {
  trace_file().step(device, name, start_us, duration_us, bytes, details);
}

}  // namespace prism
