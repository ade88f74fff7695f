// What every compiler front end under test has in common: where it is, and what it answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::test {

struct CompileResult {
  bool ok = false;
  std::string log;   // the compiler's own words; may hold warnings when ok
  std::string code;  // what it produced, where it hands that out: PTX, a cubin, an AMD code object,
                     // assembly
};

// The value of a variable that scripts/setup_devices.sh writes; nothing when unset or empty.
std::optional<std::string> front_end(const std::string& variable);

// The same for those who must have it. Throws std::runtime_error naming the variable and the
// command that sets it.
std::string require_front_end(const std::string& variable);

}  // namespace prism::test

// Skips the running test, with the reason, when a front end was not installed. Set but broken is a
// failure.
#define PRISM_SKIP_WITHOUT(variable)     \
  if (!prism::test::front_end(variable)) \
  GTEST_SKIP() << (variable) << " is not set: run make test-devices"
