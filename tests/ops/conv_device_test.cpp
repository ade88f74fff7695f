// Tests convolutions of more images than fit one batch of columns: results and gradients equal
// those of each image alone.
#include <cmath>

#include <gtest/gtest.h>

#include "prism/grad.h"
#include "prism/ops/conv.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "support/devices/devices.h"
#include "support/ops/drawn.h"
#include "tensor/chain/chain_op.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

class ConvDevice : public test::DrawnTensors {};

void expect_near(const Tensor& found, const Tensor& wanted) {
  const std::vector<double> a = found.to_doubles(), b = wanted.to_doubles();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-4 + 1e-4 * std::abs(b[i])) << "element " << i;
}

TEST_F(ConvDevice, PartsOfABatch) {
  const int64_t images = 30;  // 2.4 MB of columns each: about 28 per batch
  for (const Device& device : test::every_device()) {
    // Devices that do not use products have no batches.
    if (device.info().software && device.info().capabilities.dialect != "spirv") continue;
    SCOPED_TRACE(device.id());
    const Tensor w = draw(device, {32, 64, 3, 3});
    Tensor x = draw(device, {images, 64, 32, 32});
    x.set_requires_grad();
    const Tensor factors = draw(device, {32, 32, 32});
    const Conv2dOptions options = {1, 1, 1, 1};
    const Tensor y = conv2d(x, w, options);
    const Plan plan(std::span(&y, 1));
    const size_t launches = plan.steps()[0].launches.size();
    if (!device.info().is_cpu) {
      EXPECT_EQ(launches, 4u) << plan.explain();
    }
    eval(std::span(&y, 1));
    const Tensor g = gradients(sum(y * factors), std::span(&x, 1))[0].eval();
    for (const int64_t image : {int64_t{27}, int64_t{28}}) {
      SCOPED_TRACE(image);
      Tensor one = copied(x.detach().slice(0, image, image + 1)).eval();
      one.set_requires_grad();
      const Tensor alone = conv2d(one, w, options);
      expect_near(y.slice(0, image, image + 1), alone);
      expect_near(g.slice(0, image, image + 1),
                  gradients(sum(alone * factors), std::span(&one, 1))[0]);
    }
  }
}

}  // namespace
}  // namespace prism
