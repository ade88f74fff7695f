// Warnings: problems a user should know about that do not stop the work. The library never prints
// them; a program sets a handler to receive them.
#pragma once

#include <functional>
#include <string>

#pragma GCC visibility push(default)

namespace prism {

using WarningHandler = std::function<void(const std::string&)>;

// The handler receives one sentence per warning, on the thread that raises it; an empty handler
// discards warnings. Returns the previous handler.
WarningHandler set_warning_handler(WarningHandler handler);

void warn(const std::string& text);

}  // namespace prism

#pragma GCC visibility pop
