// Whether kernels of the CPU device run in checked mode.
#include <atomic>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "ir/interpreter/interpreter.h"
#include "prism/error.h"

namespace prism::ir {
namespace {

enum class Setting { from_environment, off, on };
std::atomic<Setting> setting{Setting::from_environment};

}  // namespace

void check_kernels(bool on) { setting = on ? Setting::on : Setting::off; }

bool kernels_are_checked() {
  if (const Setting now = setting; now != Setting::from_environment) return now == Setting::on;
  const char* text = std::getenv("PRISM_CHECKED");
  const std::string value = text ? text : "";
  if (!value.empty() && value != "0" && value != "1")
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("PRISM_CHECKED is \"{}\"; use 1 to check the kernels that run on the "
                            "CPU, 0 not to",
                            value));
  return value == "1";
}

}  // namespace prism::ir
