// Runs work on a few threads.
#include "server/work_queue.h"

#include <system_error>

#include <fmt/format.h>

#include "base/system/start_thread.h"
#include "prism/warning.h"

namespace prism::server {

WorkQueue::WorkQueue(size_t threads) {
  threads_.reserve(threads);
  threads_.push_back(start_thread("server", [this] { run(); }));
  try {
    while (threads_.size() < threads) threads_.emplace_back([this] { run(); });
  } catch (const std::system_error& error) {
    warn(
        fmt::format("only {} of {} threads for requests could be started ({}); the work goes on "
                    "with these",
                    threads_.size(), threads, error.code().message()));
  }
}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& each : threads_) each.join();
}

void WorkQueue::add(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void WorkQueue::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return is_stopping_ || !work_.empty(); });
      if (is_stopping_) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace prism::server
