// A calibration as a row of a table.
#pragma once

#include <string>
#include <vector>

#include "runtime/measure/calibrate.h"

namespace prism::cli {

std::vector<std::string> figures_heading();
std::vector<std::string> figures_row(const Device& device, const Calibration& figures);

}  // namespace prism::cli
