// DriverDouble: replaces a real driver by its double for one test, with its own cache folder.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "prism/device.h"
#include "runtime/driver.h"
#include "support/run_program.h"
#include "support/scoped_variable.h"

namespace prism::test {

// Runs one disabled test of this program in a process of its own; returns its exit status, and
// fails the running test with its output when that is not 0.
int run_self(const std::string& test);

class DriverDouble {
 public:
  // name: "cuda", of doubles/libcuda_double.so; variables: those that name its libraries.
  DriverDouble(const std::string& name, const std::vector<std::string>& variables,
               std::unique_ptr<Backend> (*make_backend)());
  ~DriverDouble();

  static std::string library(const std::string& name);
  void set(const std::string& settings);     // see tests/doubles/NAME_double.h
  long long count(const std::string& what);  // since this object was created
  Discovery discover();                      // with a new backend
  Device device();  // a new one, as in a new process; fails the test if there is none
  const std::filesystem::path& folder() const { return folder_.path(); }
  ScopedVariable variable(const std::string& name, const std::string& value) {
    return ScopedVariable(name, value);
  }
  // Expects no leaked allocations, no out-of-bounds writes and no undefined calls.
  void expect_clean();

 private:
  std::string name_;
  std::unique_ptr<Backend> (*make_backend_)();
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<ScopedVariable>> variables_;
  void (*set_)(const char*) = nullptr;
  long long (*count_)(const char*) = nullptr;
  std::map<std::string, long long> start_;
};

}  // namespace prism::test
