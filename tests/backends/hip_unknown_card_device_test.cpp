// A card that the installed ROCm does not support: the program names it and falls back to Vulkan.
// The double replaces ROCm, llvmpipe the card's Vulkan driver.
#include <gtest/gtest.h>

#include <fstream>

#include "support/doubles/double_cases.h"
#include "support/doubles/use_hip_double.h"
#include "support/models/expected_text.h"
#include "support/paths.h"

namespace prism {
namespace {

using test::contains;
using test::HipDouble;
using test::ProcessResult;
using test::run_process;

struct Unknown {
  const char* name;
  const char* settings;  // for the double
  const char* gfx;
  const char* reason;  // part of the expected reason
  const char* way;     // another suggestion besides Vulkan
};

class HipUnknownCard : public testing::TestWithParam<Unknown> {
 protected:
  // The kernel driver's list: a CPU and an RX 580.
  void SetUp() override {
    for (const auto& [version, node] : {std::pair{"0", "0"}, {"80003", "1"}}) {
      const auto folder = double_.folder() / "nodes" / node;
      std::filesystem::create_directories(folder);
      std::ofstream(folder / "properties") << "gfx_target_version " << version << '\n';
    }
  }
  HipDouble double_;
};

TEST_P(HipUnknownCard, IsNamedAndTakenThroughVulkan) {
  const Unknown& unknown = GetParam();
  const auto topology =
      double_.variable("PRISM_KFD_TOPOLOGY", (double_.folder() / "nodes").string());
  const auto told = double_.variable("PRISM_HIP_DOUBLE", unknown.settings);
  // Without the CPU, Auto is left with a software device.
  const auto backends = double_.variable("PRISM_BACKENDS", "hip,vulkan");
  const ProcessResult devices = run_process({test::program().string(), "devices"});
  if (!contains(devices.output, "vulkan:0")) GTEST_SKIP() << "needs a Vulkan device";
  EXPECT_EQ(devices.status, 0);
  for (const char* part : {unknown.gfx, unknown.reason, "used through Vulkan", unknown.way,
                           "docs/old-amd-cards.md", "Chosen: vulkan:0"})
    EXPECT_TRUE(contains(devices.output, part)) << part << "\n" << devices.output;

  const std::string model = test::shared_model("stories260K");
  if (model.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  const ProcessResult text = run_process({test::program().string(), "run", model, "--raw", "-n",
                                          "6", "--temperature", "0", "-p", "Once upon a time"});
  EXPECT_EQ(text.status, 0) << text.output;
  EXPECT_TRUE(contains(text.output, " on vulkan:0")) << text.output;
  EXPECT_TRUE(contains(text.output, ", there was a little")) << text.output;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, HipUnknownCard,
    testing::Values(Unknown{"Compiler", "gfx=803,refuse_chip=1", "gfx803",
                            "hiprtc 6.2 does not compile for gfx803", "ROC_ENABLE_PRE_VEGA=1"},
                    Unknown{"Runtime", "devices=0", "gfx803",
                            "HIP runtime 6.2 does not know the card", "ROCm 5.7 or older"},
                    Unknown{"Counting", "fail=hipGetDeviceCount:1:209", "gfx803",
                            "HIP runtime 6.2 does not know the card", "ROCm 5.7 or older"},
                    Unknown{"Loading", "gfx=1032,no_binary=1", "gfx1032", "hipErrorNoBinaryForGpu",
                            "HSA_OVERRIDE_GFX_VERSION=10.3.0"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace prism
