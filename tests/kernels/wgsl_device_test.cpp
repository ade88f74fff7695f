// Printed WGSL through both WebGPU libraries: every kernel compiles, runs, and agrees with the
// interpreter.
#include <algorithm>
#include <bit>
#include <cstring>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "print/printer.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "sample_kernels/sample_library.h"
#include "support/front_ends/wgsl_front_end.h"
#include "support/kernels/op_cases.h"
#include "support/kernels/op_kernels.h"
#include "support/seed.h"

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

// The common capabilities of WebGPU devices, and each optional one.
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
    list.back().capabilities.subgroup_size = 8;  // as on llvmpipe
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

// The buffers after the kernel ran as WGSL; fails the test if it did not run.
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
    // Rows that do not divide the number of groups, so that the last one is partial.
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
    std::string too_large;
    for (const SampleKernel& entry : sample_kernels()) {
      const ir::Kernel kernel = entry.make();
      for (const KernelCase& one : entry.cases(1, true)) {
        Variant fitting = variant;
        fitting.launch.folded |= *std::max_element(one.groups.begin(), one.groups.end()) > 65535;
        try {
          const Contents contents =
              run(library(), kernel, fitting, {one.groups, one.params, one.buffers});
          EXPECT_EQ(compare(one, kernel, contents), "")
              << entry.name << " " << one.name << " at " << variant.name;
        } catch (const Error& error) {
          if (error.code() != ErrorCode::kNotSupported) throw;
          // A tile for large cards may need more shared memory than WebGPU offers.
          EXPECT_NE(std::string(error.what()).find("of shared memory"), std::string::npos)
              << error.what();
          too_large += " " + entry.name;
          break;
        }
      }
    }
    if (!too_large.empty())
      std::cout << variant.name << ": not enough shared memory for" << too_large << "\n";
  }
}

std::vector<uint32_t> words_of(const std::vector<std::byte>& bytes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), words.size() * 4);
  return words;
}

std::vector<std::byte> bytes_of(const std::vector<uint32_t>& words) {
  std::vector<std::byte> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

// Lanes agree on the number of rounds through a sum in shared memory, which WGSL considers varying.
TEST_P(Wgsl, BarriersStandInFlowThatLanesAgreeOn) {
  const ir::Kernel looped = kernel("looped", 64, [] {
    auto a = in("a", u32);
    auto y = inout("y", u32);
    auto tile = shared(u32, 64);
    const Value rounds = group_sum(a[local_id()]);
    if_(rounds > 2u, [&] {
      for_(0u, rounds, 1u, [&](Value i) {
        tile[local_id()] = y[local_id()] + i;
        barrier();
        y[local_id()] = tile[(local_id() + 1u) & 63u];
        barrier();
      });
    });
    Var left(u32, rounds, "left");
    while_([&] { return Value(left) > 1u; },
           [&] {
             tile[local_id()] = y[local_id()] * 3u;
             barrier();
             y[local_id()] = tile[63u - local_id()];
             left = left - 2u;
             barrier();
           });
  });
  std::vector<uint32_t> ones(64, 0), start(64);
  ones[3] = 2, ones[60] = 3;
  for (uint32_t i = 0; i < 64; ++i) start[i] = i * i;
  std::vector<uint32_t> right = start;
  for (uint32_t round = 0; round < 5; ++round) {
    std::vector<uint32_t> tile = right;
    for (uint32_t i = 0; i < 64; ++i) right[i] = tile[(i + 1) & 63] + round;
  }
  for (uint32_t left = 5; left > 1; left -= 2) {
    std::vector<uint32_t> tile = right;
    for (uint32_t i = 0; i < 64; ++i) right[i] = tile[63 - i] * 3;
  }
  for (const Variant& variant : variants(library())) {
    const Contents found =
        run(library(), looped, variant, {{1, 1, 1}, {}, {bytes_of(ones), bytes_of(start)}});
    EXPECT_EQ(words_of(found[1]), right) << variant.name;
  }
}

TEST_P(Wgsl, WordsOfAnyBuffer) {
  const ir::Kernel words = kernel("words_of", 64, [] {
    auto a = in("a", f16);
    auto b = in("b", f32);
    auto y = out("y", f16);
    auto z = out("z", f32);
    auto i = local_id();
    y.store_words(i * 2u, a.load_words(i * 2u, 2, 2) ^ splat(0x80008000u, 2), 2);
    z.store_words(i, b.load_words_if(i < 40u, i) + 1u);
  });
  std::vector<uint32_t> a(128), b(64);
  for (uint32_t i = 0; i < 128; ++i) a[i] = 0x3c004000u + i * 0x00010001u;
  for (uint32_t i = 0; i < 64; ++i) b[i] = 0x40000000u + i;
  for (const Variant& variant : variants(library())) {
    const Contents found =
        run(library(), words, variant,
            {{1, 1, 1}, {}, {bytes_of(a), bytes_of(b), bytes_of(a), bytes_of(b)}});
    const auto y = words_of(found[2]), z = words_of(found[3]);
    for (uint32_t i = 0; i < 128; ++i)
      ASSERT_EQ(y[i], a[i] ^ 0x80008000u) << i << " at " << variant.name;
    for (uint32_t i = 0; i < 64; ++i)
      ASSERT_EQ(z[i], i < 40 ? b[i] + 1 : 1) << i << " at " << variant.name;
  }
}

// In a buffer of halves that is also read by words, each word is one load, and so are four words.
TEST_P(Wgsl, HalvesThatAreReadByWordsAreLoadedByWords) {
  const ir::Kernel halves = kernel("halves_by_words", 64, [] {
    auto a = in("a", f16);
    auto words = out("words", u32);
    auto values = out("values", f32);
    auto i = local_id();
    words.store_words(i * 4u, a.load_words(i * 4u, 4, 4), 4);
    values[i * 8u] = a[i * 7u];
    values[i * 8u + 1u] = a.load_if(i % 3u == 1u, 511u - i);
    values[i * 8u + 2u] = a.load(i * 2u, 2)[1];
    values.store(i * 8u + 4u, a.load(i * 8u + 4u, 4));
  });
  const uint32_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  std::vector<uint32_t> a(256);
  for (uint32_t& word : a) word = static_cast<uint32_t>(random()) & 0xbbffbbffu;  // finite
  const auto half = [&](uint32_t i) {
    return f32_from_f16(static_cast<uint16_t>(a[i / 2] >> (i % 2 * 16)));
  };
  const std::vector<uint32_t> poison(512, 0xdeadbeefu);
  for (const Variant& variant : variants(library())) {
    const ir::Kernel lowered = lower(halves, variant.capabilities, variant.launch);
    const std::string text = print_wgsl(lowered, variant.capabilities).text;
    EXPECT_NE(text.find("a: array<vec4<u32>>"), std::string::npos) << text;
    const Contents found =
        run(library(), halves, variant,
            {{1, 1, 1}, {}, {bytes_of(a), bytes_of(std::vector(256, 7u)), bytes_of(poison)}});
    EXPECT_EQ(words_of(found[1]), a) << variant.name;
    const auto values = words_of(found[2]);
    for (uint32_t i = 0; i < 64; ++i) {
      const float wanted[] = {half(i * 7),     i % 3 == 1 ? half(511 - i) : 0.0f,
                              half(i * 2 + 1), std::bit_cast<float>(0xdeadbeefu),
                              half(i * 8 + 4), half(i * 8 + 5),
                              half(i * 8 + 6), half(i * 8 + 7)};
      for (uint32_t j = 0; j < 8; ++j)
        ASSERT_EQ(values[i * 8 + j], std::bit_cast<uint32_t>(wanted[j]))
            << i << ", " << j << " at " << variant.name;
    }
  }
}

TEST_P(Wgsl, PairsOfHalvesAreWords) {
  const ir::Kernel halves = kernel("halves", 64, [] {
    auto a = in("a", u32);
    auto y = out("y", u32);
    const Value pair = bitcast(Type{f16, 2}, a[local_id()]);
    const Value sum = cast(f32, pair[0]) + cast(f32, pair[1]);
    const Value most = select(sum > 1e9f, constant_bits(f16, 0x7c00u), constant_bits(f16, 0x8000u));
    y[local_id()] = bitcast(u32, vec(-pair[1], max(pair[0], most)));
  });
  std::vector<uint32_t> a(64), right(64);
  for (uint32_t i = 0; i < 64; ++i) {
    a[i] = (0x4000u + i) << 16 | (0x3c00u + 3 * i);
    right[i] = (0x3c00u + 3 * i) << 16 | (0xc000u + i);
  }
  for (const Variant& variant : variants(library())) {
    const Contents found =
        run(library(), halves, variant, {{1, 1, 1}, {}, {bytes_of(a), bytes_of(a)}});
    EXPECT_EQ(words_of(found[1]), right) << variant.name;
  }
}

TEST_P(Wgsl, ConstantsKeepTheirBits) {
  const std::vector<uint32_t> bits = {0x7f800000u, 0xff800000u, 0x00000001u, 0x80000000u,
                                      0x7f7fffffu, 0x00800000u, 0x3dcccccdu, 0x0u};
  const ir::Kernel constants = kernel("constants", 1, [&] {
    auto y = out("y", f32);
    for (uint32_t i = 0; i < bits.size(); ++i) y[i] = constant_bits(f32, bits[i]);
  });
  const Contents found = run(library(), constants, variants(library()).front(),
                             {{1, 1, 1}, {}, {bytes_of(std::vector<uint32_t>(8, 9))}});
  EXPECT_EQ(words_of(found[0]), bits);
}

INSTANTIATE_TEST_SUITE_P(Libraries, Wgsl, testing::Values(test::kWgpu, test::kDawn),
                         [](const auto& library) {
                           return std::string(library.param) == test::kWgpu ? "wgpu" : "dawn";
                         });

}  // namespace
}  // namespace prism
