// Printed CUDA, HIP, OpenCL C, Metal and SYCL text, compiled by the host compiler under the
// undefined-behaviour sanitizer and run, against the interpreter and the float64 references of the
// shipped kernels.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/interpreter/interpreter.h"
#include "lower/lower.h"
#include "print/printer.h"
#include "prism/error.h"
#include "sample_kernels/sample_library.h"
#include "support/kernels/op_kernels.h"
#include "support/kernels/printer_kernels.h"
#include "support/kernels/shim.h"

namespace prism::test {
namespace {

using ir::Capabilities;
using ir::Kernel;
using Buffers = std::vector<std::vector<std::byte>>;

void append(std::vector<Kernel>& to, std::vector<Kernel> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

Capabilities weak(const std::string& dialect) {
  Capabilities c = typical_capabilities(dialect);
  c.storage_8 = c.storage_16 = c.storage_f16 = c.storage_bf16 = false;
  c.math_f16 = c.dot4 = c.float_atomics = c.async_copy = c.dependent_launch = c.fragment_layout =
      c.device_fence = false;
  c.precise_math = !c.precise_math;
  c.subgroup_size = 0;
  c.subgroup_sizes.clear();
  c.fragments.clear();
  if (dialect == "cuda") c.dialect_level = 50;
  if (dialect == "opencl") c.dialect_level = 120;
  return c;
}

// Between the two: another subgroup size and no native fragments.
Capabilities middle(const std::string& dialect) {
  Capabilities c = typical_capabilities(dialect);
  c.float_atomics = false;
  c.precise_math = !c.precise_math;
  c.fragments.clear();
  if (dialect == "cuda") c.dialect_level = 75;
  if (dialect == "cuda") c.async_copy = c.dependent_launch = false;
  if (dialect == "hip") c.subgroup_size = 32, c.subgroup_sizes = {32};
  if (dialect == "opencl" || dialect == "sycl") c.subgroup_size = 32;
  return c;
}

// NVIDIA's OpenCL, with subgroups through PTX.
Capabilities ptx(const std::string& dialect) {
  Capabilities c = middle(dialect);
  c.subgroup_sizes = {32};
  c.math_f16 = false;
  return c;
}

// An AMD chip with matrix instructions, by its gfx number.
Capabilities chip(const std::string& gfx) {
  Capabilities c = typical_capabilities("hip");
  c.dialect_level = static_cast<uint32_t>(std::stoul(gfx.substr(3), nullptr, 16));
  c.subgroup_size = c.dialect_level < 0x1000 ? 64 : 32;
  c.subgroup_sizes = {c.subgroup_size};
  c.dot4 = true;
  c.fragments = typical_capabilities("cuda").fragments;
  c.fragment_layout = true;
  return c;
}

struct Setting {
  const char* dialect;
  const char* strength;
  friend void PrintTo(const Setting& setting, std::ostream* out) {
    *out << setting.dialect << " " << setting.strength;
  }
  Capabilities capabilities() const {
    const std::string s = strength;
    return s == "typical"         ? typical_capabilities(dialect)
           : s.starts_with("gfx") ? chip(s)
           : s == "weak"          ? weak(dialect)
           : s == "ptx"           ? ptx(dialect)
                                  : middle(dialect);
  }
  std::vector<std::string> options() const {
    return strength == std::string("ptx") ? std::vector<std::string>{"-DPRISM_SUBGROUPS_BY_PTX"}
                                          : std::vector<std::string>{};
  }
};

struct Lowered {
  std::vector<Kernel> kernels;
  std::vector<Kernel> originals;  // before lowering, which may store an f16 buffer as words
};

Lowered lowered_all(const std::vector<Kernel>& kernels, const Capabilities& capabilities) {
  Lowered result;
  for (const Kernel& kernel : kernels) {
    try {
      result.kernels.push_back(lower(kernel, capabilities));
      result.originals.push_back(kernel);
    } catch (const Error& error) {
      // A device may lack f64 or shared memory and report that; nothing else may stop a kernel.
      EXPECT_EQ(error.code(), ErrorCode::kNotSupported) << error.what();
    }
  }
  return result;
}

// Small integers in every type, whose sums are exact in any order.
Buffers whole_numbers(const Kernel& kernel, size_t elements, uint32_t seed) {
  std::mt19937 random(seed);
  Buffers result;
  for (uint32_t index : kernel.buffers()) {
    const DType type = kernel.memories[index].element;
    std::vector<std::byte> bytes(elements * dtype_bytes(type));
    for (size_t i = 0; i < elements; ++i) {
      const int value = static_cast<int>(random() % 9) - (is_unsigned_int(type) ? 0 : 4);
      const auto put = [&](auto typed) {
        std::memcpy(&bytes[i * sizeof typed], &typed, sizeof typed);
      };
      switch (type) {
        case DType::f16:
          put(f16_from_f32(static_cast<float>(value)));
          break;
        case DType::bf16:
          put(bf16_from_f32(static_cast<float>(value)));
          break;
        case DType::f32:
          put(static_cast<float>(value));
          break;
        case DType::f64:
          put(static_cast<double>(value));
          break;
        case DType::i8:
        case DType::u8:
          put(static_cast<int8_t>(value));
          break;
        case DType::i16:
        case DType::u16:
          put(static_cast<int16_t>(value));
          break;
        case DType::i64:
        case DType::u64:
          put(static_cast<int64_t>(value));
          break;
        default:
          put(value);
          break;
      }
    }
    result.push_back(bytes);
  }
  return result;
}

// Every bit pattern for integers; for floats, the magnitudes that matter to conversions and
// functions.
Buffers random_contents(const Kernel& kernel, size_t elements, uint32_t seed) {
  std::mt19937 random(seed);
  Buffers result;
  for (uint32_t index : kernel.buffers()) {
    const DType type = kernel.memories[index].element;
    std::vector<std::byte> bytes(elements * dtype_bytes(type));
    for (size_t i = 0; i < elements; ++i) {
      const double value = std::ldexp(static_cast<double>(static_cast<int32_t>(random())),
                                      -31 + static_cast<int>(random() % 9));
      const auto put = [&](auto typed) {
        std::memcpy(&bytes[i * sizeof typed], &typed, sizeof typed);
      };
      switch (type) {
        case DType::f16:
          put(f16_from_f32(static_cast<float>(value)));
          break;
        case DType::bf16:
          put(bf16_from_f32(static_cast<float>(value)));
          break;
        case DType::f32:
          put(static_cast<float>(value));
          break;
        case DType::f64:
          put(value);
          break;
        default:
          for (size_t b = 0; b < dtype_bytes(type); ++b)
            bytes[i * dtype_bytes(type) + b] = static_cast<std::byte>(random());
      }
    }
    result.push_back(bytes);
  }
  return result;
}

double stored_value(const std::byte* at, DType type) {
  const auto as = [&](auto typed) {
    std::memcpy(&typed, at, sizeof typed);
    return typed;
  };
  switch (type) {
    case DType::f16:
      return f32_from_f16(as(uint16_t{}));
    case DType::bf16:
      return f32_from_bf16(as(uint16_t{}));
    case DType::f32:
      return as(float{});
    default:
      return as(double{});
  }
}

// Integers must match bit by bit; floats too, or within `tolerance`: functions may differ in their
// last bits.
void expect_same(const Kernel& kernel, const Buffers& expected, const Buffers& found,
                 double tolerance, const std::string& what) {
  const std::vector<uint32_t> order = kernel.buffers();
  for (size_t b = 0; b < expected.size(); ++b) {
    if (expected[b] == found[b]) continue;
    const ir::Memory& memory = kernel.memories[order[b]];
    const size_t bytes = dtype_bytes(memory.element);
    for (size_t i = 0; i < expected[b].size() / bytes; ++i) {
      const std::byte *left = &expected[b][i * bytes], *right = &found[b][i * bytes];
      if (std::memcmp(left, right, bytes) == 0) continue;
      if (is_float(memory.element)) {
        const double x = stored_value(left, memory.element),
                     y = stored_value(right, memory.element);
        if ((std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance * (std::fabs(x) + 1))
          continue;
        ADD_FAILURE() << what << ": " << memory.name << "[" << i << "] is " << y
                      << ", the interpreter has " << x;
      } else {
        uint64_t x = 0, y = 0;
        std::memcpy(&x, left, bytes);
        std::memcpy(&y, right, bytes);
        ADD_FAILURE() << what << ": " << memory.name << "[" << i << "] is " << y
                      << ", the interpreter has " << x;
      }
      break;
    }
  }
}

void interpret(const Kernel& kernel, std::array<uint32_t, 3> groups, Buffers& buffers,
               const std::vector<uint32_t>& params) {
  std::vector<ir::HostBuffer> views;
  for (std::vector<std::byte>& buffer : buffers) views.push_back({buffer.data(), buffer.size()});
  ir::InterpretOptions options;
  options.subgroup_size = kernel.subgroup_size ? kernel.subgroup_size : 32;
  options.checked = false;  // groups read input that other groups have written
  ir::interpret(kernel, groups, views, params, options);
}

std::vector<uint32_t> params_for(const Kernel& kernel) {
  std::vector<uint32_t> params;
  for (const ir::Param& param : kernel.params) {
    if (param.type == DType::f32)
      params.push_back(0x3fc00000u);  // 1.5
    else
      params.push_back(param.name == "depth" ? 32 : 200);
  }
  return params;
}

class Printed : public testing::TestWithParam<Setting> {};

TEST_P(Printed, OperationsGiveWhatTheInterpreterGives) {
  const Capabilities capabilities = GetParam().capabilities();
  std::vector<Kernel> kernels = op_kernels();
  append(kernels, printer_kernels());
  append(kernels, f16_kernels());
  append(kernels, i64_kernels());
  append(kernels, f64_kernels());
  if (capabilities.device_fence) append(kernels, fence_kernels());
  const Lowered lowered = lowered_all(kernels, capabilities);
  ASSERT_GE(lowered.kernels.size() + 2, kernels.size());
  const ShimLibrary library =
      compile_with_shim(capabilities, lowered.kernels, GetParam().options());
  for (size_t i = 0; i < lowered.kernels.size(); ++i) {
    const Kernel &kernel = lowered.kernels[i], &original = lowered.originals[i];
    SCOPED_TRACE(kernel.name);
    const bool is_grid = kernel.name == "grid";
    const std::array<uint32_t, 3> groups =
        is_grid ? std::array<uint32_t, 3>{3, 2, 2} : std::array<uint32_t, 3>{4, 1, 1};
    const Buffers input = random_contents(original, 4096, static_cast<uint32_t>(i) + 1);
    Buffers expected = input, found = input;
    interpret(kernel, groups, expected, params_for(kernel));
    library.run(i, groups, found, params_for(kernel));
    expect_same(original, expected, found, 2e-5, kernel.name);
  }
}

// Only CUDA and HIP have native fragments; lowered ones are the same IR for every dialect.
class PrintedFragments : public testing::TestWithParam<Setting> {};

TEST_P(PrintedFragments, GiveWhatTheInterpreterGives) {
  const Capabilities capabilities = GetParam().capabilities();
  std::vector<Kernel> kernels = fragment_layout_kernels();
  append(kernels, fragment_kernels());
  const Lowered lowered = lowered_all(kernels, capabilities);
  ASSERT_EQ(lowered.kernels.size(), kernels.size());
  const ShimLibrary library = compile_with_shim(capabilities, lowered.kernels);
  for (size_t i = 0; i < lowered.kernels.size(); ++i) {
    const Kernel &kernel = lowered.kernels[i], &original = lowered.originals[i];
    SCOPED_TRACE(kernel.name);
    const Buffers input = whole_numbers(original, 4096, static_cast<uint32_t>(i) + 1);
    Buffers expected = input, found = input;
    interpret(kernel, {2, 1, 1}, expected, params_for(kernel));
    library.run(i, {2, 1, 1}, found, params_for(kernel));
    expect_same(original, expected, found, 0, kernel.name);
  }
}

TEST_P(Printed, ShippedKernelsMatchTheirReferences) {
  const Capabilities capabilities = GetParam().capabilities();
  std::vector<Kernel> lowered, originals;
  std::vector<const SampleKernel*> entries;
  for (const SampleKernel& entry : sample_kernels()) {
    const Lowered one = lowered_all({entry.make()}, capabilities);
    if (one.kernels.empty()) continue;
    lowered.push_back(one.kernels[0]);
    originals.push_back(one.originals[0]);
    entries.push_back(&entry);
  }
  ASSERT_GE(lowered.size() + 3, sample_kernels().size());
  const ShimLibrary library = compile_with_shim(capabilities, lowered, GetParam().options());
  for (size_t i = 0; i < lowered.size(); ++i) {
    for (const KernelCase& launch : entries[i]->cases(11, true)) {
      // Large cases are left to devices: fibers would take minutes.
      const double groups = double(launch.groups[0]) * launch.groups[1] * launch.groups[2];
      if (groups * lowered[i].group_size > 300000) continue;
      Buffers buffers = launch.buffers;
      library.run(i, launch.groups, buffers, launch.params);
      EXPECT_EQ(compare(launch, originals[i], buffers), "")
          << lowered[i].name << " " << launch.name;
    }
  }
}

std::string setting_name(const testing::TestParamInfo<Setting>& test) {
  return std::string(test.param.dialect) + "_" + test.param.strength;
}

INSTANTIATE_TEST_SUITE_P(All, PrintedFragments,
                         testing::Values(Setting{"cuda", "typical"}, Setting{"hip", "typical"},
                                         Setting{"hip", "gfx908"}, Setting{"hip", "gfx90a"},
                                         Setting{"hip", "gfx942"}, Setting{"hip", "gfx1100"},
                                         Setting{"hip", "gfx1201"}, Setting{"metal", "typical"},
                                         Setting{"opencl", "weak"}),
                         setting_name);

INSTANTIATE_TEST_SUITE_P(All, Printed,
                         testing::Values(Setting{"cuda", "typical"}, Setting{"cuda", "middle"},
                                         Setting{"cuda", "weak"}, Setting{"hip", "typical"},
                                         Setting{"hip", "middle"}, Setting{"hip", "weak"},
                                         Setting{"opencl", "typical"}, Setting{"opencl", "middle"},
                                         Setting{"opencl", "weak"}, Setting{"opencl", "ptx"},
                                         Setting{"metal", "typical"}, Setting{"metal", "weak"},
                                         Setting{"sycl", "typical"}, Setting{"sycl", "middle"},
                                         Setting{"sycl", "weak"}),
                         setting_name);

}  // namespace
}  // namespace prism::test
