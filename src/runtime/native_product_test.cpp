// Validation of products, and their way to the driver.
#include "runtime/native_product.h"

#include <functional>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/error.h"
#include "support/devices/fake_device.h"

namespace prism {
namespace {

NativeProduct product_of(uint32_t m, uint32_t n, uint32_t k) {
  NativeProduct product;
  product.m = m;
  product.n = n;
  product.k = k;
  return product;
}

std::string message(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_message(const std::function<void()>& work, const std::string& part) {
  const std::string text = message(work);
  EXPECT_NE(text.find(part), std::string::npos) << "said: \"" << text << "\"";
}

TEST(NativeProduct, WritesStridesOut) {
  NativeProduct product = product_of(3, 5, 7);
  product.transpose_b = true;
  const NativeProduct full = checked(product);
  EXPECT_EQ(full.a_stride, 7u);
  EXPECT_EQ(full.b_stride, 7u) << "b is 5 x 7";
  EXPECT_EQ(full.c_stride, 5u);
  const ProductBytes bytes = product_bytes(full);
  EXPECT_EQ(bytes.a, 3 * 7 * 2u);
  EXPECT_EQ(bytes.b, 5 * 7 * 2u);
  EXPECT_EQ(bytes.c, 3 * 5 * 2u);
  product.transpose_a = true;
  EXPECT_EQ(checked(product).a_stride, 3u) << "a is 7 x 3";
}

TEST(NativeProduct, CountsBytesOfBatchesAndStrides) {
  NativeProduct product = product_of(3, 5, 7);
  product.c_type = DType::f32;
  product.batch = 4;
  product.a_stride = 8;
  product.a_batch = 100;
  product.c_batch = 16;
  const ProductBytes bytes = product_bytes(checked(product));
  EXPECT_EQ(bytes.a, (3 * 100 + 2 * 8 + 7) * 2u);
  EXPECT_EQ(bytes.b, 7 * 5 * 2u) << "one b for all";
  EXPECT_EQ(bytes.c, (3 * 16 + 15) * 4u);
  product.m = 0;
  EXPECT_EQ(product_bytes(checked(product)).b, 0u) << "nothing is read";
}

TEST(NativeProduct, NamesWhatIsWrong) {
  NativeProduct product = product_of(3, 5, 7);
  product.a_stride = 6;
  expect_message([&] { checked(product); }, "a has a row stride of 6 elements, and rows of 7");
  product = product_of(3, 5, 7);
  product.batch = 2;
  product.c_batch = 14;
  expect_message([&] { checked(product); },
                 "c has a batch stride of 14 elements, and matrices of 15");
  product = product_of(3, 5, 7);
  product.b_type = DType::bf16;
  expect_message([&] { checked(product); }, "3 x 5 x 7, f16 x bf16 to f16: products are");
  product.a_type = product.b_type = DType::i8;
  product.c_type = DType::i32;
  EXPECT_EQ(message([&] { checked(product); }), "");
  product.alpha = 0.5f;
  expect_message([&] { checked(product); }, "alpha 0.5");
}

struct ProductQueue : ::testing::Test {
  std::shared_ptr<test::FakeDevice> driver = std::make_shared<test::FakeDevice>("fake:0");
  Device device{driver, "test"};
  Buffer a = device.allocate(4096), b = device.allocate(4096), c = device.allocate(4096);
};

TEST_F(ProductQueue, PassesRangesOnAndRecords) {
  Queue& queue = device.queue();
  const NativeProduct product = product_of(4, 8, 16);
  queue.product(product, {a, 512}, b, {a, 1024});
  ASSERT_EQ(driver->log.products.size(), 1u);
  EXPECT_EQ(driver->log.products[0].a.offset, 512u);
  EXPECT_EQ(driver->log.products[0].c.memory, &a.driver());
  EXPECT_EQ(driver->log.products[0].product.b_stride, 8u);
  const CommandGraph recording = queue.record([&] {
    queue.product(product, a, b, c);
    EXPECT_EQ(driver->log.products.size(), 1u) << "collected first, recorded after";
  });
  EXPECT_EQ(driver->log.products.size(), 2u);
  queue.product(product_of(0, 8, 16), a, b, c);
  EXPECT_EQ(driver->log.products.size(), 2u) << "nothing to do";
}

TEST_F(ProductQueue, RefusesWhatDoesNotFit) {
  Queue& queue = device.queue();
  expect_message([&] { queue.product(product_of(64, 8, 33), a, b, c); },
                 "a spans 4224 bytes, its buffer has 4096 from byte 0 on");
  expect_message(
      [&] {
        queue.product(product_of(4, 8, 16), a, {b, 0, 128}, c);
      },
      "b spans 256 bytes, its buffer has 128");
  expect_message([&] { queue.product(product_of(4, 8, 16), a, b, a); }, "c overlaps an operand");
  expect_message(
      [&] {
        queue.product(product_of(4, 8, 16), {a, 8}, b, c);
      },
      "a range at byte 8; ranges begin at multiples of");
  expect_message([&] { queue.product(product_of(4, 8, 16), Buffer(), b, c); }, "empty Buffer");
  NativeProduct floats = product_of(4, 8, 16);
  floats.a_type = floats.b_type = floats.c_type = DType::f32;
  std::string why;
  EXPECT_FALSE(device.supports(floats, &why));
  EXPECT_EQ(why, "fake: no f32");
  expect_message([&] { queue.product(floats, a, b, c); }, "on fake:0: fake: no f32; ask");
  EXPECT_TRUE(driver->log.products.empty());
}

}  // namespace
}  // namespace prism
