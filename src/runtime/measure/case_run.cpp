// Uploads, launches and times the cases of library kernels.
#include "runtime/measure/case_run.h"

#include <algorithm>
#include <chrono>

namespace prism {

std::vector<ParamValue> case_params(const ir::Kernel& kernel, const KernelCase& one) {
  std::vector<ParamValue> params;
  for (size_t i = 0; i < one.params.size(); ++i) {
    ParamValue value(one.params[i]);
    if (i < kernel.params.size()) value.type = kernel.params[i].type;
    params.push_back(value);
  }
  return params;
}

std::vector<Buffer> upload_case(const Device& device, const KernelCase& one) {
  std::vector<Buffer> buffers;
  for (const auto& content : one.buffers) buffers.push_back(device.upload(content));
  return buffers;
}

Contents run_case(const Device& device, const ir::Kernel& kernel, const KernelCase& one) {
  const Program program = device.compile(kernel);
  const std::vector<Buffer> buffers = upload_case(device, one);
  device.queue().launch(program, one.groups, buffers, case_params(kernel, one));
  device.queue().wait();
  Contents contents;
  for (const Buffer& buffer : buffers) contents.push_back(device.download<std::byte>(buffer));
  return contents;
}

double seconds_each(Queue& queue, const std::function<void()>& work, double min_seconds) {
  using Clock = std::chrono::steady_clock;
  work();
  queue.wait();
  double best = 0;
  uint32_t calls = 1;
  for (int run = 0; run < 3;) {
    const auto start = Clock::now();
    const Event first = queue.record_event();
    for (uint32_t i = 0; i < calls; ++i) work();
    const Event last = queue.record_event();
    queue.wait();
    const double wall = std::chrono::duration<double>(Clock::now() - start).count();
    // A device without its own clock returns 0; use the host's clock then.
    const double timed = last.ms_since(first) * 1e-3;
    const double seconds = timed > 0 ? timed : wall;
    if (run == 0 && wall < min_seconds && calls < (1u << 20)) {
      const double factor = wall > 0 ? min_seconds / wall * 1.2 : 16;
      calls = static_cast<uint32_t>(calls * std::clamp(factor, 2.0, 16.0));
      continue;
    }
    const double each = seconds / calls;
    best = run == 0 ? each : std::min(best, each);
    ++run;
  }
  return best;
}

}  // namespace prism
