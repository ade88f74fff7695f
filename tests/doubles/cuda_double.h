// A double of NVIDIA's driver, of NVRTC and of cuBLASLt for tests of the host side: memory is host
// memory, kernels are the printed text compiled by the host compiler, and every failure a real
// device can have may be asked for.
//
// Work is done late, as on a device: copies and launches wait in their stream until something waits
// for them, so that host memory reused too early is seen by the test. Handles, ranges and contexts
// are checked.
#pragma once

#include <cstdint>
#include <string>

// Settings are "name=value,name=value"; a call first puts all back to their defaults. The same text
// in the variable PRISM_CUDA_DOUBLE holds from the start of a process.
//   init=803            cuInit gives this result
//   driver=12040        the CUDA version of the driver
//   devices=1  capability=90  memory=1073741824  prohibited=0
//   fail_allocation=3   the third allocation from now finds no memory
//   lose_launch=2       the second launch from now is an illegal access (a graph counts as one);
//                       from then on nothing works
//   refuse_launch=1     the first launch from now is refused with "invalid value"
//   refuse_module=1     the first binary loaded from now is refused
//   wrong_results=1     after each launch a bit of every buffer it changed is flipped
//   fail_compile=1      NVRTC refuses every text
//   nvrtc=12090         the version of NVRTC;  oldest=50 newest=120: the architectures it knows
extern "C" void prism_cuda_double_set(const char* settings);

// What was done since the start: allocations, live_allocations, live_bytes, contexts (now
// retained), live_modules, live_streams, live_events, live_graphs, launches, overlapped_launches,
// graph_launches, compiles, module_loads, products (of cuBLASLt), overruns (writes beside an
// allocation), misuses (calls a real driver would call undefined).
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
