// Fuzzes resumed downloads against a simulated server whose answers come from the input.
//
// The server is hostile but for one thing: the ETag, the date and the first byte of a range that it
// sends are those of the bytes that follow. Content that counts as complete must then be one whole
// version, and the number of requests is bounded.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "llm/store/http_headers.h"
#include "llm/store/resume.h"
#include "prism/error.h"

using namespace prism;
using namespace prism::llm;

namespace {

constexpr int kAttempts = 3;
constexpr size_t kMostBytes = 150000;
// Each progress allows kAttempts requests, and each of kAttempts versions may make all of it.
constexpr int kMostRequests =
    kAttempts * (kAttempts + 1) * (static_cast<int>(kMostBytes / kLeastProgress) + 2);

const std::array<std::string, 3>& versions() {
  static const std::array<std::string, 3> made = [] {
    std::array<std::string, 3> all;
    uint32_t state = 1;
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].resize(i == 2 ? 90000 : kMostBytes);
      for (char& c : all[i]) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    }
    return all;
  }();
  return made;
}

struct Interrupted {};  // the process ends

// A file as the pieces that were appended to it. They are static, so nothing is copied.
class Content {
 public:
  size_t size() const { return bytes_; }
  void clear() { *this = {}; }
  void append(std::string_view piece) {
    pieces_.push_back(piece);
    bytes_ += piece.size();
  }
  bool is(std::string_view whole) const {
    if (bytes_ != whole.size()) return false;
    for (const std::string_view piece : pieces_) {
      const std::string_view right = whole.substr(0, piece.size());
      if (piece.data() != right.data() && piece != right) return false;
      whole.remove_prefix(piece.size());
    }
    return true;
  }

 private:
  std::vector<std::string_view> pieces_;
  size_t bytes_ = 0;
};

// The input, byte by byte; zeros after its end.
struct Choices {
  std::string_view rest;
  unsigned pick(unsigned below) {
    if (rest.empty()) return 0;
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    return byte % below;
  }
  size_t size(size_t most) { return most * pick(256) / 255; }
};

// The server, and the disk with the content and its version.
class World : public ResumeIo {
 public:
  explicit World(Choices choices) : choices_(choices) {}

  Content content;
  std::string version_text;  // what the file beside the content holds
  int requests = 0;

  HttpAnswer get(HttpRequest& request) override {
    if (++requests > kMostRequests) __builtin_trap();
    const unsigned kind = choices_.pick(8);
    if (kind == 7) throw HttpNoAnswer("no answer");
    const unsigned which = choices_.pick(3);
    const std::string& from = versions()[which];
    HttpHeaders headers;
    const bool has_range = request.first_byte > 0 && kind < 4;
    const size_t first = !has_range ? 0
                         : choices_.pick(8) == 7
                             ? choices_.size(from.size())
                             : std::min<size_t>(request.first_byte, from.size());
    size_t end = from.size();
    if (kind == 3 && has_range)
      end = first + choices_.size(end - first);  // less than was requested
    static constexpr int kOthers[] = {416, 404, 302, 503, 204, 0, 99, 100};
    const int status = kind == 6 ? kOthers[choices_.pick(8)] : has_range ? 206 : 200;
    headers.line("HTTP/1.1 " + std::to_string(status) + " X");
    describe(headers, which, status, first, end);
    headers.line("");
    HttpAnswer answer = headers.answer();
    if (!headers.is_final()) throw HttpNoAnswer("no whole answer");
    if (request.answer(answer)) send(request, answer, from, first, end);
    return answer;
  }
  void clear() override { content.clear(); }
  void begin(const ContentVersion& version) override { version_text = version.text(); }
  void append(std::span<const std::byte> bytes) override {
    content.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (choices_.pick(64) == 63) throw Interrupted();
  }
  void pause(int) override {}

 private:
  void describe(HttpHeaders& headers, unsigned which, int status, size_t first, size_t end) {
    const std::string name = std::to_string(which);
    const unsigned absent = choices_.pick(16), odd = choices_.pick(16);
    if ((absent & 1) == 0) headers.line("ETag: \"" + name + "\"");
    if ((absent & 2) == 0) headers.line("Last-Modified: day " + name);
    if (odd == 1 && (absent & 1) == 0) headers.line("ETag: \"more\"");  // joined to the first
    if (odd == 2) headers.line("Content-Encoding: gzip");
    if (odd == 3) headers.line("Content-Length: x");
    if (odd == 4) headers.line("Transfer-Encoding: chunked");
    const size_t bytes = end - first + (odd == 5 && status == 206 ? 1 : 0);
    if ((absent & 4) == 0) headers.line("Content-Length: " + std::to_string(bytes));
    if (status == 200 || (absent & 8) != 0) return;
    const std::string all = std::to_string(versions()[which].size());
    const std::string last = std::to_string(end + (odd == 6 ? 7 : 0) - 1);
    headers.line("Content-Range: bytes " + std::to_string(first) + "-" + last + "/" +
                 (odd == 7   ? "*"
                  : odd == 8 ? "999999"
                             : all));
  }

  // Sends all, less with a problem, or more than was announced.
  void send(HttpRequest& request, HttpAnswer& answer, const std::string& from, size_t first,
            size_t end) {
    std::string_view body = std::string_view(from).substr(first, end - first);
    const unsigned kind = choices_.pick(4);
    if (kind == 1) {
      body = body.substr(0, choices_.size(body.size()));
      answer.problem = "cut";
    }
    while (!body.empty()) {
      const size_t piece = std::max<size_t>(body.size() - choices_.size(body.size()), 1);
      request.content(std::as_bytes(std::span(body.data(), piece)));
      body.remove_prefix(piece);
    }
    static constexpr std::string_view kMore = "more than any range announces";
    if (kind == 2 && version_of(answer).bytes) request.content(std::as_bytes(std::span(kMore)));
  }

  Choices choices_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string url = "http://host/file";
  World world({{reinterpret_cast<const char*>(data), size}});
  for (int run = 0; run < 3; ++run) {  // each continues with what the one before left
    world.requests = 0;
    Resume resume(url, world, world.content.size(), ContentVersion::parse(world.version_text),
                  kAttempts);
    try {
      resume.run();
      if (std::ranges::none_of(versions(),
                               [&](const auto& each) { return world.content.is(each); }))
        __builtin_trap();
      if (resume.bytes() != world.content.size()) __builtin_trap();
      return 0;
    } catch (const Error&) {
      if (resume.can_continue() && resume.bytes() != world.content.size()) __builtin_trap();
      if (!resume.can_continue()) world.content.clear();
    } catch (const Interrupted&) {
    }
  }
  return 0;
}
