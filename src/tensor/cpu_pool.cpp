// The thread pool of native CPU kernels, created on first use.
#include "tensor/cpu_pool.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {

namespace {
std::atomic<uint32_t> chosen_threads{0};   // by set_threads; 0: by nobody
std::atomic<uint32_t> running_threads{0};  // of the pool, once it exists
}  // namespace

uint32_t threads_setting() {
  if (const uint32_t running = running_threads) return running;
  if (const uint32_t chosen = chosen_threads) return chosen;
  const char* text = std::getenv("PRISM_THREADS");
  const uint32_t all = std::max(1u, std::thread::hardware_concurrency());
  if (!text || !*text) return all;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*end || value < 1 || value > 4096) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("PRISM_THREADS is '{}'; give a number of threads from 1 to 4096", text));
  }
  return static_cast<uint32_t>(value);
}

void set_threads(uint32_t threads) {
  if (threads < 1 || threads > 4096)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("set_threads: {} threads; give a number from 1 to 4096", threads));
  if (const uint32_t running = running_threads; running != 0 && running != threads)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("set_threads: {} threads, but CPU kernels run with {} already; set the "
                            "number before the first tensor is computed",
                            threads, running));
  chosen_threads = threads;
}

ThreadPool& cpu_pool() {
  // Never destroyed: plans in static objects may run late.
  static auto& pool = *[] {
    const uint32_t threads = threads_setting();
    running_threads = threads;
    return new ThreadPool(threads);
  }();
  return pool;
}

}  // namespace prism
