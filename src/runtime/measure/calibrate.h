// Calibration: measures a device's speed in a second or two and keeps it in the cache folder, per
// device and driver.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "prism/device.h"

namespace prism {

struct Calibration {
  double bandwidth = 0;  // bytes per second read and written by a copy kernel
  double f32_rate = 0;   // floating point operations per second of a tiled f32 product
  double f16_rate = 0;   // the same for an f16 product with fragments (lowered without hardware)
  double launch_seconds = 0;  // one tiny kernel of a replayed recording
  double host_copy = 0;       // bytes per second between host and device, both ways
};

// Measures the device and stores the result. progress receives the name of each measurement. Throws
// the device's errors.
Calibration calibrate(const Device& device,
                      const std::function<void(const std::string&)>& progress = {});

// Returns the stored calibration of this device with this driver.
std::optional<Calibration> known_calibration(const DeviceInfo& info);

// calibrate() measures the interpreter on the CPU. ops/bench/op_bench.h measures the CPU's native
// kernels; these functions store that result separately.
void keep_native_calibration(const DeviceInfo& info, const Calibration& calibration);
std::optional<Calibration> known_native_calibration(const DeviceInfo& info);

// Returns the seconds for a reference amount of that work, computed from the measurements.
double reference_seconds(const Calibration& calibration, Work work);

}  // namespace prism
