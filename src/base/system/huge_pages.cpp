// Asks the system for large pages.
#include "base/system/huge_pages.h"

#ifdef __linux__
#include <sys/mman.h>

#include <cstdint>

#include "base/system/host_memory.h"
#endif

namespace prism {

void advise_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto page = static_cast<uintptr_t>(page_bytes());
  const auto begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace prism
