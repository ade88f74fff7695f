// The words after `prism`: commands with their options, help and errors. The parser (CLI11) is
// behind it, in one file only: its templates take seconds to compile wherever it is included.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace prism::cli {

struct CommandEntry;  // cli/command_tree.h

inline constexpr int kRight = 0, kFailed = 1, kWrongCall = 2;  // exit statuses

// What else is to be said of an option: command.option(...).positive().shows_default().
class Option {
 public:
  Option& required();
  Option& shows_default();  // the variable's value of now, in the help
  Option& positive();
  Option& not_negative();
  Option& between(int least, int most);
  Option& separated_by(char separator);  // several values in one word: 512,2048
  Option& sets(bool& given);             // to true when the option is given
  Option& excludes(const Option& other);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

// One command; a handle, to be copied freely. Variables must live until the command has run: those
// that the action of run() owns do.
class Command {
 public:
  // names: "-n,--tokens"; without dashes a positional one: "file"; both: "-m,--model,model".
  Option option(const std::string& names, std::string& value, const std::string& help) const;
  Option option(const std::string& names, int32_t& value, const std::string& help) const;
  Option option(const std::string& names, int64_t& value, const std::string& help) const;
  Option option(const std::string& names, uint32_t& value, const std::string& help) const;
  Option option(const std::string& names, uint64_t& value, const std::string& help) const;
  Option option(const std::string& names, float& value, const std::string& help) const;
  Option option(const std::string& names, std::optional<uint64_t>& value,
                const std::string& help) const;
  // May be given several times, and takes several words.
  Option option(const std::string& names, std::vector<std::string>& value,
                const std::string& help) const;
  Option option(const std::string& names, std::vector<int64_t>& value,
                const std::string& help) const;
  void flag(const std::string& names, bool& value, const std::string& help) const;

  // The same command, whose options then added stand under this heading of the help.
  Command group(const std::string& heading) const;
  void footer(const std::string& text) const;  // the end of the help

  Command subcommand(const std::string& name, const std::string& help) const;
  void needs_subcommand() const;
  CommandEntry tree() const;  // this command and all below it, as they are now
  // action gives the exit status. It is not called where a subcommand is.
  void run(std::function<int()> action) const;

 private:
  friend class CommandLine;
  Command(CLI::App* app, int* status) : app_(app), status_(status) {}
  template <typename T>
  Option add(const std::string& names, T& value, const std::string& help) const;
  CLI::App* app_;
  int* status_;
  std::string heading_ = "Options";
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command program();  // what the commands are subcommands of

  // Runs the command that the words name and gives its exit status; help and version are results.
  // Throws kInvalidArgument for words that name no command; what else is wrong with them is told on
  // standard error: kWrongCall.
  int run(const std::vector<const char*>& words);

 private:
  std::unique_ptr<CLI::App> app_;
  int status_ = kRight;  // commands leave theirs here
};

}  // namespace prism::cli
