// Writes and parses the figures of a calibration.
#include "runtime/measure/calibration_record.h"

#include <cmath>
#include <locale>
#include <sstream>

#include <fmt/format.h>

namespace prism {

DeviceRecord calibration_record(const Calibration& calibration) {
  DeviceRecord record;
  for (const CalibrationFigure& figure : kCalibrationFigures)
    record[figure.name] = fmt::format("{:.6g}", calibration.*figure.member);
  return record;
}

std::optional<Calibration> parse_calibration(const DeviceRecord& record) {
  Calibration calibration;
  for (const CalibrationFigure& figure : kCalibrationFigures) {
    const auto found = record.find(figure.name);
    if (found == record.end()) return std::nullopt;
    std::istringstream text(found->second);
    text.imbue(std::locale::classic());
    double& value = calibration.*figure.member;
    if (!(text >> value) || !text.eof() || !std::isnormal(value) || value < 0) return std::nullopt;
  }
  return calibration;
}

}  // namespace prism
