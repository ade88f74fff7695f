// The memory behind tensors: device buffers, host memory and mapped files, with pools and
// statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "prism/device.h"
#include "prism/element_type.h"
#include "prism/shape.h"

namespace prism {

struct Storage;

// Where the host holds the same values as a device: the source to restore them from if the device
// is lost.
struct HostOrigin {
  std::shared_ptr<const Storage> source;
  ElementType type = DType::f32;
  Layout layout;         // of the values within the source
  uint64_t changes = 0;  // of the source at the time of the copy
};

// Memory that holds the elements of one evaluated node: host memory (or a mapped file) for the
// native CPU, a buffer for every other device.
struct Storage {
  Device device;
  uint64_t bytes = 0;
  std::shared_ptr<std::byte> host;   // CPU only: never null, even for 0 bytes
  Buffer buffer;                     // every other device
  uint64_t pool_bytes = 0;           // size returned to the pool; 0: not from the pool
  bool given = false;                // host data or a file, not computed
  bool constant = false;             // a file mapped read-only, or memory shared with another owner
  uint64_t changes = 0;              // number of plans that changed it in place
  std::optional<HostOrigin> origin;  // only on devices that have a fallback
  std::shared_ptr<Storage> moved;  // the same values on the replacement, once the device was given
                                   // up

  bool is_host() const { return host != nullptr; }
};

// Uninitialised memory from the device's pool; the last holder returns it there. Throws
// kOutOfMemory, naming the device, the requested and free bytes, and the pool's limit if that was
// exceeded.
std::shared_ptr<Storage> allocate_storage(const Device& device, uint64_t bytes);
// The bytes that the pool reserves for an allocation of `bytes`.
uint64_t allocation_bytes(uint64_t bytes);
// Wraps host memory of another owner (a mapped file) as CPU storage. constant: read-only.
std::shared_ptr<Storage> borrow_storage(const Device& cpu, std::shared_ptr<std::byte> memory,
                                        uint64_t bytes, bool constant);

// The same memory as storage of a device that can read host memory in place, or null if it cannot.
std::shared_ptr<Storage> wrap_storage(const Device& device, const Storage& host, uint64_t offset,
                                      uint64_t bytes);

// Whole-storage transfers; ranges in bytes. Reading waits for the device.
void read_storage(const Storage& from, uint64_t offset, std::span<std::byte> to);
void write_storage(const Storage& to, uint64_t offset, std::span<const std::byte> from);

struct MemoryStats {
  uint64_t in_use_bytes = 0;  // held by tensors and plans now
  uint64_t peak_bytes = 0;    // maximum of in_use_bytes so far
  uint64_t pooled_bytes = 0;  // free in the pool
  uint64_t limit_bytes = 0;   // 0: none
  uint64_t allocations = 0;   // requests to the driver so far
  uint64_t reuses = 0;        // allocations served from the pool so far
};
MemoryStats memory_stats(const Device& device);
void set_memory_limit(const Device& device, uint64_t bytes);  // 0: none
void release_pooled_memory(const Device& device);  // returns the pool's memory to the driver

}  // namespace prism
