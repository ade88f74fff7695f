// A few threads for work that would hold up the server's thread: parsing, templates, tokenizing.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace prism::server {

class WorkQueue {
 public:
  explicit WorkQueue(size_t threads);
  ~WorkQueue();  // finishes the work that has begun and drops the rest
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(std::function<void()> work);  // in order; work must not throw

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace prism::server
