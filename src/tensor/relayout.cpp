// Copies between storages on different devices.
#include "tensor/relayout.h"

#include <vector>

#include "base/types/gpu_block_layout.h"
#include "tensor/cpu_pool.h"

namespace prism {

void transfer(const Storage& from, uint64_t from_offset, const DeviceView& view, const Storage& to,
              uint64_t to_offset) {
  const Shape& shape = view.layout.shape;
  if (shape.elements() == 0) return;
  const uint64_t columns = view.type.is_block() ? static_cast<uint64_t>(shape[-1]) : 1;
  const uint64_t rows = static_cast<uint64_t>(shape.elements()) / columns;
  const auto row_bytes = [&](const Storage& storage) -> uint64_t {
    if (!view.type.is_block()) return view.type.block_bytes();
    return storage.is_host() ? view.type.row_bytes(columns)
                             : gpu_block_layout(view.type.block(), rows, columns).row_bytes;
  };
  const uint64_t first_row = static_cast<uint64_t>(view.layout.offset) / columns;
  const uint64_t read_bytes = rows * row_bytes(from), write_bytes = rows * row_bytes(to);
  from_offset += first_row * row_bytes(from);

  std::vector<std::byte> staging;
  const std::byte* source = from.is_host() ? from.host.get() + from_offset : nullptr;
  if (!source) {
    staging.resize(read_bytes);
    read_storage(from, from_offset, staging);
    source = staging.data();
  }
  if (!view.type.is_block() || from.is_host() == to.is_host())
    return write_storage(to, to_offset, {source, read_bytes});
  std::vector<std::byte> other(write_bytes);
  const GpuBlockLayout planes = gpu_block_layout(view.type.block(), rows, columns);
  if (from.is_host())
    to_gpu_layout(planes, source, other.data(), cpu_pool());
  else
    from_gpu_layout(planes, source, other.data(), cpu_pool());
  write_storage(to, to_offset, other);
}

}  // namespace prism
