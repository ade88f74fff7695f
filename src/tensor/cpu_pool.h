// The thread pool that native CPU kernels share.
#pragma once

#include "base/system/thread_pool.h"

namespace prism {

// Has as many threads as the process may run at once, or PRISM_THREADS.
ThreadPool& cpu_pool();

}  // namespace prism
