// Vendor compilers accept the GPU matrix products, without spills where they report them;
// unsupported products are rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "ops/products/cache_tail.h"
#include "ops/products/product_kernels.h"
#include "ops/tail.h"
#include "print/printer.h"
#include "prism/error.h"
#include "support/front_ends/hiprtc_front_end.h"
#include "support/front_ends/nvrtc_front_end.h"
#include "support/front_ends/wgsl_front_end.h"
#include "support/kernels/kernel_texts.h"
#include "support/ops/product_cases.h"

namespace prism {
namespace {

using namespace testing_support;

// silu(a gate) * the product + a bias, times a constant.
std::shared_ptr<const TailSpec> gate_and_bias() {
  auto spec = std::make_shared<TailSpec>();
  Chain& chain = spec->chain;
  const uint16_t x = chain.add_input(DType::f32), gate = chain.add_input(DType::f16),
                 bias = chain.add_input(DType::f32);
  const uint16_t gated = chain.add_apply(ScalarOp::mul, chain.add_apply(ScalarOp::silu, gate), x);
  chain.add_apply(ScalarOp::mul, chain.add_apply(ScalarOp::add, gated, bias),
                  chain.add_constant(0.5, DType::f32));
  spec->access = {TailAccess::place, TailAccess::column};
  return spec;
}

// One kernel of each kind, lowered for a dialect.
std::vector<ir::Kernel> lowered_kernels(const ir::Capabilities& capabilities) {
  std::vector<ir::Kernel> all = {ops::round_rows(DType::f16), ops::expert_tables(),
                                 ops::f32_product({.a_transposed = true, .b_transposed = true})};
  for (const ElementType type : all_weights()) {
    ops::VectorProduct few;
    few.weight = type;
    few.rounded = type.is_block();
    few.pair = true;
    few.tail = tail_of({.gate = ScalarOp::silu});
    all.push_back(ops::vector_product(ops::vector_product_for(few, 4096, 4096, capabilities, 64)));
  }
  ops::VectorProduct tailed;
  tailed.weight = BlockType::q4_k;
  tailed.rounded = true;
  tailed.tail = gate_and_bias();
  all.push_back(ops::vector_product(ops::vector_product_for(tailed, 4096, 4096, capabilities, 64)));
  ops::VectorProduct two = tailed;
  two.pair = true;
  two.tail = tail_of({.gate = ScalarOp::silu});
  for (const uint32_t x_rows : {1u, 8u}) {
    two.x_rows = x_rows;
    const auto cut = ops::vector_product_for(two, 11008, 4096, capabilities, 132);
    all.push_back(ops::vector_product(*ops::rounding_product(cut, 11008, capabilities, 132)));
  }
  // Norms fused into the products before and after them.
  const auto rounding = [&](ops::VectorProduct p, uint32_t n, uint32_t k) {
    return *ops::rounding_product(ops::vector_product_for(p, n, k, capabilities, 132), n,
                                  capabilities, 132);
  };
  two.x_rows = 1;
  two.scale_epsilon = 1e-5f;
  all.push_back(ops::vector_product(rounding(two, 11008, 4096)));
  for (const BlockType type : {BlockType::q4_k, BlockType::q6_k, BlockType::q8_0})
    for (const uint32_t k : {4096u, 11008u}) {
      ops::VectorProduct before =
          rounding({.weight = type, .rounded = true, .tail = tail_of({.residual = true})}, 4096, k);
      before.unscaled = true;
      all.push_back(ops::vector_product(before));
    }
  std::vector<ops::VectorProduct> beside;
  for (const BlockType type : {BlockType::q4_k, BlockType::q4_k, BlockType::q6_k}) {
    ops::VectorProduct one;
    one.weight = type;
    one.rounded = true;
    one.scale_epsilon = 1e-5f;
    beside.push_back(ops::vector_product_for(one, 4096, 4096, capabilities, 64));
    beside.back().subgroups = 4;
    beside.back().split = std::min(beside.back().split, 4u);
  }
  all.push_back(ops::vector_products(beside));
  for (ops::VectorProduct& each : beside) each.rows_each = std::max(2u, each.rows_each);
  for (const auto& [type, pairing] :
       {std::pair(DType::f16, RopePairing::halves), {DType::bf16, RopePairing::adjacent}}) {
    const ops::CacheRows rows{type, 128, type == DType::f16 ? 64u : 32u, pairing};
    for (ops::VectorProduct& each : beside) {
      each.x_rows = type == DType::f16 ? 1 : 2;
      if (each.x_rows > 1) each.scale_epsilon.reset();
    }
    if (capabilities.max_buffers > 8) all.push_back(ops::vector_products(beside, {}, &rows));
  }
  ops::F32Product whole;
  whole.tail = gate_and_bias();
  all.push_back(ops::f32_product(whole));
  ops::VectorProduct own;
  own.weight = BlockType::q5_k;
  own.x_rows = 8;
  all.push_back(ops::vector_product(ops::vector_product_for(own, 4096, 4096, capabilities, 64)));
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q6_k)}) {
    ops::FragmentProduct many;
    many.b = type;
    many.experts = type.is_block();
    if (!type.is_block()) many.tail = gate_and_bias();
    all.push_back(ops::fragment_product(ops::fragment_product_for(
        many, ops::dense_shape(many, 512, 4096, 4096), capabilities, 132)));
  }
  for (ir::Kernel& kernel : all) kernel = lower(kernel, capabilities);
  return all;
}

TEST(ProductTexts, CompileForNvidiaWithoutSpills) {
  PRISM_SKIP_WITHOUT(test::kNvrtc12);
  const ir::Capabilities capabilities = typical_capabilities("cuda");
  const auto result =
      test::compile_cuda(print_together(lowered_kernels(capabilities), capabilities), "sm_90",
                         {"--fmad=false", "--ptxas-options=-v"});
  ASSERT_TRUE(result.ok) << result.log;
  for (size_t at = 0; (at = result.log.find(" bytes spill stores", at)) != std::string::npos; ++at)
    EXPECT_EQ(result.log[at - 1], '0') << result.log.substr(at - 200, 300);
}

TEST(ProductTexts, CompileForAmd) {
  PRISM_SKIP_WITHOUT(test::hip_front_end("gfx90a"));
  const ir::Capabilities capabilities = typical_capabilities("hip");
  test::expect_amd_takes(lowered_kernels(capabilities), capabilities);
}

TEST(ProductTexts, CompileForWebGpu) {
  PRISM_SKIP_WITHOUT(test::kDawn);
  ir::Capabilities capabilities = typical_capabilities("wgsl");
  capabilities.max_buffers = 16;  // offered by the library and requested by the backend
  test::expect_webgpu_takes(lowered_kernels(capabilities), capabilities);
}

TEST(ProductSpecs, RefuseWhatNoKernelDoes) {
  const auto refused = [](auto make, const auto& product, const std::string& part) {
    try {
      make(product);
      ADD_FAILURE() << "made, in spite of " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  ops::VectorProduct few;
  few.x_rows = 9;
  refused(ops::vector_product, few, "9 rows of x");
  few.x_rows = 2;
  few.experts = true;
  refused(ops::vector_product, few, "one row of x");
  few.experts = false;
  few.split = 3;
  refused(ops::vector_product, few, "share rows by 3");
  few.split = 1;
  few.x_rows = 8;
  few.rows_each = 4;
  few.pair = true;
  refused(ops::vector_product, few, "a pair of matrices");
  few.tail = tail_of({.gate = ScalarOp::silu});
  refused(ops::vector_product, few, "64 sums a lane");
  ops::FragmentProduct many;
  many.operand = DType::f32;
  refused(ops::fragment_product, many, "operands of f32");
  many.operand = DType::f16;
  many.b = BlockType::q4_k;
  many.b_transposed = false;
  refused(ops::fragment_product, many, "b_transposed");
  many.b_transposed = true;
  many.tile_m = 40;
  refused(ops::fragment_product, many, "a tile of 40");
  few.weight = BlockType::q4_k;
  EXPECT_THROW(ops::vector_product_launch(few, 4, 100, 1, 100, 4), Error) << "k of no whole blocks";
}

}  // namespace
}  // namespace prism
