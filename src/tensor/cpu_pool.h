// The thread pool that native CPU kernels share.
#pragma once

#include <cstdint>

#include "base/system/thread_pool.h"

namespace prism {

// PRISM_THREADS, or as many threads as the processor runs at once. Throws kInvalidArgument for a
// value outside 1 to 4096.
uint32_t threads_setting();

// Sets the number of threads, in place of PRISM_THREADS. Throws kInvalidArgument for a value
// outside 1 to 4096, and if the pool runs with another number already.
void set_threads(uint32_t threads);

// Has as many threads as the process may run at once, or PRISM_THREADS.
ThreadPool& cpu_pool();

}  // namespace prism
