// Runs another program and hands over what it prints, line by line.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace prism {

// Runs words[0], looked for on PATH, with standard error joined to standard output. Returns its
// exit status; 127 (Windows: 1) when there is no such program. Throws kIo when no process can be
// started at all.
int run_process(const std::vector<std::string>& words,
                const std::function<void(const std::string&)>& line);

}  // namespace prism
