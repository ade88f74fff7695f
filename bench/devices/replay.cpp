// Replay of 1,000 recorded dependent tiny kernels, and the load time of a kernel from the disk
// cache.
#include <chrono>

#include "bench.h"
#include "prism/error.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_kernels.h"
#include "sample_kernels/sample_library.h"

namespace prism::bench {

Line bench_replay(const Device& device) {
  constexpr uint32_t kLaunches = 1000, kLanes = 4096;
  const DeviceInfo& info = device.info();
  const Program program = device.compile(kernels::increment());
  const Buffer y = device.upload(std::vector<uint32_t>(kLanes, 0));
  Queue& queue = device.queue();
  const CommandGraph recording = queue.record([&] {
    for (uint32_t i = 0; i < kLaunches; ++i) queue.launch(program, 1, {y});
  });
  const double seconds = seconds_each(
                             queue, [&] { queue.replay(recording); }, 0.05) /
                         kLaunches;

  Line line;
  line.device = device.id();
  line.what = "replay of 1,000 dependent tiny kernels";
  line.unit = "us each";
  line.less_is_better = true;
  line.figure = seconds * 1e6;
  if (!info.software && !info.is_cpu) {
    if (info.backend == "cuda") line.floor = 1;
    if (info.backend == "vulkan") line.floor = 5;
  }
  return line;
}

Line bench_load(const Device& device) {
  // Once to fill the disk cache; then as in a new process, with an empty memory cache.
  double total_ms = 0;
  uint32_t kernels = 0;
  for (const bool warm : {false, true}) {
    device.use_capabilities(device.info().capabilities);  // clears the programs in memory
    for (const SampleKernel& entry : sample_kernels()) {
      const ir::Kernel kernel = entry.make();
      const auto start = std::chrono::steady_clock::now();
      try {
        device.compile(kernel);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kNotSupported) throw;
        continue;
      }
      if (!warm) continue;
      total_ms +=
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count();
      ++kernels;
    }
  }
  Line line;
  line.device = device.id();
  line.what = "warm load of a library kernel, mean";
  line.unit = "ms";
  line.less_is_better = true;
  line.figure = kernels ? total_ms / kernels : 0;
  line.floor = 5;
  return line;
}

}  // namespace prism::bench
