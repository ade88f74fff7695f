// Lends evaluated storages to other libraries and wraps theirs.
#include "tensor/exchange.h"

#include <fmt/format.h>

#include "prism/error.h"
#include "tensor/op.h"
#include "tensor/plan/device_fallback.h"
#include "tensor/storage.h"

namespace prism {
namespace {

// Kernels load vectors of 16 bytes. Every allocation of a GPU begins at a multiple of this.
constexpr uintptr_t kVectorBytes = 16;

// Gives the memory back to its pool, where our next work may overwrite it.
void take_back(const std::shared_ptr<Storage>& storage) noexcept {
  try {
    order_after(storage->device, kLegacyStream);
  } catch (...) {  // a lost device has no work that could disturb anything
  }
}

}  // namespace

LentMemory lend(const Tensor& tensor, std::optional<uintptr_t> stream) {
  tensor.eval();
  const std::shared_ptr<Storage> storage = values_of(tensor);
  const int64_t skip = tensor.layout().offset * static_cast<int64_t>(tensor.dtype().block_bytes());
  if (storage->is_host()) return {storage->host.get() + skip, {kDlpackCpu, 0}, storage};
  const auto device = dlpack_device(storage->device);
  void* const start = address_of(storage->buffer, storage->device);
  if (stream) order_before(storage->device, *stream);
  return {static_cast<std::byte*>(start) + skip, *device,
          std::shared_ptr<void>(storage.get(), [storage](void*) { take_back(storage); })};
}

Tensor borrow(const Device& device, std::shared_ptr<const std::byte> memory, int64_t elements,
              ElementType type) {
  if (device.info().is_cpu) return from_host_memory(std::move(memory), Shape{elements}, type);
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  const uint64_t skip = address % kVectorBytes;
  if (address % type.block_bytes() != 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("import: elements of {} bytes at the address {:#x}; copy the array, so "
                            "that its elements are aligned",
                            type.block_bytes(), address));
  const uint64_t bytes = skip + static_cast<uint64_t>(elements) * type.block_bytes();
  const std::shared_ptr<std::byte> whole(
      memory, const_cast<std::byte*>(memory.get()) - static_cast<ptrdiff_t>(skip));
  Buffer buffer = device.wrap(whole, bytes);
  if (!buffer)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("import: {} bytes at the address {:#x} are not an allocation of {}; "
                            "copy the array to the CPU",
                            bytes, address, device.id()));
  auto storage = std::make_shared<Storage>();
  storage->device = device;
  storage->bytes = bytes;
  storage->buffer = std::move(buffer);
  storage->given = storage->constant = true;
  auto node = std::make_shared<Node>();
  const auto before = static_cast<int64_t>(skip / type.block_bytes());
  node->outputs = {{Shape{before + elements}, type}};
  node->device = device;
  node->storage = {std::move(storage)};
  Layout layout = Layout::dense(Shape{elements});
  layout.offset = before;
  return Tensor(std::move(node), 0, layout);
}

}  // namespace prism
