// Copies directly on the host, and through other memory on devices.
#include "llm/model/copy_range.h"

#include <cstring>

#include "runtime/fallback.h"

namespace prism::llm {

void copy_range(const Storage& storage, uint64_t from, uint64_t to, uint64_t bytes) {
  if (storage.is_host()) {
    std::memcpy(storage.host.get() + to, storage.host.get() + from, bytes);
    return;
  }
  // Through other memory: some devices cannot copy within a buffer.
  const auto between = allocate_storage(storage.device, bytes);
  watching(storage.device, [&] {
    storage.device.queue().copy(between->buffer, storage.buffer, bytes, 0, from);
    storage.device.queue().copy(storage.buffer, between->buffer, bytes, to, 0);
  });
}

}  // namespace prism::llm
