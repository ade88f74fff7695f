// A calibration as a device record.
#pragma once

#include <array>
#include <optional>

#include "runtime/device_records.h"
#include "runtime/measure/calibrate.h"

namespace prism {

struct CalibrationFigure {
  const char* name;
  double Calibration::*member;
};
inline constexpr std::array<CalibrationFigure, 5> kCalibrationFigures = {{
    {"bandwidth", &Calibration::bandwidth},
    {"f32_rate", &Calibration::f32_rate},
    {"f16_rate", &Calibration::f16_rate},
    {"launch_seconds", &Calibration::launch_seconds},
    {"host_copy", &Calibration::host_copy},
}};

DeviceRecord calibration_record(const Calibration& calibration);
// Absent if a figure is missing or is not a positive number.
std::optional<Calibration> parse_calibration(const DeviceRecord& record);

}  // namespace prism
