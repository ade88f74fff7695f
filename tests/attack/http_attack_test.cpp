// Downloads from hostile servers, with libcurl and with the program curl: each ends soon, with an
// error that says what the server did and with no file under the final name.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "base/sha256.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/store/download.h"
#include "llm/store/model_start.h"
#include "prism/error.h"
#include "support/attack_rounds.h"
#include "support/http_provider.h"
#include "support/http_server.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

namespace fs = std::filesystem;
using Request = test::HttpServer::Request;
using Send = test::HttpServer::Send;
using Script = test::HttpServer::Script;

constexpr int kAttempts = 3;

// A small model file; another seed gives other content of the same size.
std::string model(uint32_t seed) {
  const test::TemporaryFolder folder;
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  std::vector<float> values(50000);
  std::mt19937 random(seed);
  for (float& value : values) value = static_cast<float>(random());
  writer.add_tensor("t", {50000}, DType::f32, std::as_bytes(std::span(values)));
  writer.write(folder / "m.gguf");
  return test::read_file(folder / "m.gguf");
}
const std::string& content() {
  static const std::string made = model(1);
  return made;
}
const std::string& other_content() {
  static const std::string made = model(2);
  return made;
}

std::string digest(const std::string& text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

std::string text_of(size_t number) { return std::to_string(number); }

// An answer that ends with its connection. lines: headers, each with its line end.
std::string answer(const std::string& status, const std::string& lines,
                   std::string_view body = "") {
  std::string text = "HTTP/1.1 " + status + "\r\n" + lines + "Connection: close\r\n\r\n";
  return text.append(body);
}
std::string whole(std::string_view body, const std::string& lines = "ETag: \"a\"\r\n") {
  return answer("200 OK", "Content-Length: " + text_of(body.size()) + "\r\n" + lines, body);
}
// The first bytes of an answer that announces all.
std::string cut(size_t bytes, const std::string& lines = "ETag: \"a\"\r\n") {
  return answer("200 OK", "Content-Length: " + text_of(content().size()) + "\r\n" + lines,
                std::string_view(content()).substr(0, bytes));
}
std::string range_line(size_t first, size_t last, size_t all) {
  return "Content-Range: bytes " + text_of(first) + "-" + text_of(last) + "/" + text_of(all) +
         "\r\n";
}
// The rest of a content from a byte on, as a right server would send it.
std::string rest(const std::string& from, size_t first, const std::string& lines) {
  const std::string_view body = std::string_view(from).substr(first);
  return answer("206 Part",
                "Content-Length: " + text_of(body.size()) + "\r\n" +
                    range_line(first, from.size() - 1, from.size()) + lines,
                body);
}
std::string redirect(const std::string& to) {
  return answer("302 Found", "Location: " + to + "\r\nContent-Length: 0\r\n");
}

Script always(const std::string& text) {
  return [text](const Request&, const Send& send) { send(text); };
}
// The first half to a request for the whole file, then what `second` says.
Script half_then(const std::function<std::string(size_t first)>& second,
                 const std::string& lines = "ETag: \"a\"\r\n") {
  return [=](const Request& request, const Send& send) {
    send(request.range.empty() ? cut(content().size() / 2, lines) : second(request.first_byte()));
  };
}
Script half_then(const std::string& second) {
  return half_then([second](size_t) { return second; });
}
Script endless(const std::string& start, const std::string& piece) {
  return [=](const Request&, const Send& send) {
    if (send(start))
      while (send(piece)) continue;
  };
}
Script slow(const std::string& start, const std::string& piece) {
  return [=](const Request&, const Send& send) {
    if (send(start))
      while (send(piece)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
}
std::string chunk(const std::string& text) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return size + text + "\r\n";
}
const std::string kChunked = answer("200 OK", "Transfer-Encoding: chunked\r\nETag: \"a\"\r\n");
const std::string kUnsized = answer("200 OK", "ETag: \"a\"\r\n");

struct Attack {
  std::string name;
  Script script;
  std::vector<std::string> says;  // the error contains one of these
};

std::vector<Attack> content_attacks() {
  const std::string page = "<!DOCTYPE html><html>Please log in</html>";
  const std::string packed("\x1f\x8b\x08\0\0\0\0\0", 8);
  std::string version_nine = content(), long_name = content();
  version_nine[4] = 9;
  for (size_t i = 31; i < 36; ++i) long_name[i] = '\x7f';
  return {
      {"web page", always(whole(page)), {"web page"}},
      {"web page without a size", always(kUnsized + page), {"web page"}},
      {"web page in chunks", always(kChunked + chunk(page) + "0\r\n\r\n"), {"web page"}},
      {"a few bytes of a web page", always(whole("<")), {"web page"}},
      {"empty", always(whole("")), {"an empty file"}},
      {"empty without a size", always(kUnsized), {"an empty file"}},
      {"empty chunks", always(kChunked + "0\r\n\r\n"), {"an empty file"}},
      {"gzip", always(whole(packed, "Content-Encoding: gzip\r\n")), {"encoded as \"gzip\""}},
      {"gzip of a model", always(whole(content(), "Content-Encoding: gzip\r\n")), {"\"gzip\""}},
      {"gzip unlabelled", always(whole(packed)), {"does not begin with"}},
      {"two encodings",
       always(whole(content(), "Content-Encoding: br\r\nContent-Encoding: gzip\r\n")),
       {"\"br, gzip\""}},
      {"cut without a size", always(kUnsized + content().substr(0, 90000)), {"needs", "ends at"}},
      {"only a magic number", always(whole("GGUF")), {"left"}},
      {"half of a header", always(whole(content().substr(0, 40))), {"left", "more than the"}},
      {"one byte short", always(whole(content().substr(0, content().size() - 64))), {"ends at"}},
      {"unknown version of GGUF", always(whole(version_nine)), {"GGUF version 9"}},
      {"impossible header", always(whole(long_name)), {"left", "more than"}},
      {"random bytes", always(whole(digest("x") + digest("y"))), {"does not begin with"}},
      {"endless after the model",
       endless(kUnsized + content(), std::string(1 << 16, 'x')),
       {"goes on sending"}},
      {"endless chunks",
       endless(kChunked + chunk(content()), chunk(std::string(1 << 16, 'x'))),
       {"goes on sending"}},
      {"another checksum as ETag",
       always(whole(content(), "ETag: \"" + digest("x") + "\"\r\n")),
       {"was expected"}},
  };
}

std::vector<Attack> length_attacks() {
  const std::string& all = content();
  const auto sized = [&](const std::string& lines) { return answer("200 OK", lines, all); };
  return {
      {"negative length",
       always(sized("Content-Length: -5\r\n")),
       {"Content-Length", "not valid HTTP"}},
      {"length in words",
       always(sized("Content-Length: all\r\n")),
       {"Content-Length", "not valid HTTP"}},
      {"length with a unit",
       always(sized("Content-Length: 200320 bytes\r\n")),
       {"Content-Length", "not valid HTTP"}},
      {"length over 64 bits",
       always(sized("Content-Length: 18446744073709551700\r\n")),
       {"Content-Length", "too large", "no whole answer"}},
      {"length over any disk", always(sized("Content-Length: 1000000000000000\r\n")), {"disk has"}},
      {"two lengths",
       always(sized("Content-Length: 10\r\nContent-Length: 200000\r\n")),
       {"\"10, 200000\"", "no whole answer"}},
      {"length too small", always(sized("Content-Length: 100000\r\n")), {"ends at"}},
      {"length too large",
       always(sized("Content-Length: " + text_of(all.size() + 9) + "\r\n")),
       {"cut after"}},
      {"chunk size in words", always(kChunked + "zz\r\nGGUF"), {"cut after", "malformed"}},
      {"chunk size over 64 bits", always(kChunked + "fffffffffffffffffff\r\nGGUF"), {"cut after"}},
      {"negative chunk size", always(kChunked + "-4\r\nGGUF"), {"cut after"}},
      {"chunks without an end", always(kChunked + chunk(all)), {"cut after"}},
      {"chunk shorter than its size",
       always(kChunked + "30d40\r\n" + all.substr(0, 9)),
       {"cut after"}},
      {"encoding unknown to HTTP",
       always(answer("200 OK", "Transfer-Encoding: what\r\n", "data")),
       {"does not begin with", "cut after", "no whole answer"}},
  };
}

std::vector<Attack> range_attacks() {
  const std::string& all = content();
  const size_t half = all.size() / 2, size = all.size();
  const std::string tail = all.substr(half), tag = "ETag: \"a\"\r\n";
  const auto part = [&](const std::string& lines, const std::string& body) {
    return answer("206 Part", lines, body);
  };
  const std::string right = range_line(half, size - 1, size);
  return {
      {"cut, without ranges", always(cut(1000)), {"ignores Range"}},
      {"cut, without a validator", always(cut(100000, "")), {"cut after 100000"}},
      {"cut before the first byte", always(cut(0)), {"cut after 0"}},
      {"416 always", always(answer("416 No", "Content-Range: bytes */5\r\n")), {"answers 416"}},
      {"416 for the rest",
       half_then(answer("416 No", "Content-Range: bytes */5\r\n")),
       {"answers 416 to a request from byte"}},
      {"416 of the size so far",
       half_then(answer("416 No", "Content-Range: bytes */" + text_of(half) + "\r\n" + tag)),
       {"answers 416 to a request from byte"}},
      {"another ETag in the second half",
       half_then([](size_t first) { return rest(other_content(), first, "ETag: \"b\"\r\n"); }),
       {"changed on the server"}},
      {"weak ETag in the second half",
       half_then([](size_t first) { return rest(other_content(), first, "ETag: W/\"a\"\r\n"); }),
       {"changed on the server"}},
      {"no ETag in the second half",
       half_then([](size_t first) { return rest(other_content(), first, ""); }),
       {"changed on the server"}},
      {"two ETags in the second half",
       half_then(
           [=](size_t first) { return rest(other_content(), first, tag + "ETag: \"b\"\r\n"); }),
       {"changed on the server"}},
      {"another date in the second half",
       half_then(
           [](size_t first) { return rest(other_content(), first, "Last-Modified: Tue\r\n"); },
           "Last-Modified: Mon\r\n"),
       {"changed on the server"}},
      {"another size in the second half",
       half_then([=](size_t first) { return rest(all + "0123", first, tag); }),
       {"changed on the server"}},
      {"another version each time",
       [turn = 0](const Request&, const Send& send) mutable {
         send(cut(70000, "ETag: \"" + text_of(turn++) + "\"\r\n"));
       },
       {"changed on the server"}},
      {"part from another byte",
       half_then([=](size_t first) { return rest(all, first - 1, tag); }),
       {"Content-Range"}},
      {"part without a range", half_then(part(tag, tail)), {"Content-Range \"\""}},
      {"range in words",
       half_then(part(tag + "Content-Range: bytes a-b/c\r\n", tail)),
       {"Content-Range \"bytes a-b/c\""}},
      {"range backwards",
       half_then(part(tag + range_line(half, half - 1, size), tail)),
       {"Content-Range"}},
      {"range beyond the end",
       half_then(part(tag + range_line(half, size, size), tail)),
       {"Content-Range"}},
      {"range over 64 bits",
       half_then(part(tag + "Content-Range: bytes " + text_of(half) +
                          "-18446744073709551616/18446744073709551617\r\n",
                      tail)),
       {"Content-Range"}},
      {"range of the largest number",
       half_then(part(tag + "Content-Range: bytes " + text_of(half) + "-18446744073709551615/*\r\n",
                      tail)),
       {"Content-Range"}},
      {"two ranges",
       half_then(part(tag + right + range_line(0, 9, size), tail)),
       {"Content-Range"}},
      {"several parts in one",
       half_then(part(tag + "Content-Type: multipart/byteranges; boundary=x\r\n", "--x\r\n")),
       {"Content-Range"}},
      {"length other than the range",
       half_then(part(tag + right + "Content-Length: " + text_of(tail.size() + 99) + "\r\n",
                      tail + std::string(99, 'x'))),
       {"Content-Length"}},
      {"more than the range", half_then(part(tag + right, tail + "more")), {"more than the"}},
      {"endless after the range",
       [=](const Request& request, const Send& send) {
         if (request.range.empty())
           send(cut(half));
         else
           endless(part(tag + right, tail), std::string(1 << 16, 'x'))(request, send);
       },
       {"more than the"}},
      {"a byte for each request",
       [](const Request& request, const Send& send) {
         const size_t first = request.first_byte();
         const std::string lines = range_line(first, first, content().size()) + "ETag: \"a\"\r\n";
         send(answer("206 Part", lines, content().substr(first, 1)));
       },
       {"brought less than"}},
      {"part in place of the whole", always(rest(all, half, tag)), {"Content-Range"}},
      {"half in gzip",
       half_then(part(tag + right + "Content-Encoding: gzip\r\n", tail)),
       {"\"gzip\""}},
      {"half, then refused", half_then(answer("403 No", "")), {"refuses access"}},
      {"half, then a failure", half_then(answer("503 No", "")), {"answers 503"}},
  };
}

std::vector<Attack> header_attacks() {
  const std::string& all = content();
  const std::string long_line(1 << 20, 'x');
  const std::vector<std::string> nothing = {"no whole answer"};
  const std::vector<std::string> refused = {"which is neither http nor https"};
  return {
      {"no byte", always(""), nothing},
      {"status alone", always("HTTP/1.1 200 OK\r\n"), nothing},
      {"half of the headers", always("HTTP/1.1 200 OK\r\nContent-Length: 20"), nothing},
      {"no status", always("Content-Length: 5\r\n\r\nGGUF"), nothing},
      {"HTTP/0.9", always(all), nothing},
      {"status in words", always("HTTP/1.1 good OK\r\n\r\nGGUF"), nothing},
      {"status 0", always("HTTP/1.1 000 OK\r\n\r\nGGUF"), nothing},
      {"status 999", always(answer("999 What", "", all)), {"answers 999", "no whole answer"}},
      {"no content", always(answer("204 No", "ETag: \"a\"\r\n")), {"answers 204"}},
      {"not modified", always(answer("304 Same", "ETag: \"a\"\r\n")), {"answers 304"}},
      {"interim answer alone", always("HTTP/1.1 100 Continue\r\n\r\n"), nothing},
      {"endless interim answers", endless("", "HTTP/1.1 100 Continue\r\n\r\n"), nothing},
      {"endless headers", endless("HTTP/1.1 200 OK\r\n", "X-More: of them\r\n"), nothing},
      {"endless header line", endless("HTTP/1.1 200 OK\r\nX: ", long_line), nothing},
      {"a header of 1 MB", always(whole(all, "X: " + long_line + "\r\n")), nothing},
      {"1 MB of headers",
       [all, lines =
                 [] {
                   std::string text;
                   for (int i = 0; i < 20000; ++i)
                     text += "X-" + text_of(i) + ": some text for this\r\n";
                   return text;
                 }()](const Request&, const Send& send) { send(whole(all, lines)); },
       nothing},
      {"endless redirects", always(redirect("/")), {"edirects"}},
      {"endless redirects to new places",
       [turn = 0](const Request&, const Send& send) mutable {
         send(redirect("/" + text_of(turn++)));
       },
       {"edirects"}},
      {"redirect to a file", always(redirect("file:///etc/passwd")), refused},
      {"redirect to FTP", always(redirect("ftp://127.0.0.1/f")), refused},
      {"redirect to gopher", always(redirect("gopher://127.0.0.1:1/_x")), refused},
      {"redirect to a dictionary", always(redirect("dict://127.0.0.1:1/d")), refused},
      {"redirect to a bad address", always(redirect("http://[::/")), nothing},
      {"redirect to a closed port", always(redirect("http://127.0.0.1:1/f")), nothing},
      {"redirect without an address", always(answer("302 Found", "")), {"answers 302"}},
      {"redirect with another checksum",
       [](const Request& request, const Send& send) {
         send(request.path == "/b" ? whole(content())
                                   : answer("302 Found", "Location: /b\r\nX-Linked-Etag: \"" +
                                                             digest("x") + "\"\r\n"));
       },
       {"was expected"}},
  };
}

std::vector<Attack> slow_attacks() {
  std::vector<Attack> attacks = {
      {"silence", slow("", ""), {"no whole answer"}},
      {"a byte now and then", slow(cut(0), "G"), {"cut after", "does not begin with"}},
  };
  if (test::attack_rounds(1) > 1)
    attacks.push_back(
        {"headers byte by byte", slow("HTTP/1.1 200 OK\r\nX: ", "x"), {"no whole answer"}});
  return attacks;
}

class HttpAttack : public test::HttpProviderTest {
 protected:
  DownloadResult fetch(const test::HttpServer& server, const std::string& path, int attempts) {
    DownloadOptions options;
    options.attempts = attempts;
    options.pause_seconds = 0.001;
    options.stall_seconds = 1;
    const std::string url = server.url("/m.gguf");
    options.check_start = [&](std::span<const std::byte> start, std::optional<uint64_t> bytes) {
      return model_bytes_by_start(url, start, bytes);
    };
    return download(url, path, options);
  }

  void run(const Attack& attack, int attempts = kAttempts) {
    SCOPED_TRACE(attack.name);
    const test::TemporaryFolder folder;
    const std::string path = folder / "m.gguf";
    test::HttpServer server;
    server.script("*", attack.script);
    try {
      fetch(server, path, attempts);
      ADD_FAILURE() << "the download counts as complete";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_TRUE(std::ranges::any_of(attack.says, [&](const std::string& text) {
        return what.find(text) != std::string::npos;
      })) << what;
      EXPECT_TRUE(what.starts_with(server.url("/m.gguf")) || what.starts_with(path)) << what;
    }
    EXPECT_FALSE(fs::exists(path));
    EXPECT_LE(server.requests().size(), 40u);
    // What is left must not harm a later download from a right server.
    test::HttpServer repaired;
    repaired.serve("/m.gguf", {.content = content(), .etag = "\"a\""});
    EXPECT_EQ(fetch(repaired, path, attempts).sha256, digest(content()));
    EXPECT_EQ(test::read_file(path), content());
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  }
};
INSTANTIATE_TEST_SUITE_P(By, HttpAttack, testing::Values(false, true), test::provider_name);

TEST_P(HttpAttack, Contents) {
  for (const Attack& attack : content_attacks()) run(attack);
}
TEST_P(HttpAttack, Lengths) {
  for (const Attack& attack : length_attacks()) run(attack);
}
TEST_P(HttpAttack, Ranges) {
  for (const Attack& attack : range_attacks()) run(attack);
}
TEST_P(HttpAttack, Headers) {
  for (const Attack& attack : header_attacks()) run(attack);
}
TEST_P(HttpAttack, SlowServers) {
  for (const Attack& attack : slow_attacks()) run(attack, 1);
}

// Answers put together at random: the file under the final name is the server's content, or there
// is none.
TEST_P(HttpAttack, RandomServers) {
  const int64_t rounds = test::attack_rounds(20);
  for (int64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const test::TemporaryFolder folder;
    const std::string path = folder / "m.gguf";
    test::HttpServer server;
    std::mt19937 random(static_cast<uint32_t>(round));
    const auto pick = [&random](size_t below) { return random() % below; };
    server.script("*", [&](const Request& request, const Send& send) {
      const bool is_other = pick(4) == 0;
      const std::string& from = is_other ? other_content() : content();
      const std::string tag = is_other ? "ETag: \"b\"\r\n" : "ETag: \"a\"\r\n";
      const size_t first = request.first_byte(), size = from.size();
      const size_t sent = pick(3) == 0 ? pick(size) : size;
      const std::string lines = pick(5) == 0 ? "" : tag;
      const std::string length = "Content-Length: " + text_of(size - first) + "\r\n";
      switch (pick(6)) {
        case 0:
          return (void)send(answer("416 No", "Content-Range: bytes */" + text_of(size) + "\r\n"));
        case 1:
          return (void)send(redirect("/" + text_of(pick(9))));
        case 2:
          return (void)send(cut(pick(size), lines + (is_other ? "ETag: \"c\"\r\n" : "")));
        default:
          break;
      }
      const bool has_range = first > 0 && pick(4) != 0;
      const std::string body = has_range ? from.substr(first, sent) : from.substr(0, sent);
      const std::string all = "Content-Length: " + text_of(size) + "\r\n";
      send(has_range ? answer("206 Part", length + range_line(first, size - 1, size) + lines, body)
                     : answer("200 OK", all + lines, body));
    });
    try {
      fetch(server, path, kAttempts);
      const std::string file = test::read_file(path);
      EXPECT_TRUE(file == content() || file == other_content());
    } catch (const Error&) {
      EXPECT_FALSE(fs::exists(path));
    }
  }
}

}  // namespace
}  // namespace prism::llm
