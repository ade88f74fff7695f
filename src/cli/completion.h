// Completion scripts for shells, made from the tree of commands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command_tree.h"

namespace prism::cli {

// The words that an option or a positional argument accepts; none: the shell offers files. path is
// the command with those above it: "prism kernel show". option is null for positional arguments.
using KnownValues =
    std::function<std::vector<std::string>(const std::string& path, const OptionEntry* option)>;

std::string bash_completion(const CommandEntry& program, const KnownValues& values);
std::string zsh_completion(const CommandEntry& program, const KnownValues& values);
std::string fish_completion(const CommandEntry& program, const KnownValues& values);

}  // namespace prism::cli
