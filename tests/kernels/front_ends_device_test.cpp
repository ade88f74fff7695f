// Handwritten kernels show that each vendor front end runs, accepts correct text and rejects wrong
// text, so that the printers' tests can rely on it.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/front_ends/hiprtc_front_end.h"
#include "support/front_ends/nvrtc_front_end.h"
#include "support/front_ends/sycl_jit.h"
#include "support/front_ends/wgsl_front_end.h"

namespace prism::test {
namespace {

template <typename T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<T> values_of(const std::vector<uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool is_elf(const std::string& code) {
  return code.rfind(
             "\x7f"
             "ELF",
             0) == 0;
}

// --- CUDA

struct CudaCase {
  const char* arch;
  const char* library;
};

class Nvrtc : public testing::TestWithParam<CudaCase> {};

constexpr const char* kCudaText = R"(
extern "C" __global__ void block_sums(const float* x, float* y, unsigned n) {
  __shared__ float partial[8];
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = i < n ? x[i] : 0.0f;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(y, partial[0] + partial[1]);
})";

TEST_P(Nvrtc, CompilesWithoutGpuOrHeaders) {
  PRISM_SKIP_WITHOUT(GetParam().library);
  const CompileResult result = compile_cuda(kCudaText, GetParam().arch, {}, GetParam().library);
  ASSERT_TRUE(result.ok) << result.log;
  if (std::string(GetParam().arch).rfind("sm_", 0) == 0) {
    EXPECT_TRUE(is_elf(result.code));
  } else {
    EXPECT_NE(result.code.find(".entry block_sums"), std::string::npos) << result.code;
  }
}

TEST_P(Nvrtc, RefusesWrongText) {
  PRISM_SKIP_WITHOUT(GetParam().library);
  const CompileResult result =
      compile_cuda("extern \"C\" __global__ void k(int* x) {\n  x[0] = missing;\n}",
                   GetParam().arch, {}, GetParam().library);
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.log.find("kernel.cu(2)"), std::string::npos) << result.log;
  EXPECT_NE(result.log.find("missing"), std::string::npos) << result.log;
}

INSTANTIATE_TEST_SUITE_P(Arches, Nvrtc,
                         testing::Values(CudaCase{"compute_50", kNvrtc12},
                                         CudaCase{"sm_61", kNvrtc12}, CudaCase{"sm_75", kNvrtc12},
                                         CudaCase{"sm_90", kNvrtc12}, CudaCase{"sm_100", kNvrtc12},
                                         CudaCase{"sm_75", kNvrtc13}, CudaCase{"sm_100", kNvrtc13}),
                         [](const auto& test) {
                           return std::string(test.param.arch) +
                                  (test.param.library == kNvrtc12 ? "_by_12" : "_by_13");
                         });

TEST(Nvrtc13, RefusesAnArchitectureItDropped) {
  PRISM_SKIP_WITHOUT(kNvrtc13);
  EXPECT_FALSE(compile_cuda(kCudaText, "compute_50", {}, kNvrtc13).ok);
}

// --- HIP

class Hip : public testing::TestWithParam<const char*> {};

constexpr const char* kHipText = R"(
#ifndef __global__
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __device__ __attribute__((device))
#endif
extern "C" __global__ void reverse(const float* x, float* y) {
  __shared__ float tile[64];
  unsigned lane = __builtin_amdgcn_workitem_id_x();
  unsigned first = __builtin_amdgcn_workgroup_id_x() * 64;
  tile[lane] = x[first + lane];
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
  __builtin_amdgcn_s_barrier();
  y[first + lane] = tile[63 - lane];
})";

TEST_P(Hip, CompilesWithoutGpuOrHeaders) {
  PRISM_SKIP_WITHOUT(hip_front_end(GetParam()));
  const CompileResult result = compile_hip(kHipText, GetParam());
  ASSERT_TRUE(result.ok) << result.log;
  if (hip_front_end(GetParam()) == kHiprtc) {
    EXPECT_TRUE(is_elf(result.code));
  } else {
    EXPECT_NE(result.code.find(GetParam()), std::string::npos) << result.code;
  }
}

TEST_P(Hip, RefusesWrongText) {
  PRISM_SKIP_WITHOUT(hip_front_end(GetParam()));
  const CompileResult result = compile_hip(
      "extern \"C\" __attribute__((global)) void k(int* x) {\n  x[0] = missing;\n}", GetParam());
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.log.find("missing"), std::string::npos) << result.log;
}

INSTANTIATE_TEST_SUITE_P(Arches, Hip,
                         testing::Values("gfx803", "gfx900", "gfx90a", "gfx1030", "gfx942",
                                         "gfx1100", "gfx1201"),
                         [](const auto& test) { return std::string(test.param); });

// --- WGSL

class Wgsl : public testing::TestWithParam<const char*> {};

constexpr const char* kWgslText = R"(
struct Params { count: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
var<workgroup> tile: array<f32, 64>;

@compute @workgroup_size(64)
fn reverse(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
  let first = group.x * 64u;
  if (first + lane < params.count) { tile[lane] = x[first + lane]; }
  workgroupBarrier();
  y[first + lane] = tile[63u - lane] * params.scale;
})";

TEST_P(Wgsl, CompilesRightText) {
  PRISM_SKIP_WITHOUT(GetParam());
  const CompileResult result = compile_wgsl(GetParam(), kWgslText, {"reverse"});
  EXPECT_TRUE(result.ok) << result.log;
}

TEST_P(Wgsl, RefusesWrongText) {
  PRISM_SKIP_WITHOUT(GetParam());
  const CompileResult wrong_name =
      compile_wgsl(GetParam(), "fn f() -> u32 { return missing; }", {});
  EXPECT_FALSE(wrong_name.ok);
  EXPECT_NE(wrong_name.log.find("missing"), std::string::npos) << wrong_name.log;

  const CompileResult wrong_entry = compile_wgsl(GetParam(), kWgslText, {"no_such_entry"});
  EXPECT_FALSE(wrong_entry.ok);

  EXPECT_TRUE(compile_wgsl(GetParam(), kWgslText, {"reverse"}).ok)
      << "the device works after errors";
}

// Only Dawn: wgpu-native does not check uniformity.
TEST(Dawn, RefusesABarrierInVaryingFlow) {
  PRISM_SKIP_WITHOUT(kDawn);
  const CompileResult result = compile_wgsl(kDawn, R"(
@compute @workgroup_size(64) fn k(@builtin(local_invocation_index) lane: u32) {
  if (lane < 3u) { workgroupBarrier(); }
})",
                                            {"k"});
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.log.find("uniform"), std::string::npos) << result.log;
}

TEST_P(Wgsl, RunsAKernel) {
  PRISM_SKIP_WITHOUT(GetParam());
  constexpr uint32_t kCount = 64 * 3;
  std::vector<float> x(kCount);
  for (uint32_t i = 0; i < kCount; ++i) x[i] = static_cast<float>(i);
  std::vector<WgslBuffer> buffers{{bytes_of(x), false}, {std::vector<uint8_t>(kCount * 4), true}};
  const CompileResult result = run_wgsl(GetParam(), kWgslText, "reverse", {kCount / 64, 1, 1},
                                        buffers, {kCount, bits_of(0.5f)});
  ASSERT_TRUE(result.ok) << result.log;
  const std::vector<float> y = values_of<float>(buffers[1].bytes);
  for (uint32_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(y[i], 0.5f * static_cast<float>(i / 64 * 64 + 63 - i % 64)) << i;
  }
}

TEST_P(Wgsl, ReportsABufferDeclaredOtherwise) {
  PRISM_SKIP_WITHOUT(GetParam());
  std::vector<WgslBuffer> buffers{{std::vector<uint8_t>(256), false},
                                  {std::vector<uint8_t>(256), false}};
  EXPECT_FALSE(run_wgsl(GetParam(), kWgslText, "reverse", {1, 1, 1}, buffers, {64, 0}).ok);
}

TEST_P(Wgsl, RunsF16) {
  PRISM_SKIP_WITHOUT(GetParam());
  if (!webgpu_device(GetParam()).has_f16())
    GTEST_SKIP() << "this library offers no f16 on this device";
  std::vector<WgslBuffer> buffers{
      {bytes_of(std::vector<uint16_t>{0x3c00, 0x4000, 0xc200, 0x3800}), true}};
  const CompileResult result = run_wgsl(GetParam(), R"(
enable f16;
@group(0) @binding(0) var<storage, read_write> x: array<f16>;
@compute @workgroup_size(4) fn twice(@builtin(local_invocation_index) i: u32) { x[i] = x[i] + x[i]; }
)",
                                        "twice", {1, 1, 1}, buffers);
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_EQ(values_of<uint16_t>(buffers[0].bytes),
            (std::vector<uint16_t>{0x4000, 0x4400, 0xc600, 0x3c00}));
}

TEST_P(Wgsl, RunsSubgroups) {
  PRISM_SKIP_WITHOUT(GetParam());
  if (!webgpu_device(GetParam()).has_subgroups())
    GTEST_SKIP() << "this library offers no subgroups on this device";
  std::vector<WgslBuffer> buffers{{std::vector<uint8_t>(64 * 4), true},
                                  {std::vector<uint8_t>(64 * 4), true}};
  const std::string text = R"(enable subgroups;
@group(0) @binding(0) var<storage, read_write> sums: array<u32>;
@group(0) @binding(1) var<storage, read_write> sizes: array<u32>;
@compute @workgroup_size(64)
fn sum(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32) {
  sums[i] = subgroupAdd(1u);
  sizes[i] = size;
})";
  const CompileResult result = run_wgsl(GetParam(), text, "sum", {1, 1, 1}, buffers);
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_EQ(values_of<uint32_t>(buffers[0].bytes), values_of<uint32_t>(buffers[1].bytes));
  EXPECT_GE(values_of<uint32_t>(buffers[1].bytes)[0], 4u);
}

INSTANTIATE_TEST_SUITE_P(Libraries, Wgsl, testing::Values(kWgpu, kDawn), [](const auto& test) {
  return std::string(test.param == kWgpu ? "wgpu" : "dawn");
});

// --- SYCL

constexpr const char* kSyclText = R"(
#include <sycl/sycl.hpp>
namespace exp = sycl::ext::oneapi::experimental;

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((exp::nd_range_kernel<1>))
void scale(const float* x, float* y, unsigned count, float factor) {
  unsigned i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) y[i] = x[i] * factor;
}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((exp::nd_range_kernel<3>))
void reverse(const float* x, float* y) {
  auto item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();
  exp::work_group_static<float[64]> tile;
  unsigned lane = item.get_local_id(2), first = item.get_group(2) * 64;
  tile[lane] = x[first + lane];
  sycl::group_barrier(item.get_group());
  y[first + lane] = tile[63 - lane];
})";

TEST(Sycl, RunsTwoKernelsOfOneText) {
  PRISM_SKIP_WITHOUT(kSyclRoot);
  SyclProgram program(kSyclText);
  ASSERT_TRUE(program.ok()) << program.log();
  std::vector<float> x(128);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);

  std::vector<std::vector<uint8_t>> buffers{bytes_of(x), std::vector<uint8_t>(x.size() * 4)};
  CompileResult result =
      program.run({"scale", {2, 1, 1}, {64, 1, 1}, 1}, buffers, {128, bits_of(3.0f)});
  ASSERT_TRUE(result.ok) << result.log;
  const std::vector<float> scaled = values_of<float>(buffers[1]);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(scaled[i], 3.0f * x[i]) << i;

  result = program.run({"reverse", {2, 1, 1}, {64, 1, 1}, 3}, buffers);
  ASSERT_TRUE(result.ok) << result.log;
  const std::vector<float> reversed = values_of<float>(buffers[1]);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(reversed[i], x[i / 64 * 64 + 63 - i % 64]) << i;
}

TEST(Sycl, DoesNotContract) {
  PRISM_SKIP_WITHOUT(kSyclRoot);
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 exactly, and 0 when the product is rounded first.
  std::vector<std::vector<uint8_t>> buffers{
      bytes_of(std::vector<float>{1.0f + 0x1p-12f, -1.0f - 0x1p-11f, 5.0f})};
  const CompileResult result = run_sycl(R"(
#include <sycl/sycl.hpp>
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void k(float* x) { x[2] = x[0] * x[0] + x[1]; }
)",
                                        {"k", {1, 1, 1}, {1, 1, 1}, 1}, buffers);
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_EQ(values_of<float>(buffers[0])[2], 0.0f);
}

TEST(Sycl, RefusesWrongTextAndUnknownKernels) {
  PRISM_SKIP_WITHOUT(kSyclRoot);
  const SyclProgram wrong(
      "#include <sycl/sycl.hpp>\nextern \"C\" "
      "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::"
      "nd_range_kernel<1>))\nvoid k(int* x) { x[0] = missing; }");
  EXPECT_FALSE(wrong.ok());
  EXPECT_NE(wrong.log().find("missing"), std::string::npos) << wrong.log();

  std::vector<std::vector<uint8_t>> buffers;
  const CompileResult unknown =
      run_sycl(kSyclText, {"no_such_kernel", {1, 1, 1}, {1, 1, 1}, 1}, buffers);
  EXPECT_FALSE(unknown.ok);
  EXPECT_NE(unknown.log.find("no_such_kernel"), std::string::npos) << unknown.log;
}

}  // namespace
}  // namespace prism::test
