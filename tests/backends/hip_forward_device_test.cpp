// Forwarding of printed HIP text to NVRTC, which accepts every kernel, so that the HIP double can
// run the HIP backend on an NVIDIA card.
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "print/printer.h"
#include "prism/error.h"
#include "sample_kernels/sample_library.h"
#include "support/doubles/driver_double.h"
#include "support/front_ends/front_end.h"
#include "support/front_ends/nvrtc_front_end.h"
#include "support/kernels/op_kernels.h"
#include "support/shared_library.h"

namespace prism::test {
namespace {

std::string forwarded(const std::string& text) {
  const SharedLibrary library(DriverDouble::library("hip"));
  return library.function<const char*(const char*)>("prism_hip_double_forwarded")(text.c_str());
}

ir::Capabilities forwarding_capabilities() {
  ir::Capabilities capabilities = typical_capabilities("hip");
  capabilities.dialect_level = 0x1030;
  capabilities.dot4 = true;
  capabilities.subgroup_size = 32;
  capabilities.subgroup_sizes = {32};
  capabilities.shared_bytes = 48 << 10;
  return capabilities;
}

TEST(HipForward, TextOfEveryKernelIsTakenByNvrtc) {
  PRISM_SKIP_WITHOUT(kNvrtc12);
  const ir::Capabilities capabilities = forwarding_capabilities();
  std::vector<ir::Kernel> all = op_kernels(), lowered;
  for (auto more : {i64_kernels(), fragment_kernels(), f16_kernels(), f64_kernels()})
    all.insert(all.end(), more.begin(), more.end());
  for (const SampleKernel& entry : sample_kernels()) all.push_back(entry.make());
  for (const ir::Kernel& kernel : all) {
    try {
      lowered.push_back(lower(kernel, capabilities));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotSupported) << error.what();
    }
  }
  EXPECT_GE(lowered.size() + 4, all.size());
  const std::string text = forwarded(print_together(lowered, capabilities));
  for (const char* arch : {"sm_75", "sm_90"}) {
    const CompileResult result = compile_cuda(text, arch, {"--fmad=false", "--std=c++17"});
    EXPECT_TRUE(result.ok) << result.log.substr(0, 4000);
  }
}

// Every device fence is kept, and barriers add none.
TEST(HipForward, FencesOfTheDeviceStay) {
  PRISM_SKIP_WITHOUT(kNvrtc12);
  const ir::Capabilities capabilities = forwarding_capabilities();
  const ir::Kernel kernel = fence_kernels().front();
  size_t wanted = 0, found = 0;
  ir::walk(kernel.body, [&](const ir::Inst& inst) { wanted += inst.op == ir::Op::device_fence; });
  const CompileResult result =
      compile_cuda(forwarded(print(lower(kernel, capabilities), capabilities).text), "compute_90",
                   {"--fmad=false", "--std=c++17"});
  ASSERT_TRUE(result.ok) << result.log;
  const std::string fence = "fence.acq_rel.gpu";
  for (size_t at = 0; (at = result.code.find(fence, at)) != std::string::npos; ++at) ++found;
  EXPECT_GT(wanted, 0u);
  EXPECT_EQ(found, wanted) << result.code;
}

}  // namespace
}  // namespace prism::test
