// Whether a device computes right: the library's kernels on it, compared with their float64
// references.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

enum class CheckOutcome { right, wrong, failed, skipped };
const char* outcome_name(CheckOutcome outcome);  // "right" ...

struct KernelCheck {
  std::string kernel;
  CheckOutcome outcome = CheckOutcome::right;
  std::string detail;          // where it is wrong, the error, or why cases were skipped
  uint32_t cases = 0;          // run
  uint32_t skipped_cases = 0;  // for lack of memory or of what the device cannot do
  double ms = 0;               // host time of all cases, compiling included
};

struct SelfCheck {
  std::vector<KernelCheck> kernels;
  std::vector<std::string> switched_off;  // capabilities without which wrong kernels came right
  size_t count(CheckOutcome outcome) const;
  bool right() const;             // nothing wrong, nothing failed
  std::string complaint() const;  // the first thing wrong, one line; empty when right
};

struct SelfCheckOptions {
  bool quick = true;  // small sizes only
  uint64_t seed = 1;
  std::vector<std::string> kernels;                  // empty: all
  std::function<void(const std::string&)> progress;  // told each kernel's name as it starts
};

// Runs the kernels. A kernel that goes wrong is tried again without each capability that its code
// uses; one without which it is right stays switched off (Device::use_capabilities). Never throws
// for what a device does.
SelfCheck self_check(const Device& device, const SelfCheckOptions& options = {});

// The quick check, run once per device, driver and set of kernels and then remembered in the cache
// folder. Switches off what must be. Returns why the device must not be used; empty when it
// computes right.
std::string quick_self_check(const Device& device);

// Switches off what an earlier quick check on this device found broken. Runs nothing.
void apply_known_self_check(const Device& device);

}  // namespace prism
