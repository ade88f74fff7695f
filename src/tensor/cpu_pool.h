// The threads that native CPU kernels share.
#pragma once

#include "base/system/thread_pool.h"

namespace prism {

// As many threads as the process may use at once, or PRISM_THREADS.
ThreadPool& cpu_pool();

}  // namespace prism
