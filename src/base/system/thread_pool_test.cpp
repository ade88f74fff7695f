// Tests that loops run every index once, rethrow exceptions, nest, and accept several callers.
#include "base/system/thread_pool.h"

#include <chrono>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

#include "prism/warning.h"

#ifdef __linux__
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace prism {
namespace {

TEST(ThreadPool, EveryIndexOnce) {
  for (uint32_t threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (uint64_t count : {0u, 1u, 7u, 1000u, 4097u})
      for (uint64_t chunk : {0u, 1u, 3u, 10000u}) {
        std::vector<std::atomic<int>> times(count);
        pool.parallel_for(count, chunk, [&](uint64_t first, uint64_t last) {
          for (uint64_t i = first; i < last; ++i) ++times[i];
        });
        for (const auto& time : times) ASSERT_EQ(time, 1);
      }
  }
}

TEST(ThreadPool, ManyShortLoops) {
  ThreadPool pool(3);
  std::atomic<uint64_t> sum{0};
  for (uint64_t i = 0; i < 2000; ++i)
    pool.parallel_for(8, 1, [&](uint64_t first, uint64_t) { sum += first; });
  EXPECT_EQ(sum, 2000u * 28u);
}

TEST(ThreadPool, WorkersWakeFromSleep) {
  ThreadPool pool(3);
  std::atomic<int> sum{0};
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.parallel_for(100, 1, [&](uint64_t, uint64_t) { ++sum; });
  }
  EXPECT_EQ(sum, 300);
}

TEST(ThreadPool, TheFirstExceptionComesOutAndStopsTheRest) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ran{0};
    try {
      pool.parallel_for(100000, 1, [&](uint64_t first, uint64_t) {
        ++ran;
        if (first == 5) throw std::runtime_error("five");
        // Running all remaining ranges would take a second, far longer than an exception under a
        // sanitizer.
        if (first > 100) std::this_thread::sleep_for(std::chrono::microseconds(10));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "five");
    }
    EXPECT_LT(ran, 100000);
  }
  EXPECT_NO_THROW(pool.parallel_for(10, 1, [](uint64_t, uint64_t) {}));
}

TEST(ThreadPool, ABusyPoolStaysAwakeAndSleepsAfterwards) {
  ThreadPool pool(2);
  std::atomic<uint64_t> sum{0};
  for (int round = 0; round < 5; ++round) {
    {
      ThreadPool::Busy busy(pool);
      ThreadPool::Busy inner(pool);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      for (int i = 0; i < 200; ++i)
        pool.parallel_for(2, 1, [&](uint64_t first, uint64_t last) { sum += last - first; });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // Both threads must take part: each waits for the other, so the worker must be awake or be
    // woken.
    std::atomic<int> arrived{0};
    pool.parallel_for(2, 1, [&](uint64_t, uint64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
  EXPECT_EQ(sum, 5u * 200u * 2u);
}

TEST(ThreadPool, ACallerSleepsUntilALongChunkIsDone) {
  ThreadPool pool(2);
  std::atomic<int> done{0}, arrived{0};
  const auto caller = std::this_thread::get_id();
  pool.parallel_for(2, 1, [&](uint64_t, uint64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    if (std::this_thread::get_id() != caller)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++done;
  });
  EXPECT_EQ(done, 2);
}

TEST(ThreadPool, LoopsInsideLoopsAndSeveralCallers) {
  ThreadPool pool(3);
  std::atomic<uint64_t> sum{0};
  const auto caller = [&] {
    for (int i = 0; i < 100; ++i)
      pool.parallel_for(4, 1, [&](uint64_t, uint64_t) {
        pool.parallel_for(5, 2, [&](uint64_t first, uint64_t last) { sum += last - first; });
      });
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(sum, 2u * 100u * 20u);
}

#ifdef __linux__
#if defined(__has_feature)
#define PRISM_HAS_FEATURE(name) __has_feature(name)
#else
#define PRISM_HAS_FEATURE(name) 0
#endif
// Runs in a separate process with address space for only a few thread stacks. The sanitizers'
// shadow memory needs more.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !PRISM_HAS_FEATURE(address_sanitizer)
TEST(ThreadPool, GoesOnWithTheThreadsThereAre) {
  const pid_t child = fork();
  if (child == 0) {
    std::string warning;
    set_warning_handler([&](const std::string& text) { warning = text; });
    std::ifstream in("/proc/self/statm");
    uint64_t pages = 0;
    in >> pages;
    const rlim_t limit = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (64u << 20);
    const rlimit space{limit, limit};
    setrlimit(RLIMIT_AS, &space);
    ThreadPool pool(512);
    std::atomic<uint64_t> sum{0};
    pool.parallel_for(1000, 1, [&](uint64_t first, uint64_t last) {
      for (uint64_t i = first; i < last; ++i) sum += i;
    });
    const bool right = sum == 499500 && pool.threads() < 512 && pool.threads() >= 1 &&
                       warning.find("of 512 threads could be started") != std::string::npos;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif
#endif

}  // namespace
}  // namespace prism
