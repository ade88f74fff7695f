// Random tensors and their seed.
#include "support/ops/drawn.h"

#include <iostream>

#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/quantise.h"

namespace prism::test {

void DrawnTensors::SetUp() { std::cout << "seed " << seed << "\n"; }

Tensor DrawnTensors::draw(const Device& device, const Shape& shape, ElementType type) {
  const Tensor x = uniform(shape, engine(), -1, 1, DType::f32, Device::cpu());
  return (type.is_block() ? quantise(x, type.block()) : cast(x, type)).eval().to(device).eval();
}

}  // namespace prism::test
