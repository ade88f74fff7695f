// Tensors beyond 2^31 bytes, whose offsets and counts exceed 32 signed bits, on every device with
// enough memory. The others are listed with the reason.
#include <iostream>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/reduce.h"
#include "tensor/storage.h"

namespace prism {
namespace {

constexpr int64_t kColumns = 1 << 16, kRows = (int64_t{1} << 15) + 37;  // 2^31 bytes and 37 rows
constexpr uint64_t kBytes = static_cast<uint64_t>(kRows * kColumns);

// Why a device is skipped, or empty.
std::string reason_against(const Device& device) {
  // Room for the tensor, its successor and a margin.
  if (device.free_bytes() < 2 * kBytes + (uint64_t{1} << 30))
    return std::to_string(device.free_bytes()) + " bytes free";
  if (device.info().software && !device.info().is_cpu)
    return "a software device: one allocation ends at 2 GiB";
  return "";
}

TEST(LargeDevice, TensorsBeyondTwoToThe31Bytes) {
  size_t ran = 0, left_out = 0;
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      const std::string reason = reason_against(device);
      std::cout << device.id() << ": " << (reason.empty() ? "runs" : "left out: " + reason)
                << std::endl;
      if (!reason.empty()) {
        ++left_out;
        continue;
      }
      ++ran;
      {
        const Tensor x = full({kRows, kColumns}, 7, DType::u8, device);
        x.eval();
        const Tensor y = x + 1.0;
        y.eval();
        // Both ends, and both sides of 2^31.
        for (const int64_t row : {int64_t{0}, kRows - 38, kRows - 37, kRows - 1}) {
          EXPECT_EQ(y.slice(0, row, row + 1).to_vector<uint8_t>(),
                    std::vector<uint8_t>(kColumns, 8))
              << device.id() << ", row " << row;
        }
        const Tensor wanted =
            from_vector<int32_t>({static_cast<int32_t>(kRows - 1), 3}, {2}, device);
        EXPECT_EQ(gather_rows(y, wanted).to_vector<uint8_t>(),
                  std::vector<uint8_t>(2 * kColumns, 8))
            << device.id();
        EXPECT_EQ(sum(y.slice(0, kRows - 40, kRows)).item(), 8.0 * 40 * kColumns) << device.id();
      }
      release_pooled_memory(device);
    }
  }
  std::cout << ran << " devices ran, " << left_out << " left out" << std::endl;
  if (ran == 0) GTEST_SKIP() << "no device has the memory";
}

}  // namespace
}  // namespace prism
