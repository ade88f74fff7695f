// A double of ROCm's HIP runtime and of hiprtc for tests of the host side: every call is handed to
// its CUDA twin, which is that of the CUDA double, so that kernels are the printed HIP text
// compiled by the host compiler; or, by forwarding, NVIDIA's own driver and NVRTC, so that the HIP
// backend runs on a real card.
//
// See use_cuda_double.h for how work is done late and what is checked. On a machine with an NVIDIA
// card:
//   export PRISM_HIP_DOUBLE=forward=1 PRISM_HIP_LIBRARY=build/doubles/libhip_double.so
//   export PRISM_HIPRTC_LIBRARY=$PRISM_HIP_LIBRARY PRISM_FORWARD_NVRTC_LIBRARY=libnvrtc.so.12
//   prism check --device hip
#pragma once

#include <string>

// Settings are "name=value,name=value"; a call first puts all back to their defaults. The same text
// in the variable PRISM_HIP_DOUBLE holds from the start of a process. Those of the CUDA double hold
// too (devices, memory, fail_allocation, lose_launch, refuse_launch, refuse_module, wrong_results,
// fail_compile).
//   gfx=1030           the chip, and with it the wave: 64 lanes before gfx1000, else 32
//   hip=60200000       the version of the runtime: 6.2;  hiprtc=602: of the compiler
//   refuse_chip=1      hiprtc refuses the chip
//   no_binary=1        the runtime refuses every module: hipErrorNoBinaryForGpu
//   crash=hipInit      every call of that function crashes
//   fail=hipMalloc:2:719   the second call from now of that function gives result 719
//   forward=1          each call goes to libcuda.so.1, texts to NVRTC; only at a process's start
extern "C" void prism_hip_double_set(const char* settings);

// Counters of the CUDA double, and calls_NAME: how often a function was called.
extern "C" long long prism_hip_double_count(const char* what);

// What forwarding makes of a printed text; holds until the thread's next call.
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
  std::string architecture = "sm_90";  // of the twin
  std::string fail_name;
  int fail_nth = 0;
  int fail_result = 0;
};
Settings& settings();

// Counts a call; the result it was told to fail with, else 0.
int told_to_fail(const char* name);

// The printed HIP text as CUDA, behind a prelude that gives clang's builtins for AMD's chips as
// NVIDIA's.
std::string forwarded_text(const std::string& text);

}  // namespace prism::test::hip_double
