// Memory accounting where the interface reports little: counted if the total is known, else found
// by trying.
#include "runtime/counted_device.h"

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/error.h"

namespace prism {
namespace {

// Reports `said` bytes of memory and really has `in_truth` bytes.
class SilentDevice final : public CountedDevice {
 public:
  SilentDevice(uint64_t said, uint64_t in_truth) : left_(in_truth) {
    info_.id = "silent:0";
    info_.name = "Card";
    info_.total_bytes = said;
  }
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel&) override { return nullptr; }
  std::unique_ptr<QueueDriver> make_queue() override { return nullptr; }
  using CountedDevice::use_figures_of;

 protected:
  std::unique_ptr<MemoryDriver> take(uint64_t bytes, std::string* why) override {
    if (bytes > left_) *why = "the driver has no more";
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    return std::make_unique<CountedMemory>(*this, bytes);
  }

 private:
  uint64_t left_;
};

std::string refusal(DeviceDriver& device, uint64_t bytes) {
  try {
    device.allocate(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    return error.what();
  }
  ADD_FAILURE() << "allocated";
  return "";
}

TEST(CountedDevice, KnownTotalIsCounted) {
  SilentDevice device(1024, 1 << 20);
  const auto memory = device.allocate(1000);
  EXPECT_EQ(device.free_bytes(), 1024u - 1008u);
  EXPECT_EQ(
      refusal(device, 17),
      "silent:0 (Card): asked for 17 bytes, 16 of 1024 are free: free memory, or use a smaller "
      "size or another device");
}

TEST(CountedDevice, UnknownTotalIsTried) {
  SilentDevice device(kUnknownBytes, 4096);
  EXPECT_EQ(device.free_bytes(), kUnknownBytes);
  const auto memory = device.allocate(4000);
  EXPECT_EQ(device.free_bytes(), kUnknownBytes);
  EXPECT_EQ(refusal(device, 4096),
            "silent:0 (Card): asked for 4096 bytes, 4000 are allocated, the total is unknown: "
            "the driver has no more");
  EXPECT_NO_THROW(device.allocate(96));
}

TEST(CountedDevice, UnknownTotalIsLearntFromAnotherBackend) {
  SilentDevice device(kUnknownBytes, 4096);
  device.use_figures_of(std::make_shared<SilentDevice>(2048, 2048));
  EXPECT_EQ(device.info().total_bytes, 2048u);
  EXPECT_EQ(device.free_bytes(), 2048u);
}

// Kernels partition their work by the number of compute units.
TEST(CountedDevice, UnitsThatAreNotToldAreMiddlingInTheHandleOnly) {
  const auto driver = std::make_shared<SilentDevice>(kUnknownBytes, 4096);
  EXPECT_EQ(driver->info().compute_units, 0u);
  EXPECT_EQ(Device(driver, "").info().compute_units, 64u);
}

}  // namespace
}  // namespace prism
