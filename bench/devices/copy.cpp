// Benchmarks a copy kernel against the queue's device-to-device copy.
#include <algorithm>

#include "bench.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::bench {

Line bench_copy(const Device& device) {
  const DeviceInfo& info = device.info();
  // Far larger than any cache on a card; on the host's cores that would only take long.
  const bool host = info.software || info.is_cpu;
  const uint64_t bytes =
      std::min<uint64_t>(host ? 64ull << 20 : 1ull << 30, device.free_bytes() / 4);
  const auto count = static_cast<uint32_t>(bytes / 16);
  const ir::Kernel kernel = kernels::copy_words();
  const Program program = device.compile(kernel);
  const Buffer from = device.allocate(bytes), to = device.allocate(bytes);
  Queue& queue = device.queue();
  const uint32_t groups = (count + kernel.group_size - 1) / kernel.group_size;
  const double ours = seconds_each(
      queue,
      [&] {
        queue.launch(program, groups, {from, to}, {count});
      },
      0.1);
  const double theirs = seconds_each(
      queue, [&] { queue.copy(to, from, bytes); }, 0.1);

  Line line;
  line.device = device.id();
  line.what = "copy kernel";
  line.unit = "GB/s";
  line.figure = 2.0 * static_cast<double>(bytes) / ours * 1e-9;
  line.peer = "the queue's own copy";
  line.peer_figure = 2.0 * static_cast<double>(bytes) / theirs * 1e-9;
  if (!host) line.floor = info.backend == "cuda" ? 0.95 : 0.90;
  return line;
}

}  // namespace prism::bench
