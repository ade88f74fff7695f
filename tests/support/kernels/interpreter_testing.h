// Helpers of the interpreter's tests: run a kernel on vectors, and apply an expression elementwise.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/interpreter/interpreter.h"
#include "ir/interpreter/interpreter_analysis.h"
#include "ir/interpreter/interpreter_ops.h"
#include "prism/error.h"
#include "prism/kernel.h"

namespace prism::interpreter_testing {

using ir::HostBuffer;
using ir::InterpretOptions;

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::i8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::u8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::i16;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::u16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::u32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else
    return DType::u64;
}

template <class T>
HostBuffer host(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

inline InterpretOptions options(uint32_t subgroup, bool checked = true) {
  InterpretOptions result;
  result.subgroup_size = subgroup;
  result.checked = checked;
  return result;
}

// Runs in checked and unchecked mode, with and without SIMD instructions and the translator's
// analysis; the results must agree.
template <class T>
std::vector<T> run(const Kernel& kernel, uint32_t groups, std::vector<T> out,
                   std::vector<HostBuffer> inputs = {}, std::vector<uint32_t> params = {},
                   uint32_t subgroup = 32) {
  const bool fast = ir::vm::use_avx2();
  std::vector<T> first;
  for (int mode = 0; mode < 8; ++mode) {
    ir::vm::use_avx2() = fast && (mode & 1) == 0;
    ir::vm::use_shortcuts() = (mode & 2) == 0;
    std::vector<T> result = out;
    std::vector<HostBuffer> buffers = inputs;
    buffers.push_back(host(result));
    ir::interpret(kernel, {groups, 1, 1}, buffers, params, options(subgroup, mode < 4));
    if (mode == 0) first = result;
    EXPECT_EQ(0, std::memcmp(first.data(), result.data(), first.size() * sizeof(T)))
        << "mode " << mode;
  }
  ir::vm::use_avx2() = fast;
  ir::vm::use_shortcuts() = true;
  return first;
}

// The error message of a run in checked mode; empty if it succeeds.
template <class T>
std::string failure(const Kernel& kernel, std::vector<T> out, std::vector<HostBuffer> inputs = {},
                    std::vector<uint32_t> params = {}) {
  inputs.push_back(host(out));
  try {
    ir::interpret(kernel, {1, 1, 1}, inputs, params);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidKernel);
    return error.what();
  }
  return "";
}

#define EXPECT_SAYS(text, part)                                                  \
  do {                                                                           \
    const std::string text_said = (text);                                        \
    EXPECT_NE(text_said.find(part), std::string::npos) << "said: " << text_said; \
  } while (0)

// Applies f elementwise. Every operand is tried both uniform and varying, since each has its own
// code: all must give the same bits.
template <class R, class F, class... A>
std::vector<R> each(F f, std::vector<A>... inputs) {
  const size_t count = std::min({inputs.size()...});
  std::vector<R> first;
  for (uint32_t uniform = 0; uniform < (1u << sizeof...(A)); ++uniform) {
    const Kernel kernel = dsl::kernel("each", 16, [&] {
      using namespace dsl;
      const dsl::Value once = group_id(), own = group_id() + local_id() * 0u;
      uint32_t position = 0;
      const auto operand = [&](DType type) {
        const In buffer = in("x" + std::to_string(position), type);
        return dsl::Value(buffer[(uniform >> position++) & 1 ? once : own]);
      };
      std::vector<dsl::Value> values = {operand(dtype_of<A>())...};
      const Array y = out("y", dtype_of<R>());
      position = 0;
      const dsl::Value result = [&]<size_t... I>(std::index_sequence<I...>) {
        return f(values[I]...);
      }
      (std::index_sequence_for<A...>{});
      if_(local_id() == 0u,
          [&] { y[once] = result.element() == DType::b1 ? cast(dtype_of<R>(), result) : result; });
    });
    std::vector<R> result =
        run(kernel, static_cast<uint32_t>(count), std::vector<R>(count), {host(inputs)...});
    if (uniform == 0) first = result;
    EXPECT_EQ(0, std::memcmp(first.data(), result.data(), count * sizeof(R)))
        << "operands " << uniform;
  }
  return first;
}

}  // namespace prism::interpreter_testing
