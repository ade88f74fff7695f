// A double of NVIDIA's driver, NVRTC and cuBLASLt for tests of the host side: memory is host
// memory, kernels are the printed text compiled by the host compiler, and tests can inject every
// failure of a real device.
//
// Work is deferred, as on a device: copies and launches stay in their stream until something waits
// for them, so that host memory reused too early is detected. Handles, ranges and contexts are
// checked.
#pragma once

#include <cstdint>
#include <string>

// Settings are "name=value,name=value"; a call first resets all to their defaults. The variable
// PRISM_CUDA_DOUBLE sets them at process start.
//   init=803            cuInit returns this result
//   driver=12040        the CUDA version of the driver
//   devices=1  capability=90  memory=1073741824  prohibited=0
//   fail_allocation=3   the third allocation from now fails
//   lose_launch=2       the second launch from now is an illegal access (a graph counts as one);
//                       afterwards every call fails
//   refuse_launch=1     the first launch from now fails with "invalid value"
//   refuse_module=1     the first binary loaded from now is rejected
//   wrong_results=1     after each launch a bit of every buffer it changed is flipped
//   fail_compile=1      NVRTC rejects every text
//   nvrtc=12090         the version of NVRTC;  oldest=50 newest=120: its supported architectures
extern "C" void prism_cuda_double_set(const char* settings);

// Counters since the start: allocations, live_allocations, live_bytes, contexts (now retained),
// live_modules, live_streams, live_events, live_graphs, launches, overlapped_launches,
// graph_launches, stream_waits, compiles, module_loads, products (of cuBLASLt), overruns (writes
// outside an allocation), misuses (calls with undefined behaviour in a real driver).
extern "C" long long prism_cuda_double_count(const char* what);

namespace prism::test::cuda_double {

struct Settings {
  int init = 0;
  int driver = 13000;
  int devices = 1;
  int capability = 90;
  long long memory = 1ll << 30;
  int prohibited = 0;
  int fail_allocation = 0;
  int lose_launch = 0;
  int refuse_launch = 0;
  int refuse_module = 0;
  int wrong_results = 0;
  int fail_compile = 0;
  int nvrtc = 12090;
  int oldest = 50;
  int newest = 120;
};
Settings& settings();
long long& counter(const std::string& what);

inline constexpr char kBinaryMagic[] = "cubin of the CUDA double\n";

}  // namespace prism::test::cuda_double
