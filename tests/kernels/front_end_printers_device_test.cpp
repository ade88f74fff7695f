// Every shipped kernel and every operation, printed and compiled by the vendors' compilers; SYCL
// text is also run.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "print/printer.h"
#include "prism/error.h"
#include "sample_kernels/sample_library.h"
#include "support/front_ends/hiprtc_front_end.h"
#include "support/front_ends/nvrtc_front_end.h"
#include "support/front_ends/sycl_jit.h"
#include "support/kernels/op_kernels.h"
#include "support/kernels/printer_kernels.h"

namespace prism::test {
namespace {

using ir::Capabilities;
using ir::Kernel;

void append(std::vector<Kernel>& to, std::vector<Kernel> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

// All kernels that a device with these capabilities supports, including the library's if `shipped`.
// Lowering rejects the others.
std::vector<Kernel> lowered_kernels(const Capabilities& capabilities, bool shipped = true) {
  std::vector<Kernel> all = op_kernels();
  append(all, i64_kernels());
  append(all, fragment_kernels());
  append(all, f16_kernels());
  if (capabilities.math_f64) append(all, f64_kernels());
  append(all, fence_kernels());
  if (shipped)
    for (const SampleKernel& entry : sample_kernels()) all.push_back(entry.make());
  std::vector<Kernel> result;
  for (const Kernel& kernel : all) {
    try {
      result.push_back(lower(kernel, capabilities));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotSupported) << error.what();
    }
  }
  // A capability set that rejects most kernels would test nothing.
  EXPECT_GE(result.size() + 4, all.size());
  return result;
}

Capabilities cuda_capabilities(uint32_t level) {
  Capabilities c = typical_capabilities("cuda");
  c.dialect_level = level;
  c.dot4 = level >= 61;
  c.async_copy = level >= 80;
  c.dependent_launch = level >= 90;
  if (level < 80) c.fragments.clear();
  if (level < 80) c.shared_bytes = 48 << 10;
  return c;
}

struct CudaTarget {
  const char* arch;
  uint32_t level;
};

class CudaText : public testing::TestWithParam<CudaTarget> {};

TEST_P(CudaText, CompilesForEveryKernel) {
  PRISM_SKIP_WITHOUT(kNvrtc12);
  const Capabilities capabilities = cuda_capabilities(GetParam().level);
  const CompileResult result =
      compile_cuda(print_together(lowered_kernels(capabilities), capabilities), GetParam().arch,
                   {"--fmad=false"});
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_EQ(result.log.find("kernel.cu("), std::string::npos)
      << result.log;  // our text causes no warning
}

INSTANTIATE_TEST_SUITE_P(Arches, CudaText,
                         testing::Values(CudaTarget{"compute_50", 50}, CudaTarget{"sm_61", 61},
                                         CudaTarget{"sm_75", 75}, CudaTarget{"sm_80", 80},
                                         CudaTarget{"sm_90", 90}, CudaTarget{"sm_100", 100}),
                         [](const auto& test) { return std::string(test.param.arch); });

struct HipTarget {
  const char* arch;
  uint32_t wave;
  bool dot4 = false, matrix = false;
};

class HipText : public testing::TestWithParam<HipTarget> {};

TEST_P(HipText, CompilesForEveryKernel) {
  PRISM_SKIP_WITHOUT(hip_front_end(GetParam().arch));
  Capabilities capabilities = typical_capabilities("hip");
  capabilities.subgroup_size = GetParam().wave;
  capabilities.subgroup_sizes = {GetParam().wave};
  capabilities.dialect_level = static_cast<uint32_t>(std::stoul(GetParam().arch + 3, nullptr, 16));
  capabilities.dot4 = GetParam().dot4;
  if (GetParam().matrix) {
    capabilities.fragments = typical_capabilities("cuda").fragments;
    capabilities.fragment_layout = true;
  }
  std::vector<Kernel> kernels = lowered_kernels(capabilities);
  for (const Kernel& kernel : fragment_layout_kernels())
    kernels.push_back(lower(kernel, capabilities));
  const CompileResult result = compile_hip(print_together(kernels, capabilities), GetParam().arch);
  ASSERT_TRUE(result.ok) << result.log;
}

INSTANTIATE_TEST_SUITE_P(Arches, HipText,
                         testing::Values(HipTarget{"gfx803", 64}, HipTarget{"gfx900", 64},
                                         HipTarget{"gfx908", 64, true, true},
                                         HipTarget{"gfx90a", 64, true, true},
                                         HipTarget{"gfx1010", 32}, HipTarget{"gfx1030", 32, true},
                                         HipTarget{"gfx942", 64, true, true},
                                         HipTarget{"gfx1100", 32, true, true},
                                         HipTarget{"gfx1201", 32, true, true}),
                         [](const auto& test) { return std::string(test.param.arch); });

std::vector<std::vector<uint8_t>> contents_of(const KernelCase& launch) {
  std::vector<std::vector<uint8_t>> result;
  for (const std::vector<std::byte>& buffer : launch.buffers) {
    const auto* data = reinterpret_cast<const uint8_t*>(buffer.data());
    result.emplace_back(data, data + buffer.size());
  }
  return result;
}

// Compiles all kernels at once, because the compiler takes seconds to start, and runs the small
// cases of every shipped kernel. With subgroups the shipped ones run through the plug-in
// (sycl_device_test), so only the others are compiled here: all of them would take half a minute.
TEST(SyclText, CompilesForEveryKernelAndRunsTheShippedOnes) {
  PRISM_SKIP_WITHOUT(kSyclRoot);
  for (const uint32_t subgroup : {16u, 0u}) {
    Capabilities capabilities = typical_capabilities("sycl");
    capabilities.subgroup_size = subgroup;
    const bool shipped = subgroup == 0;
    SyclProgram program(print_together(lowered_kernels(capabilities, shipped), capabilities));
    ASSERT_TRUE(program.ok()) << program.log();
    if (!shipped) continue;
    for (const SampleKernel& entry : sample_kernels()) {
      const Kernel kernel = entry.make();
      Kernel lowered;
      try {
        lowered = lower(kernel, capabilities);
      } catch (const Error&) {
        continue;  // checked by lowered_kernels
      }
      for (const KernelCase& launch : entry.cases(7, true)) {
        std::vector<std::vector<uint8_t>> buffers = contents_of(launch);
        const CompileResult run = program.run(
            {print(lowered, capabilities).entry, launch.groups, {kernel.group_size, 1, 1}, 3},
            buffers, launch.params);
        ASSERT_TRUE(run.ok) << entry.name << " " << launch.name << ": " << run.log;
        std::vector<std::vector<std::byte>> contents;
        for (const std::vector<uint8_t>& buffer : buffers) {
          const auto* data = reinterpret_cast<const std::byte*>(buffer.data());
          contents.emplace_back(data, data + buffer.size());
        }
        EXPECT_EQ(compare(launch, kernel, contents), "")
            << entry.name << " " << launch.name << " subgroup " << subgroup;
      }
    }
  }
}

}  // namespace
}  // namespace prism::test
