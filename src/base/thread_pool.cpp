// Workers watch for a new job for a moment, then sleep: launches that follow each other find them
// awake.
#include "base/thread_pool.h"

#include <algorithm>
#include <exception>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace prism {
namespace {

// Looks at the flag before a worker sleeps or a caller blocks: about 20 microseconds, twice what
// waking a sleeper takes, and short enough not to disturb a busy machine.
constexpr int kLooks = 1000;

thread_local bool inside_loop = false;

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#endif
}

}  // namespace

struct ThreadPool::Job {
  const Work* work = nullptr;  // only touched while a chunk is held, so the caller is still waiting
  uint64_t count = 0, chunk = 1;
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> finished{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable done;
  std::exception_ptr error;  // guarded by mutex
};

ThreadPool::ThreadPool(uint32_t threads) {
  for (uint32_t i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    ++generation_;
  }
  wake_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

void ThreadPool::take_part(Job& job) {
  while (true) {
    const uint64_t first = job.next.fetch_add(job.chunk);
    if (first >= job.count) return;
    const uint64_t last = std::min(first + job.chunk, job.count);
    if (!job.failed.load(std::memory_order_relaxed)) {
      try {
        (*job.work)(first, last);
      } catch (...) {
        job.failed = true;
        std::lock_guard lock(job.mutex);
        if (!job.error) job.error = std::current_exception();
      }
    }
    if (job.finished.fetch_add(last - first) + (last - first) == job.count) {
      std::lock_guard lock(
          job.mutex);  // so that the caller cannot miss it between its look and its wait
      job.done.notify_all();
    }
  }
}

void ThreadPool::worker() {
  inside_loop = true;
  uint64_t seen = 0;
  while (true) {
    for (int look = 0; look < kLooks && generation_.load(std::memory_order_acquire) == seen; ++look)
      relax();
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      if (stop_) return;
      seen = generation_.load();
      job = job_;
    }
    if (job) take_part(*job);
  }
}

void ThreadPool::parallel_for(uint64_t count, uint64_t chunk, const Work& work) {
  if (count == 0) return;
  chunk = std::max<uint64_t>(chunk, 1);
  if (workers_.empty() || inside_loop || count <= chunk) {
    for (uint64_t first = 0; first < count; first += chunk)
      work(first, std::min(first + chunk, count));
    return;
  }
  const auto job = std::make_shared<Job>();
  job->work = &work;
  job->count = count;
  job->chunk = chunk;
  {
    std::lock_guard lock(mutex_);
    job_ = job;
    ++generation_;
  }
  wake_.notify_all();
  inside_loop = true;
  take_part(*job);
  inside_loop = false;
  for (int look = 0; look < kLooks && job->finished.load() != count; ++look) relax();
  std::unique_lock lock(job->mutex);
  job->done.wait(lock, [&] { return job->finished.load() == count; });
  if (job->error) std::rethrow_exception(job->error);
}

}  // namespace prism
