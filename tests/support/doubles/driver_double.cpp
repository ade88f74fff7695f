// Environment, control functions and counters of the doubles.
#include "support/doubles/driver_double.h"

#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/shared_library.h"

namespace prism::test {
namespace {

const SharedLibrary& opened(const std::string& name) {
  static std::map<std::string, std::unique_ptr<SharedLibrary>> libraries;
  auto& library = libraries[name];
  if (!library) library = std::make_unique<SharedLibrary>(DriverDouble::library(name));
  return *library;
}

}  // namespace

std::string DriverDouble::library(const std::string& name) {
  return (binary_dir() / "doubles" / ("lib" + name + "_double.so")).string();
}

DriverDouble::DriverDouble(const std::string& name, const std::vector<std::string>& variables,
                           std::unique_ptr<Backend> (*make_backend)())
    : name_(name), make_backend_(make_backend) {
  for (const std::string& variable : variables)
    variables_.push_back(std::make_unique<ScopedVariable>(variable, library(name)));
  variables_.push_back(
      std::make_unique<ScopedVariable>("PRISM_CACHE_DIR", (folder_.path() / "cache").string()));
  set_ = opened(name).function<void(const char*)>(("prism_" + name + "_double_set").c_str());
  count_ =
      opened(name).function<long long(const char*)>(("prism_" + name + "_double_count").c_str());
  for (const char* what :
       {"allocations", "launches", "overlapped_launches", "graph_launches", "compiles",
        "module_loads", "overruns", "misuses", "live_allocations", "live_modules", "live_streams",
        "live_events", "live_graphs", "contexts"})
    start_[what] = count_(what);
  set("");
}

DriverDouble::~DriverDouble() { set_(""); }

void DriverDouble::set(const std::string& settings) { set_(settings.c_str()); }

long long DriverDouble::count(const std::string& what) {
  const auto start = start_.find(what);
  return count_(what.c_str()) - (start == start_.end() ? 0 : start->second);
}

Discovery DriverDouble::discover() { return make_backend_()->discover(); }

Device DriverDouble::device() {
  const Discovery found = discover();
  if (found.devices.empty())
    throw std::runtime_error("the double of " + name_ + " offers no device: " + found.reason);
  return Device(found.devices[0], "the double");
}

int run_self(const std::string& test) {
  const ProcessResult result =
      run_process({std::filesystem::read_symlink("/proc/self/exe").string(),
                   "--gtest_filter=" + test, "--gtest_also_run_disabled_tests"});
  if (result.status != 0) ADD_FAILURE() << result.output;
  return result.status;
}

void DriverDouble::expect_clean() {
  for (const char* what : {"live_allocations", "live_modules", "live_streams", "live_events",
                           "live_graphs", "overruns", "misuses"})
    EXPECT_EQ(count(what), 0) << what;
  // HIP's contexts belong to the runtime and stay alive.
  if (name_ == "cuda") {
    EXPECT_EQ(count("contexts"), 0);
  }
}

}  // namespace prism::test
