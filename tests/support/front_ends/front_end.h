// The location and result of a compiler front end under test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::test {

struct CompileResult {
  bool ok = false;
  std::string log;   // the compiler's output; may contain warnings if ok
  std::string code;  // its product, if available: PTX, a cubin, an AMD code object,
                     // assembly
};

// The value of a variable that scripts/setup_devices.sh writes; nullopt if unset or empty.
std::optional<std::string> front_end(const std::string& variable);

// The same, but throws std::runtime_error naming the variable and the command that sets it.
std::string require_front_end(const std::string& variable);

}  // namespace prism::test

// Skips the running test with the reason if a front end is not installed. A broken one is a
// failure.
#define PRISM_SKIP_WITHOUT(variable)     \
  if (!prism::test::front_end(variable)) \
  GTEST_SKIP() << (variable) << " is not set: run make test-devices"
