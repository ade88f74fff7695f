// The commands of the program, one file each. Results go to standard output, everything else to
// standard error.
#pragma once

namespace CLI {
class App;
}

namespace prism::cli {

inline constexpr int kRight = 0, kFailed = 1, kWrongCall = 2;

// Each adds its command; the command leaves its exit status in *status.
void add_devices_command(CLI::App& app, int* status);

}  // namespace prism::cli
