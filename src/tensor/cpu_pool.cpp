// The thread pool of native CPU kernels, created on first use.
#include "tensor/cpu_pool.h"

#include <cstdlib>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {

namespace {

uint32_t wanted_threads() {
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

}  // namespace

ThreadPool& cpu_pool() {
  // Never destroyed: plans in static objects may run late.
  static auto& pool = *new ThreadPool(wanted_threads());
  return pool;
}

}  // namespace prism
