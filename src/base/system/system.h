// The name and version of the operating system, for reports.
#pragma once

#include <string>

namespace prism {

// "Debian GNU/Linux 12 (bookworm), Linux 6.1.0 x86_64"; never the machine's own name.
std::string system_description();

}  // namespace prism
