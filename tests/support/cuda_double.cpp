// Environment, control functions and counters of the CUDA double.
#include "support/cuda_double.h"

#include <gtest/gtest.h>

#include "backends/cuda/cuda_backend.h"
#include "support/paths.h"
#include "support/shared_library.h"

namespace prism::test {
namespace {

std::string library() { return (binary_dir() / "doubles" / "libcuda_double.so").string(); }

const SharedLibrary& opened() {
  static const SharedLibrary shared(library());
  return shared;
}

}  // namespace

ScopedVariable::ScopedVariable(std::string name, const std::string& value)
    : name_(std::move(name)) {
  const char* before = std::getenv(name_.c_str());
  was_set_ = before != nullptr;
  if (before) before_ = before;
  setenv(name_.c_str(), value.c_str(), 1);
}

ScopedVariable::~ScopedVariable() {
  if (was_set_)
    setenv(name_.c_str(), before_.c_str(), 1);
  else
    unsetenv(name_.c_str());
}

CudaDouble::CudaDouble() {
  driver_ = std::make_unique<ScopedVariable>("PRISM_CUDA_LIBRARY", library());
  compiler_ = std::make_unique<ScopedVariable>("PRISM_NVRTC_LIBRARY", library());
  cache_ = std::make_unique<ScopedVariable>("PRISM_CACHE_DIR", (folder_.path() / "cache").string());
  set_ = opened().function<void(const char*)>("prism_cuda_double_set");
  count_ = opened().function<long long(const char*)>("prism_cuda_double_count");
  for (const char* what :
       {"allocations", "launches", "overlapped_launches", "graph_launches", "compiles",
        "module_loads", "overruns", "misuses", "live_allocations", "live_modules", "live_streams",
        "live_events", "live_graphs", "contexts"})
    start_[what] = count_(what);
  set("");
}

CudaDouble::~CudaDouble() { set_(""); }

void CudaDouble::set(const std::string& settings) { set_(settings.c_str()); }

long long CudaDouble::count(const std::string& what) {
  const auto start = start_.find(what);
  return count_(what.c_str()) - (start == start_.end() ? 0 : start->second);
}

Discovery CudaDouble::discover() { return make_cuda_backend()->discover(); }

Device CudaDouble::device() {
  const Discovery found = discover();
  if (found.devices.empty())
    throw std::runtime_error("the CUDA double offers no device: " + found.reason);
  return Device(found.devices[0], "the double");
}

int run_self(const std::string& test) {
  const ProcessResult result =
      run_process({std::filesystem::read_symlink("/proc/self/exe").string(),
                   "--gtest_filter=" + test, "--gtest_also_run_disabled_tests"});
  if (result.status != 0) ADD_FAILURE() << result.output;
  return result.status;
}

void CudaDouble::expect_clean() {
  for (const char* what : {"live_allocations", "live_modules", "live_streams", "live_events",
                           "live_graphs", "contexts", "overruns", "misuses"})
    EXPECT_EQ(count(what), 0) << what;
}

}  // namespace prism::test
