// Writes the completion scripts for bash, zsh and fish.
#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace prism::cli {
namespace {

// Calls visit for the command and all below it, with the path that leads there.
void for_each_command(const CommandEntry& command, const std::string& path,
                      const std::function<void(const CommandEntry&, const std::string&)>& visit) {
  visit(command, path);
  for (const CommandEntry& below : command.subcommands)
    for_each_command(below, path + " " + below.name, visit);
}

// 'text' as one word of a POSIX shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

// The first sentence or clause of a help text: menus show one line.
std::string brief(const std::string& help) {
  const std::string line = help.substr(0, help.find_first_of("\n;"));
  const size_t sentence = line.find(". ");
  return sentence == std::string::npos ? line : line.substr(0, sentence);
}

std::vector<std::string> option_names(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const OptionEntry& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> subcommand_names(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const CommandEntry& below : command.subcommands) names.push_back(below.name);
  return names;
}

// The paths of all subcommands as patterns of a case: 'prism kernel'|'prism kernel show'|...
std::string all_paths(const CommandEntry& program, const std::string& separator) {
  std::vector<std::string> paths;
  for_each_command(program, program.name, [&](const CommandEntry&, const std::string& path) {
    if (path != program.name) paths.push_back(quoted(path));
  });
  return fmt::format("{}", fmt::join(paths, separator));
}

// The arms of `case $previous`, one for each option that takes a value.
std::string value_arms(const CommandEntry& command, const std::string& path,
                       const KnownValues& values) {
  std::string arms;
  for (const OptionEntry& option : command.options) {
    if (!option.takes_value || option.names.empty()) continue;
    arms += fmt::format("        {}) values={} is_value=1 ;;\n", fmt::join(option.names, "|"),
                        quoted(fmt::format("{}", fmt::join(values(path, &option), " "))));
  }
  return arms;
}

}  // namespace

std::string bash_completion(const CommandEntry& program, const KnownValues& values) {
  std::string arms;
  for_each_command(
      program, program.name, [&](const CommandEntry& command, const std::string& path) {
        std::vector<std::string> words = subcommand_names(command);
        for (const std::string& word : values(path, nullptr)) words.push_back(word);
        arms +=
            fmt::format("    {})\n      words={}\n      options={}\n      case $previous in\n{}",
                        quoted(path), quoted(fmt::format("{}", fmt::join(words, " "))),
                        quoted(fmt::format("{}", fmt::join(option_names(command), " "))),
                        value_arms(command, path, values));
        arms += "      esac ;;\n";
      });
  return fmt::format(R"(# bash completion for {0}; made by `{0} completion bash`
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local at={0} words= options= values= is_value= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at ${{COMP_WORDS[i]}}" in
      {1}) at="$at ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case $at in
{2}  esac
  if [[ $is_value ]]; then
    words=$values
  elif [[ $current == -* ]]; then
    words=$options
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _{0} {0}
)",
                     program.name, all_paths(program, "|"), arms);
}

std::string zsh_completion(const CommandEntry& program, const KnownValues& values) {
  const auto described = [](const std::string& word, const std::string& help) {
    std::string name;
    for (const char c : word) c == ':' ? name += "\\:" : name += c;
    return quoted(name + ":" + brief(help));
  };
  std::string arms;
  for_each_command(
      program, program.name, [&](const CommandEntry& command, const std::string& path) {
        std::vector<std::string> words, options;
        for (const CommandEntry& below : command.subcommands)
          words.push_back(described(below.name, below.help));
        for (const std::string& word : values(path, nullptr)) words.push_back(quoted(word));
        for (const OptionEntry& option : command.options)
          for (const std::string& name : option.names)
            options.push_back(described(name, option.help));
        arms += fmt::format(
            "    {})\n      choices=({})\n      options=({})\n      case $previous in\n{}",
            quoted(path), fmt::join(words, " "), fmt::join(options, " "),
            value_arms(command, path, values));
        arms += "      esac ;;\n";
      });
  return fmt::format(R"(#compdef {0}
# zsh completion for {0}; made by `{0} completion zsh`
_{0}() {{
  local at={0} previous=${{words[CURRENT-1]}} current=${{words[CURRENT]}} values= is_value= i
  local -a choices options
  for ((i = 2; i < CURRENT; i++)); do
    case "$at ${{words[i]}}" in
      {1}) at="$at ${{words[i]}}" ;;
    esac
  done
  case $at in
{2}  esac
  if [[ -n $is_value ]]; then
    [[ -n $values ]] && compadd -- ${{=values}} || _files
  elif [[ $current == -* ]]; then
    _describe -o option options
  else
    _describe command choices || _files
  fi
}}
if [[ ${{funcstack[1]}} == _{0} ]]; then _{0} "$@"; else compdef _{0} {0}; fi
)",
                     program.name, all_paths(program, "|"), arms);
}

std::string fish_completion(const CommandEntry& program, const KnownValues& values) {
  const auto fish_quoted = [](const std::string& text) {
    std::string out = "'";
    for (const char c : text) {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
    return out + "'";
  };
  std::string lines;
  for_each_command(
      program, program.name, [&](const CommandEntry& command, const std::string& path) {
        const std::string start =
            fmt::format("complete -c {} -n \"__{}_at '{}'\"", program.name, program.name, path);
        for (const CommandEntry& below : command.subcommands)
          lines +=
              fmt::format("{} -a {} -d {}\n", start, below.name, fish_quoted(brief(below.help)));
        for (const std::string& word : values(path, nullptr))
          lines += fmt::format("{} -a {}\n", start, word);
        for (const OptionEntry& option : command.options) {
          if (option.names.empty()) continue;
          std::string names;
          for (const std::string& name : option.names)
            names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
          const std::vector<std::string> words = values(path, &option);
          if (!words.empty())
            names +=
                fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(words, " "))));
          else if (option.takes_value)
            names += " -r";
          lines += fmt::format("{}{} -d {}\n", start, names, fish_quoted(brief(option.help)));
        }
      });
  return fmt::format(R"(# fish completion for {0}; made by `{0} completion fish`
function __{0}_at
  set -l at {0}
  for word in (commandline -opc)[2..-1]
    switch "$at $word"
      case {1}
        set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
{2})",
                     program.name, all_paths(program, " "), lines);
}

}  // namespace prism::cli
