// Compares written and lowered kernels, and provides their inputs.
#include "support/kernels/lowering.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "lower/passes.h"

namespace prism::test {
namespace {

using ir::Op;

bool left_for_printers(const ir::Kernel& lowered, const ir::Inst& inst,
                       const ir::Capabilities& caps) {
  const auto element_of_argument = [&] { return lowered.values[inst.args[0]].element; };
  switch (inst.op) {
    case Op::group_reduce:
    case Op::div_trunc:
    case Op::rem_trunc:
    case Op::div_floor:
    case Op::mod_floor:
    case Op::shl:
    case Op::shr:
    case Op::subgroup_size:
      return false;
    case Op::cast:
      return !(is_float(element_of_argument()) && is_int(inst.type.element));
    case Op::raw:
      return inst.text2 == caps.dialect;
    case Op::exp:
    case Op::exp2:
    case Op::log:
    case Op::log2:
    case Op::sin:
    case Op::cos:
    case Op::tanh:
      return caps.precise_math || inst.type.element == DType::f64;
    case Op::dot4_i8:
    case Op::dot4_u8:
      return caps.dot4;
    case Op::atomic:
      return caps.float_atomics || inst.type.element != DType::f32;
    case Op::async_copy:
    case Op::async_commit:
    case Op::async_wait:
      return caps.async_copy;
    case Op::wait_previous:
    case Op::launch_next:
      return caps.dependent_launch;
    case Op::device_fence:
      return caps.device_fence;
    case Op::subgroup_id:
    case Op::subgroup_lane:
      return lowered.subgroup_size != 0;
    case Op::subgroup_reduce:
    case Op::subgroup_scan:
    case Op::subgroup_shuffle:
    case Op::subgroup_shuffle_xor:
      return lowered.subgroup_size != 0 && inst.type.element != DType::b1;
    default:
      return inst.op < Op::fragment_fill || inst.op > Op::fragment_convert ||
             !caps.fragments.empty();
  }
}

bool storable(const ir::Memory& memory, const ir::Capabilities& caps) {
  const bool buffer = memory.space == ir::Space::buffer;
  switch (memory.element) {
    case DType::i8:
    case DType::u8:
      return buffer ? caps.storage_8 : caps.narrow_arrays;
    case DType::i16:
    case DType::u16:
      return buffer ? caps.storage_16 : caps.narrow_arrays;
    case DType::f16:
      return caps.storage_f16 && (buffer || caps.narrow_arrays);
    case DType::bf16:
      return caps.storage_bf16 && (buffer || caps.narrow_arrays);
    default:
      return true;
  }
}

void expect_printable(const ir::Kernel& lowered, const ir::Capabilities& caps) {
  ir::walk(lowered.body, [&](const ir::Inst& inst) {
    EXPECT_TRUE(left_for_printers(lowered, inst, caps)) << ir::op_name(inst.op) << " is left in\n"
                                                        << ir::to_text(lowered);
    if (!caps.math_f16 && inst.type.lanes > 0) {
      EXPECT_NE(inst.type.element, DType::f16) << ir::op_name(inst.op) << " computes with f16 in\n"
                                               << ir::to_text(lowered);
    }
  });
  for (const ir::Memory& memory : lowered.memories)
    EXPECT_TRUE(storable(memory, caps)) << memory.name << " holds " << dtype_name(memory.element);
}

}  // namespace

ir::Capabilities full_capabilities() {
  ir::Capabilities caps;
  caps.dialect = "test";
  caps.storage_bf16 = caps.math_f16 = caps.math_i64 = caps.math_f64 = caps.precise_math =
      caps.dot4 = true;
  caps.float_atomics = caps.async_copy = caps.dependent_launch = caps.fragment_layout = true;
  caps.device_fence = true;
  caps.subgroup_size = 32;
  caps.subgroup_sizes = {32};
  caps.fragments = {{DType::f16, DType::f32, 16, 16, 16}};
  caps.max_group_size = 1024;
  caps.shared_bytes = 256 << 10;
  caps.max_buffers = 64;
  return caps;
}

void expect_same_when_lowered(const ir::Kernel& kernel, const Launch& launch,
                              const ir::Capabilities& caps) {
  SCOPED_TRACE(kernel.name + " in groups of " + std::to_string(kernel.group_size) +
               ", subgroups of " + std::to_string(caps.subgroup_size));
  try {
    expect_printable(lower(kernel, caps), caps);
    const Contents right =
        interpreted(kernel, launch, lower_detail::subgroup_size_for(kernel, caps));
    const Contents found = interpreted_lowered(kernel, launch, caps);
    EXPECT_EQ(first_difference(kernel, right, found), "")
        << ir::to_text(kernel) << ir::to_text(lower(kernel, caps));
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "\n" << ir::to_text(kernel);
  }
}

uint32_t count_ops(const ir::Kernel& kernel, ir::Op op) {
  uint32_t count = 0;
  ir::walk(kernel.body, [&](const ir::Inst& inst) { count += inst.op == op; });
  return count;
}

std::vector<uint32_t> awkward_words(size_t count, uint64_t seed) {
  const uint32_t edges[] = {0,          1,          2,         3,          7,          8,
                            31,         32,         33,        255,        256,        0x7fff,
                            0x8000,     0xffff,     0x10000,   0x7ffffffe, 0x7fffffff, 0x80000000,
                            0x80000001, 0xfffffffe, 0xffffffff};
  std::mt19937_64 random(seed);
  std::vector<uint32_t> words(count);
  for (size_t i = 0; i < count; ++i)
    words[i] = random() % 2 == 0 ? edges[random() % std::size(edges)]
                                 : static_cast<uint32_t>(random() >> random() % 32);
  return words;
}

std::vector<float> awkward_floats(size_t count, uint64_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float edges[] = {0.0f,
                         -0.0f,
                         0.5f,
                         -0.5f,
                         0.99999994f,
                         1.0f,
                         -1.0f,
                         1.5f,
                         2.5f,
                         -2.5f,
                         127.0f,
                         255.5f,
                         65504.0f,
                         65519.0f,
                         65520.0f,
                         65536.0f,
                         6.1035156e-5f,
                         5.9604645e-8f,
                         2.9802322e-8f,
                         8388608.5f,
                         16777216.0f,
                         2147483520.0f,
                         2147483648.0f,
                         -2147483648.0f,
                         -2147483904.0f,
                         4294967040.0f,
                         4294967296.0f,
                         9.2233720e18f,
                         1.8446744e19f,
                         3.4028235e38f,
                         -3.4028235e38f,
                         1.1754944e-38f,
                         kInfinity,
                         -kInfinity,
                         std::numeric_limits<float>::quiet_NaN()};
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = random() % 2 == 0 ? edges[random() % std::size(edges)]
                                  : static_cast<float>(static_cast<int32_t>(random())) *
                                        std::ldexp(1.0f, -static_cast<int>(random() % 48));
  return values;
}

}  // namespace prism::test
