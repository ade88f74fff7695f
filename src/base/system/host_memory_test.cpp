// Tests that the reported host memory is plausible.
#include "base/system/host_memory.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

TEST(HostMemory, IsPlausible) {
  const HostMemory memory = host_memory();
  EXPECT_GT(memory.total_bytes, 64ull << 20);
  EXPECT_LT(memory.total_bytes, 1ull << 50);
  EXPECT_GT(memory.available_bytes, 1ull << 20);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

}  // namespace
}  // namespace prism
