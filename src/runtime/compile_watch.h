// Reports when kernels are being compiled, so that a program can explain a long wait. The library
// itself prints nothing.
#pragma once

#include <functional>
#include <string>

namespace prism {

struct CompileWatch {
  std::function<void(const std::string& device)> begins;
  std::function<void()> ends;
};

// Replaces the watch. Its functions are called by the thread that compiles, in pairs.
void set_compile_watch(CompileWatch watch);

// Reports one compilation while it lives.
class CompileReport {
 public:
  explicit CompileReport(const std::string& device);
  ~CompileReport();
  CompileReport(const CompileReport&) = delete;
  CompileReport& operator=(const CompileReport&) = delete;

 private:
  std::function<void()> ends_;
};

}  // namespace prism
