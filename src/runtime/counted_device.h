// A device base class that counts its allocations, for interfaces that do not report free memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

// Marks an unknown amount of total or free memory. Allocations are then attempted, and report their
// own failure.
inline constexpr uint64_t kUnknownBytes = UINT64_MAX;

class CountedDevice : public DeviceDriver {
 public:
  const DeviceInfo& info() const override { return info_; }
  std::string label() const { return info_.id + " (" + info_.name + ")"; }  // for messages
  // The figure that the interface reports, if any. Else the known total minus the counted
  // allocations, and on unified memory at most what the host has available.
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) final;
  uint64_t taken_bytes() const { return taken_; }

 protected:
  // Allocates this many bytes, a multiple of 16: kernels read buffers in words and in vectors of
  // four words. Returns null and sets *why on failure.
  virtual std::unique_ptr<MemoryDriver> take(uint64_t bytes, std::string* why) = 0;
  virtual uint64_t told_free_bytes() { return 0; }  // 0: not reported
  // Uses the memory figures of the same card's device in another backend (shares_card.h).
  void use_figures_of(const std::shared_ptr<DeviceDriver>& other);

  DeviceInfo info_;                      // filled by the derived device
  uint64_t largest_bytes_ = UINT64_MAX;  // limit of one allocation, if the interface has one

 private:
  friend class CountedMemory;
  std::atomic<uint64_t> taken_ = 0;
  std::shared_ptr<DeviceDriver> same_card_;
};

// Counts its bytes for as long as it exists.
class CountedMemory : public MemoryDriver {
 public:
  CountedMemory(CountedDevice& device, uint64_t bytes) : device_(device), bytes_(bytes) {
    device_.taken_ += bytes_;
  }
  ~CountedMemory() override { device_.taken_ -= bytes_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  CountedDevice& device_;
  uint64_t bytes_;
};

}  // namespace prism
