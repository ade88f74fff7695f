// A small HTTP server for one test: files with ranges, redirects and injected failures, and scripts
// that send any bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace prism::test {

struct ServedFile {
  std::string content = {};
  std::string etag = {};         // as sent, quotes included; empty: none
  std::string linked_etag = {};  // x-linked-etag of the redirect
  std::string redirect = {};     // path on this server; empty: none
  int status = 0;                // an error status to return; 0: none
  bool has_ranges = true;
  std::vector<size_t> cut_after = {};  // bytes after which the first responses are cut off
};

class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void serve(const std::string& path, const ServedFile& file);
  struct Request {
    std::string path, range, if_range, authorization;
    size_t first_byte() const;  // of the range; 0 without one
  };
  // Sends bytes. Returns false when the client has gone or the server stops; an empty text only
  // looks.
  using Send = std::function<bool(std::string_view)>;
  // Sends a whole answer, with its headers.
  using Script = std::function<void(const Request&, const Send&)>;
  void script(const std::string& path, const Script& script);  // "*": every path without its own

  std::string url(const std::string& path) const;
  std::vector<Request> requests() const;
  uint64_t sent_bytes() const { return sent_; }  // bytes of file contents

 private:
  void run();
  void answer(int connection);
  void answer_file(int connection, const Request& request, ServedFile* file);

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> sent_{0};
  mutable std::mutex mutex_;
  std::map<std::string, ServedFile> files_;
  std::map<std::string, std::shared_ptr<Script>> scripts_;
  std::vector<Request> requests_;
  std::thread thread_;
};

}  // namespace prism::test
