// spirv-val accepts the SPIR-V printer's output for every operation and several capability sets.
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "print/printer.h"
#include "print/spirv/spirv.h"
#include "prism/error.h"
#include "sample_kernels/sample_library.h"
#include "support/front_ends/front_end.h"
#include "support/kernels/op_kernels.h"
#include "support/run_program.h"

namespace prism {
namespace {

using test::TemporaryFolder;

std::string validator() { return test::front_end("PRISM_TEST_SPIRV_VAL").value_or("spirv-val"); }

bool has_validator() {
  try {
    return test::run_process({validator(), "--version"}).status == 0;
  } catch (const std::exception&) {
    return false;
  }
}

#define SKIP_WITHOUT_VALIDATOR() \
  if (!has_validator()) GTEST_SKIP() << "no spirv-val: apt install spirv-tools"

// The validator's message; empty if it accepts the kernel.
std::string complaint(const ir::Kernel& lowered, const ir::Capabilities& capabilities,
                      const std::string& target) {
  const PrintedKernel printed = print_spirv(lowered, capabilities);
  const TemporaryFolder folder;
  const auto file = folder.path() / "kernel.spv";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(printed.words.data()),
             static_cast<std::streamsize>(printed.words.size() * sizeof(uint32_t)));
  const auto result = test::run_process({validator(), "--target-env", target, file.string()});
  return result.status == 0 ? "" : result.output + "\n" + ir::to_text(lowered);
}

ir::Capabilities plain() {
  ir::Capabilities c;
  c.dialect = "spirv";
  c.storage_8 = c.storage_16 = c.storage_f16 = c.narrow_arrays = false;
  c.shared_bytes = 32768;
  return c;
}

ir::Capabilities full() {
  ir::Capabilities c;
  c.dialect = "spirv";
  c.dialect_level = spirv::kRoundEven16 | spirv::kRoundEven32 | spirv::kPreserve16 |
                    spirv::kPreserve32 | spirv::kDenormals32 | spirv::kInt8 | spirv::kInt16;
  c.math_f16 = c.math_i64 = c.math_f64 = c.dot4 = c.float_atomics = c.precise_math = true;
  c.shared_bytes = 32768;
  c.subgroup_size = 32;
  c.subgroup_sizes = {32};
  return c;
}

struct Variant {
  std::string name;
  ir::Capabilities capabilities;
};

// From a device with plain Vulkan 1.1 to one with everything, and each feature alone.
std::vector<Variant> variants() {
  std::vector<Variant> list = {{"plain", plain()}, {"full", full()}};
  auto add = [&](const std::string& name, const std::function<void(ir::Capabilities&)>& change) {
    list.push_back({name, plain()});
    change(list.back().capabilities);
  };
  add("subgroups", [](auto& c) { c.subgroup_size = 8; });
  add("storage_8", [](auto& c) { c.storage_8 = true; });
  add("storage_16", [](auto& c) { c.storage_16 = true; });
  add("storage_f16", [](auto& c) {
    c.storage_16 = c.storage_f16 = true;
    c.dialect_level = spirv::kRoundEven16;
  });
  add("narrow_arrays", [](auto& c) {
    c.storage_8 = c.storage_16 = c.storage_f16 = c.math_f16 = c.narrow_arrays = true;
    c.dialect_level = spirv::kInt8 | spirv::kInt16;
  });
  add("dot4", [](auto& c) { c.dot4 = true; });
  add("host_compiler", [](auto& c) {
    c.dialect_level = spirv::kKeepLoops | spirv::kHideConstants;
    c.math_f64 = c.math_i64 = true;
  });
  add("float_atomics", [](auto& c) { c.float_atomics = true; });
  add("precise_math", [](auto& c) { c.precise_math = true; });
  return list;
}

void expect_accepted(const std::vector<ir::Kernel>& kernels, const Variant& variant,
                     const LaunchVariant& launch = {}) {
  for (const ir::Kernel& kernel : kernels) {
    LaunchVariant pieces = launch;
    if (!pieces.pieces.empty()) pieces.pieces.resize(kernel.buffers().size(), 1);
    const ir::Kernel lowered = lower(kernel, variant.capabilities, pieces);
    EXPECT_EQ(complaint(lowered, variant.capabilities, "vulkan1.1"), "")
        << kernel.name << " at " << variant.name;
  }
}

TEST(Spirv, EveryOperationIsValid) {
  SKIP_WITHOUT_VALIDATOR();
  for (const Variant& variant : variants()) expect_accepted(test::op_kernels(), variant);
  Variant fences{"device_fence", plain()};
  fences.capabilities.device_fence = true;
  expect_accepted(test::fence_kernels(), fences);
}

TEST(Spirv, EveryKernelOfTheLibraryIsValid) {
  SKIP_WITHOUT_VALIDATOR();
  for (const Variant& variant : variants()) {
    for (const SampleKernel& entry : sample_kernels()) {
      ir::Kernel lowered;
      try {
        lowered = lower(entry.make(), variant.capabilities);
      } catch (const Error& error) {
        // A kernel may only fail because the device lacks a type it computes with.
        EXPECT_EQ(error.code(), ErrorCode::kNotSupported) << error.what();
        EXPECT_NE(variant.name, "full") << error.what();
        continue;
      }
      for (const char* target : {"vulkan1.1", "vulkan1.2"})
        EXPECT_EQ(complaint(lowered, variant.capabilities, target), "")
            << entry.name << " at " << variant.name;
    }
  }
}

TEST(Spirv, WideAndHalfValuesAreValid) {
  SKIP_WITHOUT_VALIDATOR();
  expect_accepted(test::f16_kernels(), {"full", full()});
  expect_accepted(test::i64_kernels(), {"full", full()});
  expect_accepted(test::f64_kernels(), {"full", full()});
  ir::Capabilities exact = full();
  exact.dialect_level |= spirv::kHideConstants;
  expect_accepted(test::f16_kernels(), {"exact", exact});
  exact.dialect_level &= ~spirv::kFusedMultiplyAdd;
  expect_accepted(test::f16_kernels(), {"not fused", exact});
  expect_accepted(test::f64_kernels(), {"not fused", exact});
}

TEST(Spirv, FoldedGridsAndSplitBuffersAreValid) {
  SKIP_WITHOUT_VALIDATOR();
  expect_accepted(test::op_kernels(), {"full", full()}, {true, {}});
  expect_accepted(test::op_kernels(), {"plain", plain()}, {true, {}});
  expect_accepted(test::op_kernels(), {"full", full()}, {false, {3}});
}

TEST(Spirv, FragmentsWithoutHardwareAreValid) {
  SKIP_WITHOUT_VALIDATOR();
  for (const Variant& variant : variants()) expect_accepted(test::fragment_kernels(), variant);
}

// The validator detects errors: it rejects a module without its last instruction.
TEST(Spirv, TheValidatorRefusesABrokenModule) {
  SKIP_WITHOUT_VALIDATOR();
  PrintedKernel printed = print_spirv(lower(test::op_kernels().front(), full()), full());
  printed.words.pop_back();
  const TemporaryFolder folder;
  const auto file = folder.path() / "kernel.spv";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(printed.words.data()),
             static_cast<std::streamsize>(printed.words.size() * sizeof(uint32_t)));
  EXPECT_NE(test::run_process({validator(), file.string()}).status, 0);
}

}  // namespace
}  // namespace prism
