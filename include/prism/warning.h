// Warnings: what a program's user should know though the work goes on. The library prints none of
// them; who wants them sets a handler.
#pragma once

#include <functional>
#include <string>

#pragma GCC visibility push(default)

namespace prism {

using WarningHandler = std::function<void(const std::string&)>;

// Called with one sentence a warning, by whichever thread meets it; empty: nobody is told. Returns
// the handler before.
WarningHandler set_warning_handler(WarningHandler handler);

void warn(const std::string& text);

}  // namespace prism

#pragma GCC visibility pop
