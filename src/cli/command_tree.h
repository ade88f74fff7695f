// The commands with their options as plain data, for shell completions.
#pragma once

#include <string>
#include <vector>

namespace prism::cli {

struct OptionEntry {
  std::vector<std::string> names;  // with their dashes: {"-n", "--tokens"}; empty: positional only
  std::string help;
  bool takes_value = false;
  bool is_positional = false;
};

struct CommandEntry {
  std::string name;
  std::string help;
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> subcommands;
};

}  // namespace prism::cli
