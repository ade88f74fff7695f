// Inputs of the operation kernels and comparison of their results.
#include "support/kernels/op_cases.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "ir/interpreter/interpreter.h"
#include "support/kernels/op_kernels.h"

namespace prism::test {
namespace {

constexpr size_t kElements = 1024;

// Multiples of one half and nearby values, zeros of both signs; exact in f16 and bf16.
float some_float(std::mt19937& random) {
  const int whole = static_cast<int>(random() % 33) - 16;
  return whole == 0 && random() % 2 ? -0.0f : static_cast<float>(whole) * 0.5f;
}

uint32_t some_word(std::mt19937& random) {
  static constexpr uint32_t kEdges[] = {0, 1, 7, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff};
  switch (random() % 4) {
    case 0:
      return kEdges[random() % std::size(kEdges)];
    case 1:
      return static_cast<uint32_t>(random() % 100);
    default:
      return static_cast<uint32_t>(random());
  }
}

std::vector<std::byte> contents(DType type, std::mt19937& random, bool small) {
  std::vector<std::byte> bytes(kElements * dtype_bytes(type));
  for (size_t i = 0; i < kElements; ++i) {
    uint32_t word = small ? static_cast<uint32_t>(random() % 100) : some_word(random);
    if (type == DType::f32) word = std::bit_cast<uint32_t>(some_float(random));
    if (type == DType::f16) word = f16_from_f32(some_float(random));
    if (type == DType::bf16) word = bf16_from_f32(some_float(random));
    std::memcpy(&bytes[i * dtype_bytes(type)], &word, dtype_bytes(type));
  }
  return bytes;
}

double value_at(const std::vector<std::byte>& bytes, size_t i, DType type) {
  uint32_t word = 0;
  std::memcpy(&word, &bytes[i * dtype_bytes(type)], dtype_bytes(type));
  switch (type) {
    case DType::f32:
      return std::bit_cast<float>(word);
    case DType::f16:
      return f32_from_f16(static_cast<uint16_t>(word));
    case DType::bf16:
      return f32_from_bf16(static_cast<uint16_t>(word));
    default:
      return word;
  }
}

bool close(double right, double found, double tolerance) {
  if (std::isnan(right) || std::isnan(found)) return std::isnan(right) && std::isnan(found);
  return right == found || std::fabs(right - found) <= tolerance * std::max(1.0, std::fabs(right));
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  std::vector<ir::Kernel> kernels = op_kernels();
  for (ir::Kernel& kernel : f16_kernels()) kernels.push_back(std::move(kernel));
  for (ir::Kernel& kernel : kernels) {
    if (kernel.name == "words") continue;  // the order of the lanes' writes is undefined
    std::mt19937 random(static_cast<uint32_t>(cases.size() + 1));
    OpCase one;
    // Sums of these are exact in any order.
    const bool small = kernel.name == "atomics" || kernel.name == "control_flow";
    for (uint32_t memory : kernel.buffers())
      one.buffers.push_back(contents(kernel.memories[memory].element, random, small));
    for (const ir::Param& param : kernel.params)
      one.params.push_back(param.type == DType::f32 ? std::bit_cast<uint32_t>(0.75f) : 50u);
    const bool functions = kernel.name == "float_functions" || kernel.name == "float_arithmetic";
    one.tolerance = functions ? 2e-6 : 1e-7;
    one.kernel = std::move(kernel);
    cases.push_back(std::move(one));
  }
  return cases;
}

std::vector<std::vector<std::byte>> right_contents(const OpCase& one,
                                                   const ir::Capabilities& capabilities) {
  std::vector<std::vector<std::byte>> result = one.buffers;
  std::vector<ir::HostBuffer> buffers;
  for (auto& content : result) buffers.push_back({content.data(), content.size()});
  ir::InterpretOptions options;
  const bool own =
      capabilities.subgroup_size > 0 && one.kernel.group_size % capabilities.subgroup_size == 0;
  options.subgroup_size =
      own ? capabilities.subgroup_size : 32;  // lowering's subgroup size otherwise
  ir::interpret(one.kernel, {1, 1, 1}, buffers, one.params, options);
  return result;
}

std::string difference(const OpCase& one, const std::vector<std::vector<std::byte>>& right,
                       const std::vector<std::vector<std::byte>>& found) {
  const std::vector<uint32_t> order = one.kernel.buffers();
  for (size_t b = 0; b < right.size(); ++b) {
    const ir::Memory& memory = one.kernel.memories[order[b]];
    for (size_t i = 0; i < right[b].size() / dtype_bytes(memory.element); ++i) {
      const double want = value_at(right[b], i, memory.element),
                   got = value_at(found[b], i, memory.element);
      if (!close(want, got, is_float(memory.element) ? one.tolerance : 0))
        return fmt::format("{}[{}] is {}, expected {}", memory.name, i, got, want);
    }
  }
  return "";
}

}  // namespace prism::test
