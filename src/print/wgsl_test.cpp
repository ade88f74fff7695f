// Tests properties of compilable WGSL: recognisable uniform control flow, no infinities, no
// reserved words.
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "print/printer.h"
#include "prism/error.h"
#include "prism/kernel.h"

namespace prism {
namespace {

using namespace dsl;

std::string printed(const Kernel& kernel, const LaunchVariant& launch = {}) {
  const ir::Capabilities capabilities = typical_capabilities("wgsl");
  return print_wgsl(lower(kernel, capabilities, launch), capabilities).text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WgslPrinter, BindsBuffersInOrderAndParamsLast) {
  const Kernel k = kernel("k", 64, [] {
    auto a = in("a", f32);
    auto y = out("y", f32);
    auto scale = param("scale", f32);
    y[global_id()] = a[global_id()] * scale;
  });
  const std::string text = printed(k);
  EXPECT_TRUE(has(text, "@binding(0) var<storage, read> a: array<f32>;")) << text;
  EXPECT_TRUE(has(text, "@binding(1) var<storage, read_write> y: array<f32>;")) << text;
  EXPECT_TRUE(has(text, "@binding(2) var<uniform> prism_params: prism_block;")) << text;
  EXPECT_TRUE(has(text, "scale: f32")) << text;
  const std::string split = printed(k, {false, {3, 1}});
  EXPECT_TRUE(has(split, "@binding(2) var<storage, read> a_2")) << split;
  EXPECT_TRUE(has(split, "@binding(3) var<storage, read_write> y:")) << split;
  EXPECT_TRUE(has(split, "@binding(4) var<uniform> prism_params")) << split;
}

// One wide load each: compilers do not merge four narrow ones.
TEST(WgslPrinter, DeclaresWhatIsReadByFoursAsVectors) {
  const std::string text = printed(kernel("k", 64, [] {
    auto a = in("a", f32);
    auto b = in("b", f32);
    auto y = out("y", f32);
    auto z = out("z", f32);
    const Value words = b.load_words(global_id() * 4u, 4, 4);
    y.store(global_id() * 4u, a.load(global_id() * 4u, 4) + bitcast({f32, 4}, words));
    z[global_id()] = a[global_id()] + cast(f32, b.load_words(global_id() * 2u, 2, 2)[1]);
  }));
  EXPECT_TRUE(has(text, "read> a: array<vec4<f32>>;")) << text;
  EXPECT_TRUE(has(text, "read> b: array<vec4<f32>>;")) << text;
  EXPECT_TRUE(has(text, "read_write> y: array<vec4<f32>>;")) << text;
  EXPECT_TRUE(has(text, "read_write> z: array<f32>;")) << text;
  EXPECT_TRUE(has(text, "][(")) << text;  // one element of a vector in memory
}

// A store to one element of a vector may write all four.
TEST(WgslPrinter, DeclaresWhatIsStoredOneByOneAsElements) {
  const std::string text = printed(kernel("k", 64, [] {
    auto y = inout("y", u32);
    const Value four = y.load(global_id() * 4u, 4);
    y[global_id() * 4u] = four[3];
  }));
  EXPECT_TRUE(has(text, "read_write> y: array<u32>;")) << text;
  const std::string unaligned = printed(kernel("k", 64, [] {
    auto a = in("a", u32);
    auto y = out("y", u32);
    y[global_id()] = a.load_words(global_id(), 4, 1)[2];
  }));
  EXPECT_TRUE(has(unaligned, "read> a: array<u32>;")) << unaligned;
}

TEST(WgslPrinter, TakesTextOfItsOwnDialect) {
  const std::string text = printed(kernel("k", 64, [] {
    auto y = out("y", u32);
    y[local_id()] = raw("wgsl", "{r} = reverseBits({0});", {local_id()}, {u32, 1},
                        [] { return constant(u32, 1); });
  }));
  EXPECT_TRUE(has(text, "= reverseBits(local_id);")) << text;
}

TEST(WgslPrinter, AsksForSubgroupsUnlessToldNot) {
  const Kernel k = kernel("k", 64, [] {
    auto y = out("y", u32);
    y[local_id()] = group_sum(local_id());
  });
  ir::Capabilities capabilities = typical_capabilities("wgsl");
  capabilities.subgroup_size = 32;
  EXPECT_TRUE(has(print_wgsl(lower(k, capabilities), capabilities).text, "enable subgroups;"));
  capabilities.dialect_level = kWgslSubgroupsUnasked;
  const std::string text = print_wgsl(lower(k, capabilities), capabilities).text;
  EXPECT_FALSE(has(text, "enable subgroups;")) << text;
  EXPECT_TRUE(has(text, "subgroup")) << text;
}

TEST(WgslPrinter, HandsRoundWhatLanesAgreeOnBeforeABarrier) {
  const auto looped = [](bool through_memory) {
    return kernel("k", 64, [=] {
      auto a = in("a", u32);
      auto y = out("y", u32);
      auto count = param("count", u32);
      auto tile = shared(u32, 64);
      const Value rounds = through_memory ? group_sum(a[local_id()]) : a[count];
      for_(0u, rounds, 1u, [&](Value i) {
        tile[local_id()] = i;
        barrier();
        y[local_id()] = tile[63u - local_id()];
        barrier();
      });
    });
  };
  EXPECT_TRUE(has(printed(looped(true)), "workgroupUniformLoad(&prism_agreed)"));
  EXPECT_FALSE(has(printed(looped(false)), "workgroupUniformLoad"));
}

TEST(WgslPrinter, WritesNoInfinityAndComputesNothingFromLiterals) {
  const std::string text = printed(kernel("k", 64, [] {
    auto y = out("y", f32);
    auto z = out("z", u32);
    y[0u] = constant_bits(f32, 0x7f800000u) + constant_bits(f32, 0xffc00000u);
    y[1u] = constant(f32, 1.0) / constant(f32, 0.0);
    z[0u] = constant(u32, 0xffffffffu) + constant(u32, 1u);
    z[1u] = bitcast(u32, constant_bits(i32, 0x80000000u));
  }));
  EXPECT_FALSE(has(text, "inf")) << text;
  EXPECT_FALSE(has(text, "nan")) << text;
  EXPECT_FALSE(has(text, "2147483648i")) << text;
  EXPECT_FALSE(has(text, "1f / 0f")) << text;
  EXPECT_FALSE(has(text, "4294967295u + 1u")) << text;
}

TEST(WgslPrinter, KeepsClearOfReservedWords) {
  const std::string text = printed(kernel("loop", 64, [] {
    auto a = in("var", f32);
    auto y = out("array", f32);
    auto n = param("fn", u32);
    Var sum(f32, 0.0f, "let");
    if_(local_id() < n, [&] { sum += a[local_id()]; });
    y[local_id()] = sum;
  }));
  for (const char* word : {" var:", " array:", " fn:", " let:", "fn loop(", ".fn ", "[fn"})
    EXPECT_FALSE(has(text, word)) << word << " in\n" << text;
}

TEST(WgslPrinter, TriesAnExchangeAgainThatFailedForNoReason) {
  const std::string text = printed(kernel("k", 64, [] {
    auto y = inout("y", u32);
    y.compare_exchange(local_id(), 1u, 2u);
  }));
  EXPECT_TRUE(has(text, "array<atomic<u32>>")) << text;
  EXPECT_TRUE(has(text, ".exchanged || ")) << text;
}

TEST(WgslPrinter, SaysWhatItCannot) {
  ir::Capabilities capabilities = typical_capabilities("wgsl");
  capabilities.storage_8 = true;
  const Kernel k = kernel("bytes", 64, [] { out("y", u8)[local_id()] = 1u; });
  try {
    print_wgsl(lower(k, capabilities), capabilities);
    FAIL() << "WGSL has no 8-bit elements";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_TRUE(has(error.what(), "u8")) << error.what();
  }
}

}  // namespace
}  // namespace prism
