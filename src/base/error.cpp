// Error, and the names of its codes as shown in JSON and reports. Its members are here so that the
// files which throw it stay small.
#include "prism/error.h"

namespace prism {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kInvalidKernel:
      return "invalid_kernel";
    case ErrorCode::kNotSupported:
      return "not_supported";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kOutOfMemory:
      return "out_of_memory";
    case ErrorCode::kDeviceLost:
      return "device_lost";
    case ErrorCode::kDriver:
      return "driver";
    case ErrorCode::kCompile:
      return "compile";
    case ErrorCode::kCorruptFile:
      return "corrupt_file";
    case ErrorCode::kIo:
      return "io";
  }
  return "unknown";
}

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(message), code_(code) {}

Error::~Error() = default;

}  // namespace prism
