// A double of ROCm's HIP runtime and hiprtc for tests of the host side. Every call is passed to its
// CUDA counterpart: that of the CUDA double, where kernels are the printed HIP text compiled by the
// host compiler; or, when forwarding, NVIDIA's driver and NVRTC, so that the HIP backend runs on a
// real card.
//
// See cuda_double.h for deferred work and checks. On a machine with an NVIDIA card:
//   export PRISM_HIP_DOUBLE=forward=1 PRISM_HIP_LIBRARY=build/doubles/libhip_double.so
//   export PRISM_HIPRTC_LIBRARY=$PRISM_HIP_LIBRARY PRISM_FORWARD_NVRTC_LIBRARY=libnvrtc.so.12
//   prism check --device hip
#pragma once

#include <string>

// Settings are "name=value,name=value"; a call first resets all to their defaults. The variable
// PRISM_HIP_DOUBLE sets them at process start. Settings of the CUDA double work too (devices,
// memory, fail_allocation, lose_launch, refuse_launch, refuse_module, wrong_results, fail_compile).
//   gfx=1030           the chip, which determines the wave: 64 lanes before gfx1000, else 32
//   hip=60200000       the version of the runtime: 6.2;  hiprtc=602: of the compiler
//   refuse_chip=1      hiprtc rejects the chip
//   no_binary=1        the runtime rejects every module: hipErrorNoBinaryForGpu
//   crash=hipInit      every call of that function crashes
//   fail=hipMalloc:2:719   the second call of that function from now returns 719
//   forward=1          calls go to libcuda.so.1, texts to NVRTC; only at process start
extern "C" void prism_hip_double_set(const char* settings);

// Counters of the CUDA double, and calls_NAME: how often a function was called.
extern "C" long long prism_hip_double_count(const char* what);

// The forwarded form of a printed text; valid until the thread's next call.
extern "C" const char* prism_hip_double_forwarded(const char* text);

namespace prism::test::hip_double {

struct Settings {
  std::string gfx = "gfx1030";
  int hip = 60200000;
  int hiprtc = 602;
  int refuse_chip = 0;
  int no_binary = 0;
  std::string crash_name;
  bool forward = false;
  std::string architecture = "sm_90";  // of the CUDA counterpart
  std::string fail_name;
  int fail_nth = 0;
  int fail_result = 0;
};
Settings& settings();

// Counts a call; returns the requested error, else 0.
int told_to_fail(const char* name);

// The printed HIP text as CUDA, after a prelude that maps clang's AMD builtins to NVIDIA's.
std::string forwarded_text(const std::string& text);

}  // namespace prism::test::hip_double
