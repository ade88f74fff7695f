// How fast a device is: a second or two of measurement, kept in the cache folder per device and
// driver.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "prism/device.h"

namespace prism {

struct Calibration {
  double bandwidth = 0;  // bytes per second read and written by a copy kernel
  double f32_rate = 0;   // floating point operations per second of a tiled f32 product
  double f16_rate = 0;   // the same of an f16 product by fragments (lowered where there are none)
  double launch_seconds = 0;  // one tiny kernel of a replayed recording
  double host_copy = 0;       // bytes per second between host and device, both ways
};

// Measures and remembers. progress: told what is being measured. Throws what the device throws.
Calibration calibrate(const Device& device,
                      const std::function<void(const std::string&)>& progress = {});

// What an earlier calibration of this device with this driver gave.
std::optional<Calibration> known_calibration(const DeviceInfo& info);

// The calibration of the CPU is that of the interpreter. What its native kernels reach is measured
// where they are (ops/bench/op_bench.h) and kept here beside it.
void keep_native_calibration(const DeviceInfo& info, const Calibration& calibration);
std::optional<Calibration> known_native_calibration(const DeviceInfo& info);

// Seconds of a reference piece of that work, computed from the measurements.
double reference_seconds(const Calibration& calibration, Work work);

}  // namespace prism
