// Threads that share loops: each loop is cut into chunks that the caller and the workers take in
// turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace prism {

class ThreadPool {
 public:
  // threads counts the caller: a pool of one starts none.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }

  // Calls work(first, last) for ranges of at most `chunk` that together are [0, count), and returns
  // when all are done. The first exception stops what has not begun and is thrown here. May be
  // called from any thread; called from inside a loop of a pool, it runs where it stands.
  using Work = std::function<void(uint64_t first, uint64_t last)>;
  void parallel_for(uint64_t count, uint64_t chunk, const Work& work);

 private:
  struct Job;
  void worker();
  static void take_part(Job& job);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<Job> job_;  // the newest, guarded by mutex_
  std::atomic<uint64_t> generation_{
      0};              // counts jobs, so that idle workers can watch without the lock
  bool stop_ = false;  // guarded by mutex_
  std::vector<std::thread> workers_;
};

}  // namespace prism
