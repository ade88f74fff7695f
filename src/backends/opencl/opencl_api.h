// The OpenCL library, opened at run time: its function table and error codes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

// OpenCL 1.2 is the minimum, so its functions are used even where newer ones exist.
#ifndef CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#endif
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "base/handle.h"
#include "base/system/dynamic_library.h"
#include "prism/error.h"

namespace prism::opencl {

// All of these are part of OpenCL 1.2; a library that lacks one is too old.
// clang-format off
#define PRISM_OPENCL_FUNCTIONS(X)                                                                  \
  X(clGetPlatformIDs)                                                                              \
  X(clGetPlatformInfo)                                                                             \
  X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) X(clReleaseContext)                      \
      X(clCreateCommandQueue) X(clReleaseCommandQueue) X(clCreateBuffer)                           \
          X(clReleaseMemObject) X(clCreateProgramWithSource) X(clCreateProgramWithBinary)          \
              X(clBuildProgram) X(clReleaseProgram) X(clGetProgramInfo) X(clGetProgramBuildInfo)   \
                  X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) X(clGetKernelInfo)        \
                      X(clGetKernelWorkGroupInfo) X(clWaitForEvents) X(clGetEventInfo)             \
                          X(clReleaseEvent) X(clRetainEvent) X(clGetEventProfilingInfo) X(clFlush) \
                              X(clFinish) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer)           \
                                  X(clEnqueueFillBuffer) X(clEnqueueCopyBuffer)                    \
                                      X(clEnqueueNDRangeKernel) X(clEnqueueMarkerWithWaitList)     \
                                          X(clGetExtensionFunctionAddressForPlatform)
// clang-format on

struct Api {
#define PRISM_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  PRISM_OPENCL_FUNCTIONS(PRISM_OPENCL_MEMBER)
#undef PRISM_OPENCL_MEMBER

  std::string library;  // the name it was opened by
};

// Returns null and sets *reason if the library is missing or lacks a function of OpenCL 1.2.
std::shared_ptr<const Api> load_api(std::string* reason);

const char* code_name(cl_int code);  // "CL_INVALID_VALUE"; "unknown code" for others
// kOutOfMemory, kDeviceLost or kDriver, depending on the code.
ErrorCode error_code_of(cl_int code);
// what: "opencl:0 (name): enqueueing kernel add". Throws unless the code is CL_SUCCESS.
void check(cl_int code, std::string_view what);

// Device and platform queries that return a string, a number or a list.
std::string device_text(const Api& api, cl_device_id device, cl_device_info what);
std::string platform_text(const Api& api, cl_platform_id platform, cl_platform_info what);
template <class T>
T device_number(const Api& api, cl_device_id device, cl_device_info what, T otherwise = T{}) {
  T number{};
  return api.clGetDeviceInfo(device, what, sizeof(number), &number, nullptr) == CL_SUCCESS
             ? number
             : otherwise;
}
template <class T>
std::vector<T> device_list(const Api& api, cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (api.clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::vector<T> list(bytes / sizeof(T));
  if (list.empty() || api.clGetDeviceInfo(device, what, bytes, list.data(), nullptr) != CL_SUCCESS)
    return {};
  return list;
}

}  // namespace prism::opencl
