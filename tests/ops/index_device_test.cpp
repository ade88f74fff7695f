// Tests indices out of range: an error on the CPU; on other devices zeros, and nothing written.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"
#include "support/devices/devices.h"
#include "tensor/chain/chain_op.h"

namespace prism {
namespace {

using Doubles = std::vector<double>;

// Calls test(device, indices, is_cpu) with indices of both types.
void on_every_device(const std::function<void(const Device&, const Tensor&, bool)>& test) {
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      const bool is_cpu = device.info().is_cpu;
      test(device, from_vector<int32_t>({1, 3, -1, INT32_MIN, 2}, {5}, device), is_cpu);
      // The low words of the third and fourth are in range.
      test(device, from_vector<int64_t>({1, 3, -1, (int64_t{1} << 32) + 1, 2}, {5}, device),
           is_cpu);
    }
  }
}

Tensor counted(const Shape& shape, const Device& device) {
  Doubles values;
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(static_cast<double>(i + 1));
  return from_doubles(values, shape, DType::f32, device);
}

TEST(IndexDevice, RowsOutsideAreZeros) {
  on_every_device([](const Device& device, const Tensor& indices, bool is_cpu) {
    const Tensor rows = gather_rows(counted({3, 2}, device), indices);
    if (is_cpu)
      EXPECT_THROW(rows.eval(), Error);
    else
      EXPECT_EQ(rows.to_doubles(), (Doubles{3, 4, 0, 0, 0, 0, 0, 0, 5, 6})) << device.id();
  });
}

// Without f16 tiles on Intel's OpenCL, whose compiler takes a minute for them: PoCL runs the same
// text.
TEST(IndexDevice, RowsOfNoExpertAreNaN) {
  for (const int64_t rows : {1, 6}) {  // by slot, and by tiles
    on_every_device([&](const Device& device, const Tensor& indices, bool is_cpu) {
      for (const DType type : {DType::f16, DType::f32}) {
        if (test::is_intels_opencl(device.info()) && type == DType::f16 && rows > 1) {
          test::left_out(device.id(), "Intel's OpenCL takes a minute to compile f16 tiles");
          continue;
        }
        const Tensor x = ones({rows, 8}, type, device), weights = ones({3, 2, 8}, type, device);
        const Tensor experts = copied(indices.unsqueeze(0).expand({rows, 5}));
        const Tensor y = expert_matmul(x, weights, experts);
        if (is_cpu) {
          EXPECT_THROW(y.eval(), Error);
          continue;
        }
        const Doubles values = y.to_doubles();
        ASSERT_EQ(values.size(), static_cast<size_t>(rows) * 10) << device.id();
        for (size_t i = 0; i < values.size(); ++i) {
          const size_t place = i / 2 % 5;
          if (place == 0 || place == 4)
            EXPECT_EQ(values[i], 8) << device.id() << " " << i;
          else
            EXPECT_TRUE(std::isnan(values[i])) << device.id() << " " << i << ": " << values[i];
        }
      }
    });
  }
}

TEST(IndexDevice, ElementsOutsideAreZeros) {
  on_every_device([](const Device& device, const Tensor& indices, bool is_cpu) {
    const Tensor taken = take_along(counted({3}, device), indices, 0);
    if (is_cpu)
      EXPECT_THROW(taken.eval(), Error);
    else
      EXPECT_EQ(taken.to_doubles(), (Doubles{2, 0, 0, 0, 3})) << device.id();
  });
}

TEST(IndexDevice, RowsOutsideAreNotWritten) {
  on_every_device([](const Device& device, const Tensor& indices, bool is_cpu) {
    const Tensor base = zeros({3, 2}, DType::f32, device), rows = counted({5, 2}, device);
    for (const Tensor& written :
         {scatter_rows(base, indices, rows), scatter_add_rows(base, indices, rows)}) {
      if (is_cpu)
        EXPECT_THROW(written.eval(), Error);
      else
        EXPECT_EQ(written.to_doubles(), (Doubles{0, 0, 1, 2, 9, 10})) << device.id();
    }
  });
}

// As many rows as are sorted before they are added.
TEST(IndexDevice, ManyRowsOutsideAreNotAdded) {
  on_every_device([](const Device& device, const Tensor& indices, bool is_cpu) {
    const Tensor base = zeros({3, 2}, DType::f32, device),
                 rows = ones({5, 60, 2}, DType::f32, device);
    const Tensor many = copied(indices.unsqueeze(1).expand({5, 60}));
    const Tensor written = scatter_add_rows(base, many, rows);
    if (is_cpu)
      EXPECT_THROW(written.eval(), Error);
    else
      EXPECT_EQ(written.to_doubles(), (Doubles{0, 0, 60, 60, 60, 60})) << device.id();
  });
}

TEST(IndexDevice, OneHotOfAClassOutsideIsZeros) {
  on_every_device([](const Device& device, const Tensor& indices, bool) {
    EXPECT_EQ(one_hot(indices, 3).to_doubles(),
              (Doubles{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}))
        << device.id();
  });
}

}  // namespace
}  // namespace prism
