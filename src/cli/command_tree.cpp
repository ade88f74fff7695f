// Converts the parser's commands and options to plain data.
#include "cli/command_tree.h"

#include <CLI/CLI.hpp>

#include "cli/command_line.h"

namespace prism::cli {
namespace {

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  entry.help = option.get_description();
  entry.takes_value = option.get_items_expected_max() > 0;
  entry.is_positional = option.get_positional();
  return entry;
}

CommandEntry entry_of(const CLI::App& app) {
  CommandEntry entry{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options({})) entry.options.push_back(entry_of(*option));
  for (const CLI::App* command : app.get_subcommands({}))
    entry.subcommands.push_back(entry_of(*command));
  return entry;
}

}  // namespace

CommandEntry Command::tree() const { return entry_of(*app_); }

}  // namespace prism::cli
