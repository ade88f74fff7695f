// The self-check: runs the library's kernels on a device and compares the results with float64
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
  std::string detail;          // the wrong element, the error, or why cases were skipped
  uint32_t cases = 0;          // cases that ran
  uint32_t skipped_cases = 0;  // not enough memory, or a missing capability
  double ms = 0;               // host time of all cases, compiling included
};

struct SelfCheck {
  std::vector<KernelCheck> kernels;
  std::vector<std::string> switched_off;  // capabilities whose absence made wrong kernels right
  size_t count(CheckOutcome outcome) const;
  bool right() const;             // nothing wrong, nothing failed
  std::string complaint() const;  // the first problem in one line; empty when right
};

struct SelfCheckOptions {
  bool quick = true;  // small sizes only
  uint64_t seed = 1;
  std::vector<std::string> kernels;                  // empty: all
  std::function<void(const std::string&)> progress;  // receives each kernel's name as it starts
};

// Runs the kernels. A wrong kernel is retried without each capability that its code uses; if it
// becomes right, that capability stays switched off (Device::use_capabilities). Never throws for a
// device's failure.
SelfCheck self_check(const Device& device, const SelfCheckOptions& options = {});

// Runs the quick check once per device, driver and set of kernels and stores the result in the
// cache folder. Switches off broken capabilities. Returns why the device must not be used, or an
// empty text when it computes right.
std::string quick_self_check(const Device& device);

// Switches off the capabilities that an earlier quick check found broken. Runs no kernel.
void apply_known_self_check(const Device& device);

}  // namespace prism
