// Memory pools, one per device: freed tensor memory is reused before the driver is asked for more.
#include "tensor/storage.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include <fmt/format.h>

#include "base/system/huge_pages.h"
#include "prism/error.h"
#include "runtime/fallback.h"

namespace prism {

namespace {

constexpr size_t kHostAlignment = 256;  // whole cache lines; recorded launches require it

struct Piece {  // an allocation, of a size rounded by the pool
  uint64_t bytes = 0;
  std::shared_ptr<std::byte> host;
  Buffer buffer;
};

// Never destroyed: tensors in static objects may return memory late.
struct Pool {
  std::mutex mutex;
  std::multimap<uint64_t, Piece> free;
  MemoryStats stats;
};

Pool& pool_of(const Device& device) {
  static auto& mutex = *new std::mutex;
  static auto& pools = *new std::map<const DeviceDriver*, std::unique_ptr<Pool>>;
  const std::scoped_lock lock(mutex);
  auto& pool = pools[&device.driver()];
  if (!pool) pool = std::make_unique<Pool>();
  return *pool;
}

// Below this the ends that are not whole large pages are a good part.
constexpr uint64_t kHugeBytes = 8 << 20;

std::shared_ptr<std::byte> host_memory_of(const Device& device, uint64_t bytes) {
  auto* memory = static_cast<std::byte*>(
      ::operator new (bytes, std::align_val_t{kHostAlignment}, std::nothrow));
  if (memory && bytes >= kHugeBytes) advise_huge_pages(memory, bytes);
  if (!memory) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("allocation on {}: {} bytes requested, {} free", device.id(), bytes,
                            device.free_bytes()));
  }
  return {memory, [](std::byte* p) { ::operator delete (p, std::align_val_t{kHostAlignment}); }};
}

Piece fresh_piece(const Device& device, uint64_t bytes) {
  Piece piece{bytes, {}, {}};
  if (device.info().is_cpu)
    piece.host = host_memory_of(device, bytes);
  else
    piece.buffer = device.allocate(bytes);
  return piece;
}

Piece take(Pool& pool, const Device& device, uint64_t bytes) {
  const std::scoped_lock lock(pool.mutex);
  MemoryStats& stats = pool.stats;
  if (stats.limit_bytes && stats.in_use_bytes + bytes > stats.limit_bytes) {
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("allocation on {}: {} bytes requested, {} of the limit of {} left; raise it "
                    "with set_memory_limit() or release tensors",
                    device.id(), bytes,
                    stats.limit_bytes - std::min(stats.limit_bytes, stats.in_use_bytes),
                    stats.limit_bytes));
  }
  Piece piece;
  if (const auto found = pool.free.lower_bound(bytes);
      found != pool.free.end() && found->first <= bytes + bytes / 4) {
    piece = std::move(found->second);
    pool.free.erase(found);
    stats.pooled_bytes -= piece.bytes;
    ++stats.reuses;
  } else {
    try {
      piece = fresh_piece(device, bytes);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory || pool.free.empty()) throw;
      pool.free.clear();
      stats.pooled_bytes = 0;
      piece = fresh_piece(device, bytes);
    }
    ++stats.allocations;
  }
  stats.in_use_bytes += piece.bytes;
  stats.peak_bytes = std::max(stats.peak_bytes, stats.in_use_bytes);
  return piece;
}

void give_back(Pool& pool, Piece piece) {
  const std::scoped_lock lock(pool.mutex);
  pool.stats.in_use_bytes -= piece.bytes;
  pool.stats.pooled_bytes += piece.bytes;
  const uint64_t bytes = piece.bytes;
  pool.free.emplace(bytes, std::move(piece));
}

}  // namespace

// Rounds sizes up so that tensors of similar size can share pieces: by at most 1/32, because a
// model has hundreds of weights that must fit into device memory.
uint64_t allocation_bytes(uint64_t bytes) {
  uint64_t step = 256;
  while (step * 64 < bytes) step *= 2;
  return std::max<uint64_t>((bytes + step - 1) / step * step, step);
}

std::shared_ptr<Storage> allocate_storage(const Device& device, uint64_t bytes) {
  Pool& pool = pool_of(device);
  Piece piece = watching(device, [&] { return take(pool, device, allocation_bytes(bytes)); });
  auto* storage =
      new Storage{device, bytes, piece.host, piece.buffer, piece.bytes, false, false, 0, {}, {}};
  return {storage, [&pool](Storage* dead) {
            Piece back{dead->pool_bytes, std::move(dead->host), std::move(dead->buffer)};
            delete dead;
            give_back(pool, std::move(back));
          }};
}

std::shared_ptr<Storage> borrow_storage(const Device& cpu, std::shared_ptr<std::byte> memory,
                                        uint64_t bytes, bool constant) {
  return std::make_shared<Storage>(
      Storage{cpu, bytes, std::move(memory), {}, 0, true, constant, 0, {}, {}});
}

std::shared_ptr<Storage> wrap_storage(const Device& device, const Storage& host, uint64_t offset,
                                      uint64_t bytes) {
  Buffer buffer = device.wrap({host.host, host.host.get() + offset}, bytes);
  if (!buffer) return nullptr;
  return std::make_shared<Storage>(
      Storage{device, bytes, {}, std::move(buffer), 0, true, true, 0, {}, {}});
}

void read_storage(const Storage& from, uint64_t offset, std::span<std::byte> to) {
  if (to.empty()) return;
  if (from.is_host())
    std::memcpy(to.data(), from.host.get() + offset, to.size());
  else
    watching(from.device, [&] { from.device.queue().read(from.buffer, to, offset); });
}

void write_storage(const Storage& to, uint64_t offset, std::span<const std::byte> from) {
  if (from.empty()) return;
  if (to.is_host())
    std::memcpy(to.host.get() + offset, from.data(), from.size());
  else
    watching(to.device, [&] { to.device.queue().write(to.buffer, from, offset); });
}

MemoryStats memory_stats(const Device& device) {
  Pool& pool = pool_of(device);
  const std::scoped_lock lock(pool.mutex);
  return pool.stats;
}

void set_memory_limit(const Device& device, uint64_t bytes) {
  Pool& pool = pool_of(device);
  const std::scoped_lock lock(pool.mutex);
  pool.stats.limit_bytes = bytes;
}

void release_pooled_memory(const Device& device) {
  Pool& pool = pool_of(device);
  const std::scoped_lock lock(pool.mutex);
  pool.free.clear();
  pool.stats.pooled_bytes = 0;
}

}  // namespace prism
