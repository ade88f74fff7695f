// A small HTTP server for one test: files with ranges, redirects and injected failures.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
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
  std::string url(const std::string& path) const;
  struct Request {
    std::string path, range, if_range, authorization;
  };
  std::vector<Request> requests() const;
  uint64_t sent_bytes() const { return sent_; }  // bytes of file contents

 private:
  void run();
  void answer(int connection);

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> sent_{0};
  mutable std::mutex mutex_;
  std::map<std::string, ServedFile> files_;
  std::vector<Request> requests_;
  std::thread thread_;
};

}  // namespace prism::test
