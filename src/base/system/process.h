// Runs other programs and returns their output.
//
// The current folder has no influence: programs are searched only in the absolute folders of PATH
// and run without a shell, in the root folder, with an empty standard input. On Linux a program
// ends when the process that started it ends.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prism {

// Returns the absolute path of a program in an absolute folder of PATH; empty if there is none. An
// absolute path is returned unchanged if it can be run.
std::string find_program(const std::string& name);

// Runs words[0] with the other words as arguments, standard error joined to standard output, and
// calls `line` for each line it prints. Returns its exit status: 127 if there is no such program
// (Windows: 1), 128 + N if signal N ended it. Throws kIo if no process can be started. `variables`
// are added to its environment (not on Windows).
int run_process(const std::vector<std::string>& words,
                const std::function<void(const std::string&)>& line,
                const std::vector<std::pair<std::string, std::string>>& variables = {});

// The same for a program whose standard output is bytes; its standard error is dropped. When sink
// returns false or throws, the program is ended and waited for.
int read_process(const std::vector<std::string>& words,
                 const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace prism
