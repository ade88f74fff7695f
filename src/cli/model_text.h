// How the commands on models write sizes and progress.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace prism::cli {

std::string count_text(uint64_t number);  // "135 M", "7.24 B"

// A line with a bar on standard error, rewritten in place; on a terminal only.
void progress_bar(const std::string& label, uint64_t done, uint64_t all);

}  // namespace prism::cli
