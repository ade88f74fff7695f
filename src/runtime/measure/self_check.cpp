// Runs the cases of the library's kernels on a device and finds broken capabilities.
#include "runtime/measure/self_check.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "lower/lower.h"
#include "prism/error.h"
#include "runtime/capability_switches.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_library.h"

namespace prism {
namespace {

void check_cases(const Device& device, const ir::Kernel& kernel,
                 const std::vector<KernelCase>& cases, KernelCheck& result) {
  for (const KernelCase& one : cases) {
    uint64_t bytes = 0;
    for (const auto& content : one.buffers) bytes += content.size();
    try {
      if (const uint64_t free = device.free_bytes(); bytes > free) {
        ++result.skipped_cases;
        result.detail = fmt::format("{}: needs {} bytes, {} free", one.name, bytes, free);
        continue;
      }
      ++result.cases;
      const std::string wrong = compare(one, kernel, run_case(device, kernel, one));
      if (wrong.empty()) continue;
      result.outcome = CheckOutcome::wrong;
      result.detail = fmt::format("{}: {}", one.name, wrong);
      return;
    } catch (const Error& error) {
      const bool skip =
          error.code() == ErrorCode::kOutOfMemory || error.code() == ErrorCode::kNotSupported;
      result.detail = fmt::format("{}: {}", one.name, error.what());
      if (!skip) {
        result.outcome = CheckOutcome::failed;
        return;
      }
      --result.cases;
      ++result.skipped_cases;
    } catch (const std::exception& error) {
      result.outcome = CheckOutcome::failed;
      result.detail = fmt::format("{}: {}", one.name, error.what());
      return;
    }
  }
  if (result.cases == 0) result.outcome = CheckOutcome::skipped;
}

// Finds one capability whose absence makes the kernel right, leaves it off and returns its name.
std::string find_broken_capability(const Device& device, const ir::Kernel& kernel,
                                   const std::vector<KernelCase>& cases, KernelCheck& result) {
  const ir::Capabilities original = device.info().capabilities;
  for (const std::string& name : switchable_capabilities(original)) {
    if (!capability_matters(kernel, original, name)) continue;
    ir::Capabilities reduced = original;
    switch_off_capability(reduced, name);
    device.use_capabilities(reduced);
    KernelCheck again;
    again.kernel = result.kernel;
    check_cases(device, kernel, cases, again);
    if (again.outcome == CheckOutcome::right) {
      again.detail = fmt::format("right without {} ({})", name, result.detail);
      result = again;
      return name;
    }
  }
  device.use_capabilities(original);
  return "";
}

// Compiles the kernels as one source if the device supports it, which is faster. Skips kernels that
// cannot be lowered; compile errors are reported when the kernel is checked.
void compile_together(const Device& device, const std::vector<const SampleKernel*>& entries) {
  std::vector<ir::Kernel> kernels;
  for (const SampleKernel* entry : entries) {
    try {
      const ir::Kernel kernel = entry->make();
      lower(kernel, device.info().capabilities);
      kernels.push_back(kernel);
    } catch (const Error&) {
    }
  }
  try {
    device.compile_together(kernels);
  } catch (const Error&) {
  }
}

}  // namespace

const char* outcome_name(CheckOutcome outcome) {
  switch (outcome) {
    case CheckOutcome::right:
      return "right";
    case CheckOutcome::wrong:
      return "wrong";
    case CheckOutcome::failed:
      return "failed";
    case CheckOutcome::skipped:
      return "skipped";
  }
  return "";
}

size_t SelfCheck::count(CheckOutcome outcome) const {
  return static_cast<size_t>(std::ranges::count(kernels, outcome, &KernelCheck::outcome));
}

bool SelfCheck::right() const {
  return count(CheckOutcome::wrong) + count(CheckOutcome::failed) == 0;
}

std::string SelfCheck::complaint() const {
  for (const KernelCheck& kernel : kernels) {
    if (kernel.outcome != CheckOutcome::wrong && kernel.outcome != CheckOutcome::failed) continue;
    const std::string line = kernel.detail.substr(0, kernel.detail.find('\n'));
    return fmt::format("{} {}: {}", kernel.kernel, outcome_name(kernel.outcome), line);
  }
  return "";
}

SelfCheck self_check(const Device& device, const SelfCheckOptions& options) {
  SelfCheck check;
  std::vector<const SampleKernel*> chosen;
  for (const SampleKernel& entry : sample_kernels())
    if (options.kernels.empty() || std::ranges::count(options.kernels, entry.name))
      chosen.push_back(&entry);
  compile_together(device, chosen);
  for (const SampleKernel* const each : chosen) {
    const SampleKernel& entry = *each;
    if (options.progress) options.progress(entry.name);
    const auto start = std::chrono::steady_clock::now();
    KernelCheck result;
    result.kernel = entry.name;
    const ir::Kernel kernel = entry.make();
    const std::vector<KernelCase> cases = entry.cases(options.seed, options.quick);
    check_cases(device, kernel, cases, result);
    if (result.outcome == CheckOutcome::wrong || result.outcome == CheckOutcome::failed) {
      const std::string broken = find_broken_capability(device, kernel, cases, result);
      if (!broken.empty()) check.switched_off.push_back(broken);
    }
    result.ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    check.kernels.push_back(std::move(result));
  }
  return check;
}

}  // namespace prism
