// Memory in large pages, for arrays that are read at random or in long scans.
#pragma once

#include <cstddef>
#include <new>

namespace prism {

// Asks the system to back whole large pages of this range by such pages. A hint: where the system
// has none, nothing changes.
void advise_huge_pages(void* data, size_t bytes);

// An allocator for containers: large arrays begin at a large page and ask for them.
template <class T>
struct HugePageAllocator {
  using value_type = T;
  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) {}

  static constexpr size_t kPage = size_t{2} << 20, kLine = 64;
  static std::align_val_t alignment(size_t count) {
    return std::align_val_t{count * sizeof(T) >= 2 * kPage ? kPage : kLine};
  }
  T* allocate(size_t count) {
    void* const data = ::operator new(count * sizeof(T), alignment(count));
    if (count * sizeof(T) >= 2 * kPage) advise_huge_pages(data, count * sizeof(T));
    return static_cast<T*>(data);
  }
  void deallocate(T* data, size_t count) { ::operator delete(data, alignment(count)); }
  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }
};

}  // namespace prism
