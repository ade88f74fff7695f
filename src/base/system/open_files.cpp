// setrlimit on POSIX systems; Windows has no such limit.
#include "base/system/open_files.h"

#include <algorithm>

#ifndef _WIN32
#include <sys/resource.h>
#endif

namespace prism {

void allow_open_files([[maybe_unused]] uint64_t wanted) {
#ifndef _WIN32
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
  setrlimit(RLIMIT_NOFILE, &limit);
#endif
}

}  // namespace prism
