// The memory behind tensors: buffers of devices, host memory, mapped files; pools and statistics.
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

// Where values of a device lie on the host as well: what they are made from again when the device
// is lost.
struct HostOrigin {
  std::shared_ptr<const Storage> source;
  ElementType type = DType::f32;
  Layout layout;         // of the values in the source
  uint64_t changes = 0;  // of the source when they were copied
};

// Memory that holds the elements of one evaluated node. The native CPU's is plain host memory (or
// a mapped file), every other device's a buffer.
struct Storage {
  Device device;
  uint64_t bytes = 0;
  std::shared_ptr<std::byte> host;   // of the CPU: never null, even for no bytes
  Buffer buffer;                     // of every other device
  uint64_t pool_bytes = 0;           // what goes back to the pool; 0: it is not the pool's
  bool given = false;                // host data or a file, not computed
  bool constant = false;             // a file mapped to be read, or memory shared with another
  uint64_t changes = 0;              // plans that changed it in place
  std::optional<HostOrigin> origin;  // on devices that work may leave
  std::shared_ptr<Storage> moved;    // the same values, once the device was given up

  bool is_host() const { return host != nullptr; }
};

// Not cleared. Taken from the device's pool; given back to it when the last holder lets go. Throws
// kOutOfMemory naming device, asked and free, and the pool's limit where that was in the way.
std::shared_ptr<Storage> allocate_storage(const Device& device, uint64_t bytes);
// What the pool takes for so many bytes.
uint64_t allocation_bytes(uint64_t bytes);
// Host memory of another owner (a mapped file) as storage of the CPU. constant: it is only read.
std::shared_ptr<Storage> borrow_storage(const Device& cpu, std::shared_ptr<std::byte> memory,
                                        uint64_t bytes, bool constant);

// The same memory as storage of a device that reads the host's in place; null where it cannot.
std::shared_ptr<Storage> wrap_storage(const Device& device, const Storage& host, uint64_t offset,
                                      uint64_t bytes);

// Whole-storage transfers; ranges in bytes. Reading waits for the device.
void read_storage(const Storage& from, uint64_t offset, std::span<std::byte> to);
void write_storage(const Storage& to, uint64_t offset, std::span<const std::byte> from);

struct MemoryStats {
  uint64_t in_use_bytes = 0;  // held by tensors and plans now
  uint64_t peak_bytes = 0;    // the most that was in use
  uint64_t pooled_bytes = 0;  // free in the pool, ready for use again
  uint64_t limit_bytes = 0;   // 0: none
  uint64_t allocations = 0;   // asked of the driver so far
  uint64_t reuses = 0;        // answered from the pool so far
};
MemoryStats memory_stats(const Device& device);
void set_memory_limit(const Device& device, uint64_t bytes);  // 0: none
void release_pooled_memory(const Device& device);             // gives the pool back to the driver

}  // namespace prism
