// Puts the double of a driver in the place of the real one for one test, in a cache folder of its
// own.
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
  long long count(const std::string& what);  // since this object was made
  Discovery discover();                      // by a backend of its own
  Device device();  // a fresh one, as a new process has; fails the test when there is none
  const std::filesystem::path& folder() const { return folder_.path(); }
  ScopedVariable variable(const std::string& name, const std::string& value) {
    return ScopedVariable(name, value);
  }
  // Nothing is left allocated, nothing was written beside a buffer, no call was undefined.
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
