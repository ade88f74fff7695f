// Runs another program and hands over what it prints, line by line.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prism {

// Runs words[0], looked for on PATH, with standard error joined to standard output. Returns its
// exit status; 127 (Windows: 1) when there is no such program. Throws kIo when no process can be
// started at all. variables are added to its environment (not on Windows).
int run_process(const std::vector<std::string>& words,
                const std::function<void(const std::string&)>& line,
                const std::vector<std::pair<std::string, std::string>>& variables = {});

// The same for a program whose standard output is bytes (its standard error goes nowhere); sink
// returns false to hear no more, and the program is then left to end by itself.
int read_process(const std::vector<std::string>& words,
                 const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace prism
