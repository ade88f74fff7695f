// How the commands on models write sizes and progress.
#pragma once

#include <cstdint>
#include <string>

namespace prism::cli {

std::string size_text(uint64_t bytes);    // "98.4 MB" (2^20 bytes), "1.50 GB" (2^30)
std::string count_text(uint64_t number);  // "135 M", "7.24 B"

// A line with a bar on standard error, rewritten in place; on a terminal only.
void progress_bar(const std::string& label, uint64_t done, uint64_t all);

}  // namespace prism::cli
