// Which reported subgroup sizes are used.
#include "backends/opencl/opencl_facts.h"

#include <gtest/gtest.h>

namespace prism::opencl {
namespace {

ir::Capabilities taken(const SubgroupOffer& offer) {
  ir::Capabilities capabilities;
  use_subgroups(offer, capabilities);
  return capabilities;
}

using Sizes = std::vector<uint32_t>;

TEST(OpenClFacts, TakesSizesThatAKernelMayAskFor) {
  const ir::Capabilities intel = taken({"Intel(R) OpenCL Graphics", 0, {8, 16, 32}});
  EXPECT_EQ(intel.subgroup_sizes, (Sizes{8, 16, 32}));
  EXPECT_EQ(intel.subgroup_size, 16u);
  EXPECT_EQ(taken({"Intel(R) OpenCL", 0, {64}}).subgroup_size, 64u);
  EXPECT_EQ(taken({"AMD Accelerated Parallel Processing", 0, {}}).subgroup_size, 0u);
}

TEST(OpenClFacts, DoesNotTrustTheSubgroupsOfPoCL) {
  const ir::Capabilities pocl = taken({"Portable Computing Language", 0, {1, 2, 4, 8, 16, 512}});
  EXPECT_EQ(pocl.subgroup_size, 0u);
  EXPECT_TRUE(pocl.subgroup_sizes.empty());
}

TEST(OpenClFacts, TakesWarpsWhereTheCompilerTakesPtx) {
  const ir::Capabilities card = taken({"NVIDIA CUDA", 90, {}});
  EXPECT_EQ(card.subgroup_size, 32u);
  EXPECT_EQ(card.subgroup_sizes, Sizes{32});
  EXPECT_EQ(taken({"NVIDIA CUDA", 35, {}}).subgroup_size, 0u);  // Kepler
}

}  // namespace
}  // namespace prism::opencl
