// Tests decoding from planes in kernels, on the interpreter and on every device found, against the
// CPU's decoding from blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "base/types/block_factors.h"
#include "base/types/gpu_block_layout.h"
#include "cpu/quantise/dequantise.h"
#include "lower/lower.h"
#include "ops/quantise/block_kernels.h"
#include "print/printer.h"
#include "prism/device.h"
#include "prism/error.h"
#include "runtime/driver.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_case_tools.h"
#include "support/front_ends/hiprtc_front_end.h"
#include "support/front_ends/nvrtc_front_end.h"
#include "support/front_ends/wgsl_front_end.h"
#include "support/kernels/kernel_texts.h"
#include "support/seed.h"

namespace prism {
namespace {

using kernels::bytes_of;

// Random blocks with finite factors of moderate size, so that not all sums are NaN.
std::vector<uint16_t> random_blocks(BlockType type, uint64_t elements, std::mt19937& random) {
  const BlockInfo& info = block_info(type);
  const uint64_t count = elements / info.elements;
  std::vector<uint16_t> file(count * info.bytes / 2 + 1);
  for (uint16_t& half : file) half = static_cast<uint16_t>(random());
  // Exponents near 1, because devices may flush denormals to zero.
  std::normal_distribution<float> normal;
  for (uint64_t b = 0; b < count; ++b)
    set_block_factors(type, reinterpret_cast<uint8_t*>(file.data()) + b * info.bytes,
                      normal(random));
  return file;
}

struct Made {
  GpuBlockLayout layout;
  std::vector<uint8_t> planes;
  std::vector<float> values;
};

Made make(BlockType type, uint64_t rows, uint64_t columns, std::mt19937& random) {
  Made made{gpu_block_layout(type, rows, columns), {}, {}};
  const auto file = random_blocks(type, rows * columns, random);
  made.planes.resize(made.layout.bytes());
  to_gpu_layout(made.layout, file.data(), made.planes.data());
  made.values.resize(rows * columns);
  cpu::dequantise(type, file.data(), made.values.data(), made.values.size());
  return made;
}

// Compares the output bit for bit: a float64 reference would hide the rounding to f16.
std::string compare_stored(const std::vector<float>& expected, DType type,
                           const std::vector<std::byte>& found) {
  const auto right = kernels::stored(expected, type);
  if (right.size() != found.size()) return "the sizes differ";
  const size_t each = dtype_bytes(type);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(&right[i * each], &found[i * each], each) == 0) continue;
    uint32_t bits = 0;
    std::memcpy(&bits, &found[i * each], each);
    const auto half = static_cast<uint16_t>(bits);
    const float value = type == DType::f32   ? std::bit_cast<float>(bits)
                        : type == DType::f16 ? f32_from_f16(half)
                                             : f32_from_bf16(half);
    if (std::isnan(expected[i]) && std::isnan(value)) continue;
    if (expected[i] == 0 && value == 0) continue;  // of either sign
    return "element " + std::to_string(i) + " is " + std::to_string(value) + ", expected " +
           std::to_string(expected[i]);
  }
  return "";
}

KernelCase case_of(const ops::BlockLaunch& launch) {
  KernelCase one;
  one.groups = launch.groups;
  one.params = launch.params;
  return one;
}

std::vector<uint64_t> block_counts(BlockType type) {
  return block_info(type).elements == 32 ? std::vector<uint64_t>{1, 9, 44}
                                         : std::vector<uint64_t>{1, 5};
}

using RunCase = std::function<Contents(const ir::Kernel&, const KernelCase&)>;

void check_dequantise(BlockType type, DType to, const RunCase& run, std::mt19937& random) {
  const ir::Kernel kernel = ops::dequantise_gpu_blocks(type, to);
  for (const uint64_t blocks : block_counts(type))
    for (const uint64_t rows : {1, 7}) {
      const Made made = make(type, rows, blocks * block_info(type).elements, random);
      KernelCase one = case_of(ops::dequantise_gpu_blocks_launch(made.layout));
      one.buffers = {bytes_of(made.planes), kernels::poison(made.values.size(), to)};
      EXPECT_EQ(compare_stored(made.values, to, run(kernel, one)[1]), "")
          << kernel.name << ", " << rows << " rows of " << made.layout.columns;
    }
}

void check_gather(BlockType type, DType to, const RunCase& run, std::mt19937& random) {
  const ir::Kernel kernel = ops::gather_gpu_blocks(type, to);
  for (const uint64_t blocks : block_counts(type)) {
    const Made made = make(type, 5, blocks * block_info(type).elements, random);
    const uint64_t columns = made.layout.columns;
    const std::vector<int32_t> indices = {4, 0, 2, 2, -1, 3, 5, 0, 1, INT32_MIN, INT32_MAX};
    std::vector<float> expected;
    for (const int32_t index : indices)
      for (uint64_t c = 0; c < columns; ++c)
        expected.push_back(
            index < 0 || index > 4 ? NAN : made.values[static_cast<uint64_t>(index) * columns + c]);
    KernelCase one = case_of(ops::gather_gpu_blocks_launch(made.layout, indices.size()));
    // Fill with zeros where NaN is expected, because poison could pass for NaN.
    auto y = kernels::poison(expected.size(), to);
    std::fill(y.begin(), y.end(), std::byte{0});
    one.buffers = {bytes_of(made.planes), bytes_of(indices), y};
    EXPECT_EQ(compare_stored(expected, to, run(kernel, one)[2]), "")
        << kernel.name << ", rows of " << columns;
  }
}

constexpr DType kResults[] = {DType::f32, DType::f16, DType::bf16};

class BlockKernelsInterpreted : public ::testing::TestWithParam<int> {};

TEST_P(BlockKernelsInterpreted, DecodeWhatTheCpuDecodes) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto type = static_cast<BlockType>(GetParam());
  const RunCase run = [](const ir::Kernel& kernel, const KernelCase& one) {
    return interpret_case(kernel, one, 32);
  };
  for (const DType to : kResults) {
    check_dequantise(type, to, run, random);
    check_gather(type, to, run, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BlockKernelsInterpreted, ::testing::Range(0, kBlockTypeCount),
                         [](const auto& test) {
                           return block_info(static_cast<BlockType>(test.param)).name;
                         });

std::vector<std::shared_ptr<DeviceDriver>> all_devices() {
  std::vector<std::shared_ptr<DeviceDriver>> devices;
  for (const BackendReport& report : discover_backends())
    devices.insert(devices.end(), report.devices.begin(), report.devices.end());
  return devices;
}

class BlockKernels
    : public ::testing::TestWithParam<std::tuple<std::shared_ptr<DeviceDriver>, int>> {};

TEST_P(BlockKernels, DecodeWhatTheCpuDecodes) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Device device(std::get<0>(GetParam()), "");
  const auto type = static_cast<BlockType>(std::get<1>(GetParam()));
  const RunCase run = [&](const ir::Kernel& kernel, const KernelCase& one) {
    return run_case(device, kernel, one);
  };
  for (const DType to : {DType::f32, DType::f16}) {
    check_dequantise(type, to, run, random);
    check_gather(type, to, run, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, BlockKernels,
                         ::testing::Combine(::testing::ValuesIn(all_devices()),
                                            ::testing::Range(0, kBlockTypeCount)),
                         [](const auto& test) {
                           std::string name =
                               std::get<0>(test.param)->info().id + "_" +
                               block_info(static_cast<BlockType>(std::get<1>(test.param))).name;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

// All types lowered for a dialect: whole tensors to f16, rows to f32.
std::vector<ir::Kernel> lowered_kernels(const ir::Capabilities& capabilities) {
  std::vector<ir::Kernel> all;
  for (int t = 0; t < kBlockTypeCount; ++t) {
    const auto type = static_cast<BlockType>(t);
    all.push_back(lower(ops::dequantise_gpu_blocks(type, DType::f16), capabilities));
    all.push_back(lower(ops::gather_gpu_blocks(type, DType::f32), capabilities));
  }
  return all;
}

TEST(BlockKernelTexts, CompileForNvidia) {
  PRISM_SKIP_WITHOUT(test::kNvrtc12);
  ir::Capabilities capabilities = typical_capabilities("cuda");
  capabilities.dialect_level = 90;
  const auto result =
      test::compile_cuda(print_together(lowered_kernels(capabilities), capabilities), "sm_90",
                         {"--fmad=false", "--ptxas-options=-v"});
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_EQ(result.log.find("kernel.cu("), std::string::npos) << result.log;
}

TEST(BlockKernelTexts, CompileForAmd) {
  PRISM_SKIP_WITHOUT(test::hip_front_end("gfx90a"));
  const ir::Capabilities capabilities = typical_capabilities("hip");
  test::expect_amd_takes(lowered_kernels(capabilities), capabilities);
}

TEST(BlockKernelTexts, CompileForWebGpu) {
  PRISM_SKIP_WITHOUT(test::kDawn);
  const ir::Capabilities capabilities = typical_capabilities("wgsl");
  test::expect_webgpu_takes(lowered_kernels(capabilities), capabilities);
}

TEST(BlockKernelLaunches, RefuseWhatOneLaunchCannotCount) {
  EXPECT_THROW(ops::dequantise_gpu_blocks_launch(gpu_block_layout(BlockType::q4_k, 1 << 20, 8192)),
               Error);
  EXPECT_THROW(ops::gather_gpu_blocks_launch(gpu_block_layout(BlockType::q8_0, 8, 4096), 1 << 24),
               Error);
  EXPECT_THROW(ops::dequantise_gpu_blocks(BlockType::q8_0, DType::i32), Error);
  EXPECT_EQ(ops::dequantise_gpu_blocks_launch(gpu_block_layout(BlockType::q8_0, 0, 32)).groups[0],
            0u);
}

}  // namespace
}  // namespace prism
