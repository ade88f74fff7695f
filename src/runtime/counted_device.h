// A device that counts what it gives away, for interfaces that do not tell how much is free.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/driver.h"

namespace prism {

// The total and the free memory of a device that nobody tells of: what fits is found by trying, and
// an allocation that fails says so.
inline constexpr uint64_t kUnknownBytes = UINT64_MAX;

class CountedDevice : public DeviceDriver {
 public:
  const DeviceInfo& info() const override { return info_; }
  std::string label() const { return info_.id + " (" + info_.name + ")"; }  // for messages
  // What the interface tells after all; else the total (where that is known) without what was
  // taken, and no more than the host has where they share one memory.
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) final;
  uint64_t taken_bytes() const { return taken_; }

 protected:
  // Memory of so many bytes, whole 16-byte words: buffers are read in words and in fours of them.
  // Null with *why when the driver has none.
  virtual std::unique_ptr<MemoryDriver> take(uint64_t bytes, std::string* why) = 0;
  virtual uint64_t told_free_bytes() { return 0; }  // 0: not told
  // Takes the figures of the same card in another backend, which tells more (shares_card.h).
  void use_figures_of(const std::shared_ptr<DeviceDriver>& other);

  DeviceInfo info_;                      // filled by the device that this is
  uint64_t largest_bytes_ = UINT64_MAX;  // of one allocation, where the interface has a limit

 private:
  friend class CountedMemory;
  std::atomic<uint64_t> taken_ = 0;
  std::shared_ptr<DeviceDriver> same_card_;
};

// Counted while it lives.
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
