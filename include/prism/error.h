// Error, Prism's only exception type: a code for the program and a message for the user.
#pragma once

#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)

namespace prism {

enum class ErrorCode {
  kInvalidArgument,  // caller error: bad shape, name or option
  kInvalidKernel,    // a kernel violates a rule of the kernel language
  kNotSupported,     // the device lacks a feature that cannot be lowered
  kNotFound,         // no such device, kernel, file
  kOutOfMemory,      // an allocation failed
  kDeviceLost,       // the device stopped answering
  kDriver,           // a driver call failed
  kCompile,          // a device compiler rejected a kernel
  kCorruptFile,      // a file's contents are invalid
  kIo,               // reading or writing failed
};

const char* error_code_name(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace prism

#pragma GCC visibility pop
