// Printed WGSL through both WebGPU libraries: every kernel compiles, runs, and agrees with the
// interpreter.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "dsl/dsl.h"
#include "kernels/library.h"
#include "lower/lower.h"
#include "print/printer.h"
#include "support/op_cases.h"
#include "support/op_kernels.h"
#include "support/wgsl.h"

namespace prism {
namespace {

using namespace dsl;
using test::WgslBuffer;
using Contents = std::vector<std::vector<std::byte>>;

struct Variant {
  std::string name;
  ir::Capabilities capabilities;
  LaunchVariant launch;
};

// What every WebGPU device has, and each thing that only some have.
std::vector<Variant> variants(const std::string& library) {
  ir::Capabilities plain = typical_capabilities("wgsl");
  const test::WebGpu& gpu = test::webgpu_device(library);
  plain.shared_bytes = std::min(plain.shared_bytes, gpu.max_shared_bytes());
  std::vector<Variant> list = {{"plain", plain, {}}, {"folded", plain, {true, {}}}};
  if (gpu.has_f16()) {
    list.push_back({"f16", plain, {}});
    list.back().capabilities.math_f16 = list.back().capabilities.storage_f16 = true;
  }
  if (gpu.has_subgroups()) {
    list.push_back({"subgroups", plain, {}});
    list.back().capabilities.subgroup_size = 8;  // what llvmpipe has
  }
  return list;
}

struct Launch {
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<uint32_t> params;
  Contents buffers;
};

std::string numbered(const std::string& text) {
  std::string result;
  size_t start = 0, number = 1;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    result += std::to_string(number++) + ": " + text.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return result;
}

// What the buffers hold after the kernel ran as WGSL; a failure of the test when it did not.
Contents run(const std::string& library, const ir::Kernel& kernel, const Variant& variant,
             const Launch& launch) {
  const ir::Kernel lowered = lower(kernel, variant.capabilities, variant.launch);
  const PrintedKernel printed = print_wgsl(lowered, variant.capabilities);
  EXPECT_TRUE(printed.params_as_block);
  std::vector<WgslBuffer> buffers;
  for (const auto& content : launch.buffers) {
    const ir::Memory& memory = lowered.memories[lowered.buffers().at(buffers.size())];
    WgslBuffer buffer;
    buffer.bytes.resize((content.size() + 3) / 4 * 4);
    std::memcpy(buffer.bytes.data(), content.data(), content.size());
    buffer.writable = memory.atomic || memory.access != ir::Access::read;
    buffers.push_back(std::move(buffer));
  }
  std::vector<uint32_t> params = launch.params;
  std::array<uint32_t, 3> groups = launch.groups;
  if (lowered.folded) {
    // Rows that do not divide the groups, so that the last one is cut short.
    params.insert(params.end(), groups.begin(), groups.end());
    const uint32_t all = groups[0] * groups[1] * groups[2], row = all > 1000 ? 1013 : 3;
    groups = {row, (all + row - 1) / row, 1};
  }
  const auto result = test::run_wgsl(library, printed.text, printed.entry, groups, buffers, params);
  EXPECT_TRUE(result.ok) << kernel.name << " at " << variant.name << ":\n"
                         << result.log << "\n"
                         << numbered(printed.text);
  Contents contents;
  for (size_t i = 0; i < buffers.size(); ++i) {
    contents.emplace_back(launch.buffers[i].size());
    std::memcpy(contents.back().data(), buffers[i].bytes.data(), contents.back().size());
  }
  return contents;
}

class Wgsl : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { PRISM_SKIP_WITHOUT(GetParam()); }
  std::string library() const { return GetParam(); }
};

TEST_P(Wgsl, EveryOperationCompiles) {
  for (const Variant& variant : variants(library())) {
    for (const ir::Kernel& kernel : test::op_kernels()) {
      const PrintedKernel printed =
          print_wgsl(lower(kernel, variant.capabilities, variant.launch), variant.capabilities);
      const auto result = test::compile_wgsl(library(), printed.text, {printed.entry});
      EXPECT_TRUE(result.ok) << kernel.name << " at " << variant.name << ":\n"
                             << result.log << "\n"
                             << numbered(printed.text);
    }
  }
}

TEST_P(Wgsl, EveryOperationIsRight) {
  for (const Variant& variant : variants(library())) {
    for (const test::OpCase& one : test::op_cases()) {
      const Contents found =
          run(library(), one.kernel, variant, {{1, 1, 1}, one.params, one.buffers});
      EXPECT_EQ(test::difference(one, test::right_contents(one, variant.capabilities), found), "")
          << one.kernel.name << " at " << variant.name;
    }
  }
}

TEST_P(Wgsl, EveryKernelOfTheLibraryIsRight) {
  for (const Variant& variant : variants(library())) {
    for (const LibraryKernel& entry : kernel_library()) {
      const ir::Kernel kernel = entry.make();
      for (const KernelCase& one : entry.cases(1, true)) {
        Variant fitting = variant;
        fitting.launch.folded |= *std::max_element(one.groups.begin(), one.groups.end()) > 65535;
        const Contents contents =
            run(library(), kernel, fitting, {one.groups, one.params, one.buffers});
        EXPECT_EQ(compare(one, kernel, contents), "")
            << entry.name << " " << one.name << " at " << variant.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, Wgsl, testing::Values(test::kWgpu, test::kDawn),
                         [](const auto& library) {
                           return std::string(library.param) == test::kWgpu ? "wgpu" : "dawn";
                         });

}  // namespace
}  // namespace prism
