// Tests copies of transposed and permuted views on every device found: exact, for all element
// sizes, matrices that are not multiples of a tile, batches and views into larger tensors.
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/ops/elementwise.h"
#include "support/seed.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

template <class T>
void check(const Device& device, std::mt19937_64& engine) {
  const auto permuted = [&](const Shape& shape, std::vector<int> axes, int64_t first) {
    std::vector<T> values(static_cast<size_t>(shape.elements()));
    for (T& each : values) each = static_cast<T>(engine() % 120);
    const Tensor x = from_vector(values, shape, device);
    const Tensor view = x.slice(0, first, shape[0]).permute(axes);
    const std::vector<T> got = view.contiguous().template to_vector<T>();
    ASSERT_EQ(static_cast<int64_t>(got.size()), view.elements());
    const Layout& layout = view.layout();
    for (int64_t i = 0; i < view.elements(); ++i) {
      int64_t rest = i, place = layout.offset;
      for (int axis = view.rank() - 1; axis >= 0; --axis) {
        place += rest % layout.shape[axis] * layout.stride(axis);
        rest /= layout.shape[axis];
      }
      ASSERT_EQ(got[static_cast<size_t>(i)], values[static_cast<size_t>(place)])
          << device.id() << ", " << sizeof(T) << " bytes, " << shape.text() << " element " << i;
    }
  };
  permuted({8, 8}, {1, 0}, 0);
  permuted({67, 131}, {1, 0}, 0);
  permuted({70, 1100}, {1, 0}, 0);  // more than one strip of tiles
  permuted({130, 64}, {1, 0}, 1);
  permuted({7, 300}, {1, 0}, 0);  // too thin for tiles
  permuted({5, 33, 41}, {0, 2, 1}, 2);
  permuted({5, 33, 41}, {2, 0, 1}, 0);
  permuted({33, 5, 41}, {2, 1, 0}, 1);
  permuted({2, 3, 17, 29}, {1, 0, 3, 2}, 0);
  permuted({3, 9, 2, 3, 11}, {4, 2, 0, 3, 1}, 0);
}

TEST(TransposeDevice, IsExact) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 engine(seed);
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      check<int8_t>(device, engine);
      check<int16_t>(device, engine);
      check<float>(device, engine);
      check<int64_t>(device, engine);
    }
  }
}

// One kernel for all shapes, used only if tiles help.
TEST(TransposeDevice, TakesTheKernelOfTiles) {
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      if (device.info().is_cpu) continue;
      const auto kernel_of = [&](const Tensor& view) {
        const Tensor y = view.contiguous();
        const Plan plan(std::span(&y, 1));
        return plan.steps()[0].launches[0].program.kernel().name;
      };
      const Tensor x = zeros({40, 50, 60}, DType::f32, device);
      x.eval();
      EXPECT_EQ(kernel_of(x.transpose()), "transpose") << device.id();
      EXPECT_EQ(kernel_of(x.permute({2, 0, 1})), "transpose") << device.id();
      EXPECT_NE(kernel_of(x.transpose(0, 1)), "transpose") << device.id() << ": rows stay whole";
      EXPECT_NE(kernel_of(x.slice(2, 0, 60, 2)), "transpose") << device.id();
    }
  }
}

}  // namespace
}  // namespace prism
