// Opens the OpenCL loader and translates its error codes.
#include "backends/opencl/opencl_api.h"

#include <fmt/format.h>

namespace prism::opencl {
namespace {

// clang-format off
#define PRISM_OPENCL_CODES(X)                                                                     \
  X(CL_SUCCESS) X(CL_DEVICE_NOT_FOUND) X(CL_DEVICE_NOT_AVAILABLE) X(CL_COMPILER_NOT_AVAILABLE)    \
  X(CL_MEM_OBJECT_ALLOCATION_FAILURE) X(CL_OUT_OF_RESOURCES) X(CL_OUT_OF_HOST_MEMORY)             \
  X(CL_PROFILING_INFO_NOT_AVAILABLE) X(CL_MEM_COPY_OVERLAP) X(CL_BUILD_PROGRAM_FAILURE)           \
  X(CL_MISALIGNED_SUB_BUFFER_OFFSET) X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)              \
  X(CL_INVALID_VALUE) X(CL_INVALID_PLATFORM) X(CL_INVALID_DEVICE) X(CL_INVALID_CONTEXT)           \
  X(CL_INVALID_QUEUE_PROPERTIES) X(CL_INVALID_COMMAND_QUEUE) X(CL_INVALID_MEM_OBJECT)             \
  X(CL_INVALID_BINARY) X(CL_INVALID_BUILD_OPTIONS) X(CL_INVALID_PROGRAM)                          \
  X(CL_INVALID_PROGRAM_EXECUTABLE) X(CL_INVALID_KERNEL_NAME) X(CL_INVALID_KERNEL)                 \
  X(CL_INVALID_ARG_INDEX) X(CL_INVALID_ARG_VALUE) X(CL_INVALID_ARG_SIZE)                          \
  X(CL_INVALID_KERNEL_ARGS) X(CL_INVALID_WORK_GROUP_SIZE) X(CL_INVALID_WORK_ITEM_SIZE)            \
  X(CL_INVALID_EVENT_WAIT_LIST) X(CL_INVALID_EVENT) X(CL_INVALID_OPERATION)                       \
  X(CL_INVALID_BUFFER_SIZE) X(CL_INVALID_GLOBAL_WORK_SIZE) X(CL_PLATFORM_NOT_FOUND_KHR)
// clang-format on

std::vector<std::string> library_names() {
#if defined(_WIN32)
  return {"OpenCL.dll"};
#elif defined(__APPLE__)
  return {"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
  return {"libOpenCL.so.1", "libOpenCL.so"};
#endif
}

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

std::shared_ptr<const Api> load_api(std::string* reason) {
  DynamicLibrary library = DynamicLibrary::open_first(library_names());
  if (!library) {
    *reason = library_names().front() + " was not found";
    return nullptr;
  }
  auto api = std::make_shared<Api>();
  api->library = library.name();
  const char* missing = nullptr;
#define PRISM_OPENCL_LOAD(name)                             \
  api->name = library.function<decltype(api->name)>(#name); \
  if (!api->name && !missing) missing = #name;
  PRISM_OPENCL_FUNCTIONS(PRISM_OPENCL_LOAD)
#undef PRISM_OPENCL_LOAD
  if (missing) {
    *reason = fmt::format("{} lacks {} and is older than OpenCL 1.2", library.name(), missing);
    return nullptr;
  }
  // Driver threads outlive their last handle, so the library must stay loaded.
  library.keep_open();
  return api;
}

const char* code_name(cl_int code) {
  switch (code) {
#define PRISM_OPENCL_CODE(name) \
  case name:                    \
    return #name;
    PRISM_OPENCL_CODES(PRISM_OPENCL_CODE)
#undef PRISM_OPENCL_CODE
    default:
      return "unknown code";
  }
}

ErrorCode error_code_of(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
      return ErrorCode::kOutOfMemory;
    case CL_DEVICE_NOT_AVAILABLE:
      return ErrorCode::kDeviceLost;
    default:
      return ErrorCode::kDriver;
  }
}

void check(cl_int code, std::string_view what) {
  if (code == CL_SUCCESS) return;
  throw Error(error_code_of(code),
              fmt::format("{}: the driver answered {} ({})", what, code_name(code), code));
}

std::string device_text(const Api& api, cl_device_id device, cl_device_info what) {
  const std::vector<char> text = device_list<char>(api, device, what);
  return without_end(std::string(text.begin(), text.end()));
}

std::string platform_text(const Api& api, cl_platform_id platform, cl_platform_info what) {
  size_t bytes = 0;
  if (api.clGetPlatformInfo(platform, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0)
    return "";
  std::string text(bytes, '\0');
  if (api.clGetPlatformInfo(platform, what, bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  return without_end(text);
}

}  // namespace prism::opencl
