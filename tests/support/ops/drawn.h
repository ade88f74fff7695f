// A fixture with random tensors that prints its seed.
#pragma once

#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/element_type.h"
#include "prism/tensor.h"
#include "support/seed.h"

namespace prism::test {

class DrawnTensors : public testing::Test {
 protected:
  void SetUp() override;
  // Uniform in [-1, 1), stored as the type.
  Tensor draw(const Device& device, const Shape& shape, ElementType type = DType::f32);

  const uint64_t seed = test_seed();
  std::mt19937_64 engine{seed};
};

}  // namespace prism::test
