// Translation of driver result codes to errors.
#include "backends/gpu_runtime/gpu_api.h"

namespace prism::gpu {

bool is_sticky(Result result) {
  switch (result) {
    case kDeviceUnavailable:
    case 214:  // uncorrectable ECC error
    case 220:  // uncorrectable NVLink error
    case 226:  // contained memory error
    case 700:  // illegal address
    case 702:  // a kernel exceeded the watchdog's limit
    case 709:  // the context is destroyed
    case 710:  // assert in a kernel
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
    case 721:  // tensor memory leak
    case kUnknown:
      return true;
    default:
      return false;
  }
}

Error driver_error(const Api& api, Result result, const std::string& what) {
  ErrorCode code = ErrorCode::kDriver;
  if (is_sticky(result)) code = ErrorCode::kDeviceLost;
  if (result == kOutOfMemoryResult) code = ErrorCode::kOutOfMemory;
  std::string message = what + ": " + api.words(result);
  if (code == ErrorCode::kDeviceLost)
    message += "; the device cannot be used any more in this process";
  return Error(code, message);
}

}  // namespace prism::gpu
