// The one exception type of Prism: a code a program can act on and a message a person can act on.
#pragma once

#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)

namespace prism {

enum class ErrorCode {
  kInvalidArgument,  // the caller's mistake: bad shape, bad name, bad option
  kInvalidKernel,    // a kernel that breaks a rule of the kernel language
  kNotSupported,     // the device cannot do it and it cannot be lowered
  kNotFound,         // no such device, kernel, file
  kOutOfMemory,      // an allocation failed
  kDeviceLost,       // the device stopped answering
  kDriver,           // a driver call failed
  kCompile,          // a device compiler refused a kernel
  kCorruptFile,      // a file is not what it should be
  kIo,               // reading or writing failed
};

const char* error_code_name(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace prism

#pragma GCC visibility pop
