// Formats figures for people: sizes in binary units, rates in decimal units, never with an
// exponent.
#pragma once

#include <cstdint>
#include <string>

namespace prism {

// Three significant digits, or all digits before the point: "0.0123", "1.63", "98.4", "1630".
std::string number_text(double value);

// "512 bytes", "98.4 MiB" (2^20 bytes), "1.50 GiB" (2^30). "unknown" for UINT64_MAX, which a device
// returns if it does not know its size.
std::string size_text(uint64_t bytes);

// A count with separators: "65,536".
std::string exact_count_text(uint64_t count);

// A rate with a suitable prefix: "12.3 GB/s" (1e9 bytes) for the unit "B/s", "1.63 TFLOP/s".
std::string rate_text(double per_second, const char* unit);

}  // namespace prism
