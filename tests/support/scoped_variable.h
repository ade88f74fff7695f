// ScopedVariable: changes an environment variable while it lives.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace prism::test {

class ScopedVariable {
 public:
  ScopedVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (before_)
      setenv(name_.c_str(), before_->c_str(), 1);
    else
      unsetenv(name_.c_str());
  }
  ScopedVariable(ScopedVariable&&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace prism::test
