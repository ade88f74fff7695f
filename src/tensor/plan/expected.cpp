// The cost model of plan steps: memory traffic, arithmetic and launch cost.
#include "tensor/plan/expected.h"

#include <algorithm>

#include "runtime/measure/calibrate.h"

namespace prism {

namespace {

// Products of narrow or quantised operands run at the f16 rate.
bool multiplies_narrow(const PlanStep& step) {
  return std::ranges::any_of(step.inputs, [](const DeviceView& view) {
    return view.type.is_block() || view.type == ElementType(DType::f16) ||
           view.type == ElementType(DType::bf16);
  });
}

}  // namespace

std::optional<double> expected_seconds(const PlanStep& step) {
  const auto bytes = static_cast<double>(step.bytes());
  if (step.kind == PlanStep::Kind::copy) {
    // bytes() counts both ends of a copy; either end may be the host.
    double seconds = 0;
    for (const Device& device : {step.device, step.from}) {
      if (!device || device.info().is_cpu) continue;
      const auto known = known_calibration(device.info());
      if (!known) return std::nullopt;
      seconds += bytes / 2 / known->host_copy;
    }
    return seconds;
  }
  const auto known = step.kind == PlanStep::Kind::host
                         ? known_native_calibration(step.device.info())
                         : known_calibration(step.device.info());
  if (!known) return std::nullopt;
  const double operations = step.op ? step.op->operations(step.inputs, step.outputs) : 0;
  const double rate = multiplies_narrow(step) ? known->f16_rate : known->f32_rate;
  return std::max(bytes / known->bandwidth, operations / rate) +
         static_cast<double>(step.launches.size()) * known->launch_seconds;
}

}  // namespace prism
