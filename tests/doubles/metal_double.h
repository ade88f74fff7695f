// A double of the Objective-C runtime and Metal for tests of the host side: memory is host memory,
// kernels are the printed text compiled by the host compiler, and tests can inject every failure of
// a real device.
//
// Work is deferred, as on a device: command buffers wait until something waits for them or has
// polled their status a few times. Errors that Metal's validation layer would report are counted as
// misuses; a message to a released object, or one its class does not know, ends the process.
#pragma once

#include <string>

// Settings are "name=value,name=value"; a call first resets all to their defaults. The variable
// PRISM_METAL_DOUBLE sets them at process start.
//   devices=1  memory=1073741824  max_buffer=1073741824
//   family=1008         the newest family: 1008 is Apple's eighth (M2), 2002 AMD and Intel in Macs
//   unified=1           whether the device shares the host's memory
//   macos=15            determines the supported messages
//   lanes=32            simdgroup size of a pipeline;  threads=1024: its largest group
//   fail=commandBuffer/2   the second such message from now returns nil (and an error)
//   crash=name          every such message crashes
//   fail_compile=1      every text is rejected
//   fail_commands=2/8   the second command buffer committed from now fails with that code; after
//                       11 (the device is gone) all others fail too
//   wrong_results=1     after each launch a bit of every buffer it changed is flipped
extern "C" void prism_metal_double_set(const char* settings);

// Counters since the start: allocations, wraps (buffers over borrowed memory), shared_bytes (of
// live wraps), live_bytes (of all live buffers), live_allocations (buffers), live_modules
// (libraries, functions, pipelines), live_streams (queues, command buffers, encoders),
// live_objects, launches, compiles, commits, overruns (writes outside a buffer), misuses;
// calls_NAME: of one message.
extern "C" long long prism_metal_double_count(const char* what);

namespace prism::test::metal_double {

struct Settings {
  int devices = 1;
  long long memory = 1ll << 30;
  long long max_buffer = 1ll << 30;
  int family = 1008;
  int unified = 1;
  int macos = 15;
  int lanes = 32;
  int threads = 1024;
  std::string fail_name, crash_name;
  int fail_nth = 0;
  int fail_compile = 0;
  int fail_commands = 0;
  int fail_code = 0;
  int wrong_results = 0;
};
Settings& settings();
long long& counter(const std::string& what);

}  // namespace prism::test::metal_double
