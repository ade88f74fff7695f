// Tests properties of the printed text of each dialect.
#include "print/printer.h"

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "prism/error.h"
#include "prism/kernel.h"

namespace prism {
namespace {

using namespace dsl;

Kernel add(const std::string& name = "add") {
  return kernel(name, 256, [] {
    auto a = in("a", f32), b = weights("b", f32);
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = a[i] + b[i]; });
  });
}

std::string text_of(const Kernel& kernel, const ir::Capabilities& capabilities) {
  return print(lower(kernel, capabilities), capabilities).text;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Printer, UnknownDialectListsTheKnown) {
  try {
    typical_capabilities("glsl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_TRUE(holds(error.what(), "cuda, hip, opencl, metal, sycl, wgsl, spirv")) << error.what();
  }
}

TEST(Printer, EveryDialectPrintsTheEntryItNames) {
  for (const std::string& dialect : dialects()) {
    const ir::Capabilities capabilities = typical_capabilities(dialect);
    const PrintedKernel printed = print(lower(add(), capabilities), capabilities);
    EXPECT_FALSE(printed.entry.empty()) << dialect;
    if (dialect == "spirv") {
      EXPECT_FALSE(printed.words.empty());
    } else {
      EXPECT_TRUE(holds(printed.text, " " + printed.entry + "(")) << printed.text;
    }
  }
}

TEST(Printer, ReadsLikeTheKernel) {
  const ir::Capabilities capabilities = typical_capabilities("opencl");
  const std::string text = text_of(add(), capabilities);
  EXPECT_TRUE(holds(text, "__global const float* restrict a")) << text;
  EXPECT_TRUE(holds(text, "= a[t] + b[t];")) << text;
  EXPECT_FALSE(holds(text, "prism_")) << "a plain kernel needs no prelude:\n" << text;
}

TEST(Printer, OneTextHoldsManyKernels) {
  for (const char* dialect : {"cuda", "hip", "opencl", "metal", "sycl"}) {
    const ir::Capabilities capabilities = typical_capabilities(dialect);
    const Kernel first = lower(add("first"), capabilities),
                 second = lower(add("second"), capabilities);
    const std::string text = print_together({first, second}, capabilities);
    EXPECT_TRUE(holds(text, " kernel_first(")) << text;
    EXPECT_TRUE(holds(text, " kernel_second(")) << text;
    EXPECT_THROW(print_together({first, first}, capabilities), Error);
  }
  EXPECT_THROW(print_together({}, typical_capabilities("spirv")), Error);
}

// A restricted const pointer may be read early and through the non-coherent cache, which is wrong
// while the previous launch still runs.
TEST(CudaPrinter, RestrictsOnlyWhatNoRunningLaunchWrites) {
  ir::Capabilities capabilities = typical_capabilities("cuda");
  const std::string overlapped = text_of(add(), capabilities);
  EXPECT_TRUE(holds(overlapped, "const float* a,")) << overlapped;
  EXPECT_TRUE(holds(overlapped, "const float* __restrict__ b,")) << overlapped;
  EXPECT_TRUE(holds(overlapped, "prism_wait_previous();")) << overlapped;
  capabilities.dependent_launch = false;
  const std::string ordered = text_of(add(), capabilities);
  EXPECT_TRUE(holds(ordered, "const float* __restrict__ a,")) << ordered;
  EXPECT_FALSE(holds(ordered, "prism_wait_previous")) << ordered;
}

// The compiler would move a read-only load past the wait.
TEST(CudaPrinter, LoadsWordsOfTablesBeforeTheWait) {
  const Kernel looks_up = kernel("looks_up", 64, [] {
    const In table = weights("table", u32), x = in("x", f32);
    const Array y = out("y", f32);
    const Value row = table[group_id()];
    wait_previous();
    y[local_id()] = x[row];
  });
  ir::Capabilities capabilities = typical_capabilities("cuda");
  const std::string overlapped = text_of(looks_up, capabilities);
  const size_t load = overlapped.find("= prism_load_word(&table["),
               wait = overlapped.find("  prism_wait_previous();");
  EXPECT_TRUE(load < wait && wait != std::string::npos) << overlapped;
  capabilities.dependent_launch = false;
  const std::string ordered = text_of(looks_up, capabilities);
  EXPECT_TRUE(holds(ordered, "__ldg(&table[")) << ordered;
}

Kernel with_shared(uint32_t floats) {
  return kernel("big", 64, [=] {
    auto y = out("y", f32);
    auto tile = shared(f32, floats, "tile"), other = shared(u32, 3, "other");
    tile[local_id()] = 1.0f;
    other[local_id() % 3u] = 1u;
    barrier();
    y[global_id()] = tile[local_id() ^ 1u] + cast(f32, other.load(0u));
  });
}

TEST(CudaPrinter, LargeSharedMemoryIsSizedAtLaunch) {
  const ir::Capabilities capabilities = typical_capabilities("cuda");
  EXPECT_FALSE(holds(text_of(with_shared(1024), capabilities), "extern __shared__"));
  const std::string large = text_of(with_shared(16384), capabilities);
  EXPECT_TRUE(holds(large, "extern __shared__")) << large;
  EXPECT_TRUE(holds(large, "(unsigned*)(prism_dynamic_shared + 65536)")) << large;
}

TEST(CudaPrinter, AGroupThatIsAloneMayUseAllRegisters) {
  ir::Capabilities capabilities = typical_capabilities("cuda");
  capabilities.shared_bytes = 227 << 10;
  const std::string alone = text_of(with_shared(32768), capabilities),
                    beside = text_of(with_shared(16384), capabilities);
  EXPECT_TRUE(holds(alone, "__launch_bounds__(64, 1)")) << alone;
  EXPECT_TRUE(holds(beside, "__launch_bounds__(64) ")) << beside;
}

TEST(CFamilyPrinter, RefusesWhatWasNotLowered) {
  const Kernel built = kernel("k", 64, [] {
    auto y = out("y", i32);
    y[global_id()] = div_floor(constant(i32, 7), bitcast(i32, local_id()));
  });
  try {
    print(built, typical_capabilities("opencl"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_TRUE(holds(error.what(), "div_floor")) << error.what();
    EXPECT_TRUE(holds(error.what(), "printer_test.cpp")) << error.what();
  }
}

}  // namespace
}  // namespace prism
