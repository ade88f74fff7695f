// Tests the keys of compiled kernels.
#include "runtime/kernel_key.h"

#include <gtest/gtest.h>

#include "prism/kernel.h"

namespace prism {
namespace {

using namespace dsl;

ir::Kernel filled(float value) {
  return kernel("filled", 64, [=] {
    const Array y = out("y", f32);
    y[local_id()] = value;
  });
}

TEST(KernelKey, IsThatOfTheText) {
  const ir::Kernel one = filled(1), same = filled(1), other = filled(2);
  EXPECT_EQ(kernel_key(one), kernel_key(same));
  EXPECT_NE(kernel_key(one), kernel_key(other));
}

TEST(KernelKey, IsTheSameOnceRemembered) {
  static const ir::Kernel kept = filled(3), other = filled(4);  // never destroyed
  const std::string before = kernel_key(kept);
  remember_key(kept);
  EXPECT_EQ(kernel_key(kept), before);
  EXPECT_EQ(kernel_key(ir::Kernel(kept)), before) << "a copy";
  EXPECT_NE(kernel_key(other), before);
}

}  // namespace
}  // namespace prism
