// A run-time compiler with NVRTC's interface, which hiprtc shares under its own names.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/system/dynamic_library.h"

namespace prism::gpu {

// The result of a compilation.
struct Compiled {
  std::vector<std::byte> binary;  // empty on failure
  std::string log;
};

class RunTimeCompiler {
 public:
  // prefix: "nvrtc". Returns false if the library lacks a function or does not report its version.
  bool open(DynamicLibrary library, const std::string& prefix);

  const DynamicLibrary& library() const { return library_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  std::string version_text() const { return std::to_string(major_) + "." + std::to_string(minor_); }

  // output: the kind of binary to fetch, "CUBIN", "PTX" or "Code".
  Compiled compile(const std::string& text, const std::string& file,
                   const std::vector<const char*>& options, const std::string& output) const;

 private:
  using Program = struct ProgramTag*;

  DynamicLibrary library_;
  std::string prefix_;
  int major_ = 0, minor_ = 0;
  const char* (*error_text_)(int) = nullptr;
  int (*create_)(Program*, const char* text, const char* name, int, const char* const*,
                 const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
};

}  // namespace prism::gpu
