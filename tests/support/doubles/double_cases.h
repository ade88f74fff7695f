// Kernels and checks shared by the tests of the driver doubles.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/kernel.h"

namespace prism::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline Kernel scale_kernel(const std::string& name = "scale") {
  using namespace dsl;
  return kernel(name, 64, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto factor = param("factor", f32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = x[i] * factor; });
  });
}

inline Kernel add_one_kernel() {
  using namespace dsl;
  return kernel("add_one", 64, [] {
    auto y = inout("y", f32);
    auto count = param("count", u32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = Value(y[i]) + 1.0f; });
  });
}

inline std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000);
  return values;
}

inline Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::kIo, "");
}

}  // namespace prism::test
