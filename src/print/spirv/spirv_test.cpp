// Tests properties of valid SPIR-V that the validator does not check: no contraction, aliased
// views, the memory model.
#include "print/spirv/spirv.h"

#include <map>

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "print/printer.h"
#include "print/spirv/spirv_words.h"
#include "prism/error.h"
#include "prism/kernel.h"

namespace prism {
namespace {

using namespace dsl;
using spirv::Code;

ir::Capabilities vulkan() {
  ir::Capabilities c;
  c.dialect = "spirv";
  c.subgroup_size = 32;
  c.math_f16 = true;
  return c;
}

struct Parsed {
  uint32_t version = 0;
  std::vector<std::vector<uint32_t>> instructions;  // operands, the opcode first

  size_t count(Code code) const { return of(code).size(); }
  std::vector<std::vector<uint32_t>> of(Code code) const {
    std::vector<std::vector<uint32_t>> found;
    for (const auto& i : instructions)
      if (i[0] == static_cast<uint32_t>(code)) found.push_back(i);
    return found;
  }
  size_t decorated(spirv::Decoration decoration) const {
    size_t n = 0;
    for (const auto& i : of(Code::Decorate)) n += i[2] == static_cast<uint32_t>(decoration);
    return n;
  }
  bool has(spirv::Capability capability) const {
    for (const auto& i : of(Code::Capability))
      if (i[1] == static_cast<uint32_t>(capability)) return true;
    return false;
  }
};

Parsed printed(const Kernel& kernel, const ir::Capabilities& capabilities = vulkan()) {
  const PrintedKernel out = print_spirv(lower(kernel, capabilities), capabilities);
  EXPECT_EQ(out.words.at(0), spirv::kMagic);
  EXPECT_TRUE(out.params_as_block);
  Parsed parsed;
  parsed.version = out.words.at(1);
  for (size_t at = 5; at < out.words.size();) {
    const uint32_t length = out.words[at] >> 16;
    if (length == 0 || at + length > out.words.size()) {
      ADD_FAILURE() << "instruction of " << length << " words at " << at << " of "
                    << out.words.size();
      break;
    }
    std::vector<uint32_t> instruction(out.words.begin() + static_cast<std::ptrdiff_t>(at),
                                      out.words.begin() + static_cast<std::ptrdiff_t>(at + length));
    instruction[0] &= 0xffff;
    parsed.instructions.push_back(std::move(instruction));
    at += length;
  }
  return parsed;
}

TEST(SpirvPrinter, FloatArithmeticIsNeverContracted) {
  const Kernel arithmetic = kernel("k", 64, [] {
    auto a = in("a", f32);
    auto y = out("y", f32);
    Value x = a[local_id()];
    y[local_id()] = x * x + x - fma(x, x, x) / x;
  });
  ir::Capabilities capabilities = vulkan();
  const auto operations = [](const Parsed& p) {
    return p.count(Code::FMul) + p.count(Code::FAdd) + p.count(Code::FSub) + p.count(Code::FDiv);
  };
  capabilities.dialect_level = spirv::kFusedMultiplyAdd;
  const Parsed fused = printed(arithmetic, capabilities);
  EXPECT_EQ(fused.version, spirv::kVersion13);
  EXPECT_EQ(operations(fused), 4u);
  EXPECT_EQ(fused.count(Code::ExtInst), 1u);
  EXPECT_EQ(fused.decorated(spirv::Decoration::NoContraction), 4u);

  // No native fma if the driver's may round twice.
  capabilities.dialect_level = 0;
  const Parsed apart = printed(arithmetic, capabilities);
  EXPECT_GT(operations(apart), 4u);
  EXPECT_EQ(apart.count(Code::ExtInst), 0u);
  EXPECT_EQ(apart.decorated(spirv::Decoration::NoContraction), operations(apart));
}

TEST(SpirvPrinter, OnlyBuffersSeenTwoWaysAreAliased) {
  const Parsed p = printed(kernel("k", 64, [] {
    auto a = in("a", f32), b = in("b", f32);
    auto y = out("y", f32);
    Value i = local_id();
    y[i] = a[i] + bitcast(f32, a.load_words(i)) + b[i];
  }));
  EXPECT_EQ(p.decorated(spirv::Decoration::Aliased), 2u);
  EXPECT_EQ(p.decorated(spirv::Decoration::Binding), 4u);
  EXPECT_EQ(p.decorated(spirv::Decoration::NonWritable), 3u);
}

TEST(SpirvPrinter, FloatAtomicsGoThroughBitsWhereThereAreNone) {
  const Kernel add = kernel("k", 64, [] { inout("y", f32).atomic_add(0u, 1.0f); });
  const Parsed lowered = printed(add);
  EXPECT_EQ(lowered.count(Code::AtomicFAddEXT), 0u);
  EXPECT_EQ(lowered.count(Code::AtomicCompareExchange), 1u);
  ir::Capabilities capabilities = vulkan();
  capabilities.float_atomics = true;
  const Parsed direct = printed(add, capabilities);
  EXPECT_EQ(direct.count(Code::AtomicFAddEXT), 1u);
  EXPECT_TRUE(direct.has(spirv::Capability::AtomicFloat32AddEXT));
}

TEST(SpirvPrinter, ASharedNarrowArrayMayNeedMoreThanTheDeviceHas) {
  const Kernel k = kernel("big", 64, [] {
    auto tile = shared(u8, 16384);
    tile[local_id()] = 1u;
    barrier();
    out("y", u32)[local_id()] = tile[63u - local_id()];
  });
  ir::Capabilities capabilities = vulkan();
  capabilities.dialect_level = spirv::kInt8;
  EXPECT_TRUE(printed(k, capabilities).has(spirv::Capability::Int8));
  capabilities.dialect_level = 0;
  try {
    printed(k, capabilities);
    FAIL() << "65536 bytes fit into 16384";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_NE(std::string(error.what()).find("65536"), std::string::npos) << error.what();
  }
}

TEST(SpirvPrinter, FragmentsAreCooperativeMatrices) {
  ir::Capabilities capabilities = vulkan();
  capabilities.fragments = {{f16, f32, 16, 16, 16}};
  const Parsed p = printed(kernel("k", 64,
                                  [] {
                                    auto x = in("x", f16), w = in("w", f16);
                                    auto y = out("y", f32);
                                    auto a = fragment_a(f16);
                                    auto b = fragment_b(f16);
                                    auto sum = accumulator(f32);
                                    sum.fill(0.0f);
                                    a.load(x, 0u, 16u);
                                    b.load(w, 0u, 16u, Layout::column_major);
                                    sum.multiply(a, b);
                                    sum.store(y, 0u, 16u);
                                  }),
                           capabilities);
  EXPECT_EQ(p.version, spirv::kVersion16);
  EXPECT_TRUE(p.has(spirv::Capability::CooperativeMatrixKHR));
  EXPECT_TRUE(p.has(spirv::Capability::VulkanMemoryModel));
  EXPECT_EQ(p.count(Code::TypeCooperativeMatrixKHR), 3u);
  EXPECT_EQ(p.count(Code::CooperativeMatrixLoadKHR), 2u);
  EXPECT_EQ(p.count(Code::CooperativeMatrixMulAddKHR), 1u);
  EXPECT_EQ(p.count(Code::CooperativeMatrixStoreKHR), 1u);
}

}  // namespace
}  // namespace prism
