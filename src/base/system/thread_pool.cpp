// Workers poll briefly for a new job (or as long as the pool is busy) before they sleep, so that
// consecutive launches find them awake.
#include "base/system/thread_pool.h"

#include <algorithm>
#include <exception>
#include <system_error>

#include <fmt/format.h>

#include "prism/warning.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace prism {
namespace {

// Polls before a worker sleeps or a caller blocks: about 20 microseconds, twice the cost of waking
// a sleeper, and short enough not to disturb a busy machine.
constexpr int kLooks = 1000;
// Polls in a busy pool before each further poll yields the processor: about 100 microseconds,
// longer than the gaps between the loops of one plan.
constexpr int kLooksBeforeYielding = 5000;

thread_local bool inside_loop = false;

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls until done() or, unless the pool is busy, until the poll limit.
template <class Done>
bool watch(const std::atomic<uint32_t>& busy, Done done) {
  for (int look = 0; !done(); ++look) {
    if (look >= kLooks && busy.load(std::memory_order_relaxed) == 0) return false;
    if (look < kLooksBeforeYielding) {
      relax();
    } else {
      std::this_thread::yield();
      look = kLooksBeforeYielding;
    }
  }
  return true;
}

class SlotLock {
 public:
  explicit SlotLock(std::atomic<bool>& locked) : locked_(locked) {
    for (int look = 0; locked_.exchange(true, std::memory_order_acquire); ++look)
      look < 100 ? relax() : std::this_thread::yield();  // the holder may have been descheduled
  }
  ~SlotLock() { locked_.store(false, std::memory_order_release); }
  SlotLock(const SlotLock&) = delete;
  SlotLock& operator=(const SlotLock&) = delete;

 private:
  std::atomic<bool>& locked_;
};

}  // namespace

struct ThreadPool::Job {
  Job(const Work& loop, uint64_t indices, uint64_t at_once)
      : work(loop), count(indices), chunk(at_once) {}

  const Work& work;
  const uint64_t count, chunk;
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr error;  // guarded by mutex
  alignas(64) std::atomic<uint64_t> next{0};
  alignas(64) std::atomic<uint32_t> workers{0};  // currently inside; the job outlives them
};

ThreadPool::ThreadPool(uint32_t threads) {
  workers_.reserve(threads);
  try {
    for (uint32_t i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
  } catch (const std::system_error& error) {
    // Processes are limited (ulimit -u, a control group's pids.max): loops run on fewer threads.
    warn(fmt::format("only {} of {} threads could be started ({}); the work goes on with these",
                     workers_.size() + 1, threads, error.code().message()));
  }
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
    const uint64_t first = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (first >= job.count) return;
    if (job.failed.load(std::memory_order_relaxed)) continue;
    try {
      job.work(first, std::min(first + job.chunk, job.count));
    } catch (...) {
      job.failed = true;
      std::lock_guard lock(job.mutex);
      if (!job.error) job.error = std::current_exception();
    }
  }
}

ThreadPool::Job* ThreadPool::enter() {
  SlotLock lock(slot_locked_);
  if (job_) job_->workers.fetch_add(1, std::memory_order_relaxed);
  return job_;
}

void ThreadPool::leave(Job& job) {
  if (job.workers.fetch_sub(1) != 1) return;
  // From here on the job may be destroyed.
  if (sleeping_callers_.load() == 0) return;
  { std::lock_guard lock(mutex_); }  // every caller is now before its check or waiting
  left_.notify_all();
}

void ThreadPool::worker() {
  inside_loop = true;
  uint64_t seen = 0;
  while (true) {
    const auto new_job = [&] { return generation_.load() != seen; };
    if (!watch(busy_, new_job)) {
      std::unique_lock lock(mutex_);
      ++sleeping_workers_;
      wake_.wait(lock, [&] { return new_job() || busy_.load() > 0; });
      --sleeping_workers_;
    }
    if (!new_job()) continue;
    if (stop_.load()) return;
    seen = generation_.load();
    if (Job* job = enter()) {
      take_part(*job);
      leave(*job);
    }
  }
}

void ThreadPool::wait_for_workers(Job& job) {
  const auto all_left = [&] { return job.workers.load() == 0; };
  if (watch(busy_, all_left)) return;
  std::unique_lock lock(mutex_);
  ++sleeping_callers_;
  left_.wait(lock, all_left);
  --sleeping_callers_;
}

void ThreadPool::parallel_for(uint64_t count, uint64_t chunk, const Work& work) {
  if (count == 0) return;
  chunk = std::max<uint64_t>(chunk, 1);
  if (workers_.empty() || inside_loop || count <= chunk) {
    for (uint64_t first = 0; first < count; first += std::min(chunk, count - first))
      work(first, first + std::min(chunk, count - first));
    return;
  }
  Job job(work, count, chunk);
  {
    SlotLock lock(slot_locked_);
    job_ = &job;
  }
  ++generation_;
  if (sleeping_workers_.load() > 0) {
    { std::lock_guard lock(mutex_); }  // every worker is now before its check or waiting
    wake_.notify_all();
  }
  inside_loop = true;
  take_part(job);
  inside_loop = false;
  {
    SlotLock lock(slot_locked_);
    if (job_ == &job) job_ = nullptr;
  }
  wait_for_workers(job);
  if (job.error) std::rethrow_exception(job.error);
}

ThreadPool::Busy::Busy(ThreadPool& pool) : pool_(pool) {
  if (pool_.busy_.fetch_add(1) > 0 || pool_.sleeping_workers_.load() == 0) return;
  { std::lock_guard lock(pool_.mutex_); }
  pool_.wake_.notify_all();
}

ThreadPool::Busy::~Busy() { --pool_.busy_; }

}  // namespace prism
