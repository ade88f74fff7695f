// Estimates of free memory and the out-of-memory message.
#include "runtime/counted_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/system/host_memory.h"

namespace prism {

uint64_t CountedDevice::free_bytes() {
  if (same_card_) return same_card_->free_bytes();
  if (const uint64_t told = told_free_bytes()) return told;
  if (info_.total_bytes == kUnknownBytes) return kUnknownBytes;
  const uint64_t left = info_.total_bytes - std::min(info_.total_bytes, taken_.load());
  if (!info_.unified) return left;
  const uint64_t available = host_memory().available_bytes;  // 0 if the system does not report it
  return available > 0 ? std::min(left, available) : left;
}

std::unique_ptr<MemoryDriver> CountedDevice::allocate(uint64_t bytes) {
  constexpr uint64_t kGranule = 16;
  const uint64_t rounded = bytes > UINT64_MAX - kGranule
                               ? bytes
                               : std::max(kGranule, (bytes + kGranule - 1) / kGranule * kGranule);
  std::string why;
  if (rounded > largest_bytes_)
    why = fmt::format("this device allows at most {} bytes per buffer", largest_bytes_);
  else if (rounded > free_bytes())
    why = "free memory, or use a smaller size or another device";
  else if (auto memory = take(rounded, &why))
    return memory;
  const std::string there =
      free_bytes() == kUnknownBytes
          ? fmt::format("{} are allocated, the total is unknown", taken_.load())
          : fmt::format("{} of {} are free", free_bytes(), info_.total_bytes);
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("{}: asked for {} bytes, {}: {}", label(), bytes, there, why));
}

void CountedDevice::use_figures_of(const std::shared_ptr<DeviceDriver>& other) {
  if (info_.software) return;
  info_.card = other->info().card;
  if (info_.unified) return;
  same_card_ = other;
  info_.total_bytes = other->info().total_bytes;
  info_.compute_units = other->info().compute_units;
}

}  // namespace prism
