// Runs another program and passes on its output line by line.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prism {

// Runs words[0], searched on PATH, with standard error merged into standard output. Returns its
// exit status; 127 (Windows: 1) when there is no such program. Throws kIo when no process can be
// created. variables are added to its environment (not on Windows).
int run_process(const std::vector<std::string>& words,
                const std::function<void(const std::string&)>& line,
                const std::vector<std::pair<std::string, std::string>>& variables = {});

// The same for a program with binary standard output (its standard error is discarded). sink
// returns false to stop reading; the program is then left to exit by itself.
int read_process(const std::vector<std::string>& words,
                 const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace prism
