// Tests matrix products of some rows with packed weights on the checked interpreter and on every
// device found: all block types, 9 to 64 rows and beyond, awkward shapes, poisoned results.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "support/ops/products_anywhere.h"

namespace prism::testing_support {
namespace {

class PackedProducts : public ProductsAnywhere {
 protected:
  void check(ops::PackedProduct p, uint32_t n, uint32_t k, uint32_t rows, Following after = {}) {
    after.stored = p.y;
    p.tail = tail_of(after);
    p.aligned = n % 4 == 0;
    const Matrix w = random_matrix(random_, p.weight, n, k),
                 x = random_matrix(random_, DType::f16, rows, k),
                 bias = random_matrix(random_, DType::f32, 1, n),
                 residual = random_matrix(random_, p.y, rows, n);
    Expected want = product(w, x);
    for (size_t i = 0; i < want.values.size(); ++i) {
      if (after.bias) want.values[i] += bias.values[i % n];
      if (after.residual) want.values[i] += residual.values[i];
      want.magnitudes[i] += 2;
    }
    KernelCase one = case_of(ops::packed_product_launch(p, n, k, rows, k));
    one.buffers = {w.bytes, x.bytes};
    if (after.bias) one.buffers.push_back(bias.bytes);
    if (after.residual) one.buffers.push_back(residual.bytes);
    one.buffers.push_back(kernels::poison(uint64_t(rows) * n, p.y));
    const ir::Kernel kernel = ops::packed_product(p);
    // A weight is scale * code + offset with a scale and an offset of f16.
    EXPECT_EQ(compare_product(run(kernel, one), p.y, want, 2e-3, p.y == DType::f32 ? 1e-6 : 1e-4),
              "")
        << GetParam().name << " " << kernel.name << " " << rows << " rows, " << n << " x " << k;
  }
};

std::vector<ElementType> block_types() {
  std::vector<ElementType> types;
  for (int i = 0; i < kBlockTypeCount; ++i) types.emplace_back(static_cast<BlockType>(i));
  return types;
}

TEST_P(PackedProducts, EveryType) {
  if (is_intel()) GTEST_SKIP() << "Intel's OpenCL takes minutes to compile fragments";
  for (const ElementType type : drawn(block_types(), 1)) {
    ops::PackedProduct p;
    p.weight = type;
    p.tile_n = 16;
    p.tile_k = 128;
    p.warps_n = 1;
    p.warps_k = 2;
    // Fewer rows than the tile, its whole height, several tiles; columns that end within a tile.
    // The last has another program.
    for (const uint32_t rows : {9u, 16u, 33u}) check(p, 40, type.block_elements() * 3, rows);
    if (!compiles_slowly()) check(p, 40, type.block_elements() * 5, 64, {.bias = true});
  }
}

TEST_P(PackedProducts, EveryTiling) {
  if (is_intel()) GTEST_SKIP() << "Intel's OpenCL takes minutes to compile fragments";
  const std::vector<BlockType> types = {BlockType::q4_k, BlockType::q5_k, BlockType::q6_k,
                                        BlockType::q8_0, BlockType::q4_0, BlockType::q2_k};
  const auto type = [&] { return types[random_.next() % types.size()]; };
  struct Cut {
    uint32_t rows, n, k, warps_n, warps_k, stages;
  };
  const Cut cuts[] = {{64, 32, 256, 2, 1, 3}, {32, 64, 256, 2, 2, 4}, {16, 16, 128, 1, 1, 3}};
  for (uint64_t i = 0; i < 3; ++i) {
    // The first two need up to 133 KB of shared memory.
    const bool is_small = GetParam().driver && capabilities().shared_bytes < 160 * 1024;
    if (i != 2 && (compiles_slowly() || is_small)) continue;
    const Cut& c = cuts[i];
    ops::PackedProduct p;
    p.weight = type();
    p.y = i == 1 ? DType::f16 : DType::f32;
    p.tile_rows = c.rows;
    p.tile_n = c.n;
    p.tile_k = c.k;
    p.warps_n = c.warps_n;
    p.warps_k = c.warps_k;
    p.stages = c.stages;
    check(p, 37, 768, c.rows - 3, {.bias = true});
    if (compiles_slowly()) continue;
    check(p, 72, 1280, c.rows + 1, {.residual = true});
    check(p, 4, 256, 1);
  }
}

TEST_P(PackedProducts, TilingsThatDevicesGet) {
  if (!GetParam().driver) GTEST_SKIP() << "the tiling depends on a device";
  bool any = false;
  for (const uint32_t rows : {9u, 33u, 64u}) {
    ops::PackedProduct p;
    const auto chosen = ops::packed_product_for(p, 264, 512, rows, capabilities(), 2);
    if (!chosen) continue;
    any = true;
    check(*chosen, 264, 512, rows);
  }
  if (!any) GTEST_SKIP() << "the device does not say which lane of a fragment holds what";
}

PRISM_PRODUCTS_EVERYWHERE(PackedProducts);

}  // namespace
}  // namespace prism::testing_support
