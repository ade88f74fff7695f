// Vendor products against a float64 reference, immediate and recorded, on every device that has
// them.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "prism/device.h"
#include "runtime/driver.h"
#include "runtime/native_product.h"
#include "sample_kernels/sample_case_tools.h"
#include "support/seed.h"

namespace prism {
namespace {

std::vector<Device> all_devices() {
  std::vector<Device> devices;
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) devices.emplace_back(driver, "");
  return devices;
}

struct Shape {
  uint32_t m, n, k;
  bool transpose_a, transpose_b;
  uint32_t batch = 1;
  uint32_t padding = 0;  // extra elements between rows
  float alpha = 1, beta = 0;
};

NativeProduct product_of(const Shape& shape, DType operand, DType result) {
  NativeProduct p;
  p.m = shape.m;
  p.n = shape.n;
  p.k = shape.k;
  p.transpose_a = shape.transpose_a;
  p.transpose_b = shape.transpose_b;
  p.a_type = p.b_type = operand;
  p.c_type = result;
  p.batch = shape.batch;
  p.a_stride = p.a_columns() + shape.padding;
  p.b_stride = p.b_columns() + shape.padding;
  p.c_stride = p.n + shape.padding;
  p.a_batch = shape.batch > 1 ? p.a_rows() * p.a_stride : 0;
  p.b_batch = 0;  // one b for the whole batch
  p.c_batch = shape.batch > 1 ? p.m * p.c_stride : 0;
  p.alpha = shape.alpha;
  p.beta = shape.beta;
  return checked(p);
}

struct Matrix {
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

Matrix random_matrix(kernels::CaseRandom& random, uint64_t bytes, DType type) {
  const size_t count = bytes / dtype_bytes(type);
  if (type == DType::i8 || type == DType::i32) {
    Matrix made;
    for (size_t i = 0; i < count; ++i) {
      const int32_t value = static_cast<int32_t>(random.next() % 255) - 127;
      made.values.push_back(value);
      if (type == DType::i8) {
        made.bytes.push_back(static_cast<std::byte>(value));
      } else {
        const auto word = kernels::bytes_of(std::vector<int32_t>{value});
        made.bytes.insert(made.bytes.end(), word.begin(), word.end());
      }
    }
    return made;
  }
  const std::vector<float> values = random.floats(count);
  return {kernels::stored(values, type), kernels::rounded(values, type)};
}

double value_at(const std::vector<std::byte>& bytes, size_t index, DType type) {
  if (type == DType::f32 || type == DType::i32) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + index * 4, 4);
    return type == DType::f32 ? std::bit_cast<float>(word) : static_cast<int32_t>(word);
  }
  uint16_t half = 0;
  std::memcpy(&half, bytes.data() + index * 2, 2);
  if (type == DType::bf16) return std::bit_cast<float>(uint32_t{half} << 16);
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : HUGE_VAL)
                      : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                     : std::ldexp(fraction, -24);
  return half >> 15 ? -size : size;
}

void expect_right(const Device& device, const Shape& shape, DType operand, DType result,
                  kernels::CaseRandom& random, bool recorded) {
  const NativeProduct p = product_of(shape, operand, result);
  const ProductBytes bytes = product_bytes(p);
  const Matrix a = random_matrix(random, bytes.a, operand),
               b = random_matrix(random, bytes.b, operand),
               c = random_matrix(random, bytes.c, result);
  const Buffer da = device.allocate(512 + bytes.a), db = device.allocate(bytes.b),
               dc = device.allocate(bytes.c);
  Queue& queue = device.queue();
  queue.write(da, a.bytes, 512);
  queue.write(db, b.bytes);
  queue.write(dc, c.bytes);
  const auto run = [&] { queue.product(p, {da, 512}, db, dc); };
  if (recorded)
    queue.replay(queue.record(run));
  else
    run();
  std::vector<std::byte> got(bytes.c);
  queue.read(dc, got);

  const double step = result == DType::f32   ? 1e-6
                      : result == DType::i32 ? 0
                      : result == DType::f16 ? 1e-3
                                             : 8e-3;
  for (uint32_t batch = 0; batch < p.batch; ++batch)
    for (uint32_t i = 0; i < p.m; ++i) {
      for (uint32_t j = 0; j < p.n; ++j) {
        double sum = 0, size = 0;
        for (uint32_t l = 0; l < p.k; ++l) {
          const double x = a.values[batch * p.a_batch +
                                    (p.transpose_a ? l * p.a_stride + i : i * p.a_stride + l)];
          const double y = b.values[p.transpose_b ? j * p.b_stride + l : l * p.b_stride + j];
          sum += x * y;
          size += std::fabs(x * y);
        }
        const size_t place = batch * p.c_batch + i * p.c_stride + j;
        const double wanted = p.alpha * sum + p.beta * c.values[place];
        const double bound = step * (size * std::fabs(p.alpha) * 0.1 + std::fabs(wanted) + 1e-2);
        ASSERT_NEAR(value_at(got, place, result), wanted, bound)
            << describe(p) << " at " << batch << ", " << i << ", " << j;
      }
      for (uint64_t j = p.n; j < p.c_stride && i + 1 < p.m; ++j) {
        const size_t place = batch * p.c_batch + i * p.c_stride + j;
        ASSERT_EQ(value_at(got, place, result), c.values[place]) << "between the rows of c";
      }
    }
}

TEST(NativeProducts, MatchAReferenceWhereADeviceHasThem) {
  const Shape shapes[] = {{1, 1, 1, false, false},
                          {128, 64, 32, false, true},
                          {17, 40, 24, false, false},
                          {64, 72, 128, true, false, 1, 8},
                          {48, 16, 64, true, true, 3, 0, 0.5f, 1.0f},
                          {5, 256, 512, false, true, 2, 16},
                          {33, 29, 31, false, true}};
  const std::pair<DType, DType> types[] = {{DType::f16, DType::f16},   {DType::f16, DType::f32},
                                           {DType::bf16, DType::bf16}, {DType::bf16, DType::f32},
                                           {DType::f32, DType::f32},   {DType::i8, DType::i32}};
  const uint32_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  kernels::CaseRandom random(seed);
  int devices = 0, with_products = 0, products = 0, refused = 0;
  for (const Device& device : all_devices()) {
    ++devices;
    int here = 0;
    for (const auto& [operand, result] : types)
      for (Shape shape : shapes) {
        if (result == DType::i32) shape.alpha = 1;
        std::string why;
        if (!device.supports(product_of(shape, operand, result), &why)) {
          ++refused;
          continue;
        }
        expect_right(device, shape, operand, result, random, here % 2 == 0);
        if (HasFatalFailure()) return;
        ++here;
      }
    with_products += here > 0;
    products += here;
    std::cout << device.id() << ": " << here << " products right; "
              << device.driver().native_products() << "\n";
  }
  EXPECT_GT(devices, 0);
  if (with_products > 0) {
    EXPECT_GE(products, with_products * 20) << "f16, bf16 and f32 in most shapes at least";
  }
  std::cout << with_products << " of " << devices << " devices have products of their own; "
            << refused << " cases refused\n";
  if (with_products == 0) GTEST_SKIP() << "no device here has products of its own";
}

}  // namespace
}  // namespace prism
