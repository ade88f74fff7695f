// The command line: commands with their options, help and errors. It hides the parser (CLI11) in
// one file, because the parser's templates take seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace prism::cli {

class CommandLine;
struct CommandEntry;  // cli/command_tree.h

// Exit statuses; kInterrupted is what shells report for a program that Ctrl-C ended.
inline constexpr int kRight = 0, kFailed = 1, kWrongCall = 2, kInterrupted = 130;

// Further properties of an option: command.option(...).positive().shows_default().
class Option {
 public:
  Option& required();
  Option& shows_default();  // the help shows the variable's current value
  Option& positive();
  Option& not_negative();
  Option& between(int least, int most);
  Option& not_empty();                   // of a text
  Option& one_word();                    // of several values: one for each time the option is given
  Option& separated_by(char separator);  // several values in one word: 512,2048
  Option& optional_value(const std::string& otherwise);  // the value of --resume without one
  Option& sets(bool& given);                             // sets it to true when the option is given
  Option& excludes(const Option& other);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

// A handle to one command; copies refer to the same command. Variables must live until the command
// has run; the action of run() may own them.
class Command {
 public:
  // names: "-n,--tokens" for an option, "file" for an argument without a name, "-m,--model,model"
  // for both.
  Option option(const std::string& names, std::string& value, const std::string& help) const;
  Option option(const std::string& names, int32_t& value, const std::string& help) const;
  Option option(const std::string& names, int64_t& value, const std::string& help) const;
  Option option(const std::string& names, uint32_t& value, const std::string& help) const;
  Option option(const std::string& names, uint64_t& value, const std::string& help) const;
  Option option(const std::string& names, float& value, const std::string& help) const;
  Option option(const std::string& names, std::optional<uint64_t>& value,
                const std::string& help) const;
  // These may be given several times and take several words.
  Option option(const std::string& names, std::vector<std::string>& value,
                const std::string& help) const;
  Option option(const std::string& names, std::vector<int64_t>& value,
                const std::string& help) const;
  void flag(const std::string& names, bool& value, const std::string& help) const;

  // Returns a handle whose options and subcommands appear under this heading of the help.
  Command group(const std::string& heading) const;
  void footer(const std::string& text) const;  // the text at the end of the help

  Command subcommand(const std::string& name, const std::string& help) const;
  void needs_subcommand() const;
  CommandEntry tree() const;  // this command and all below it, as they are now
  // action returns the exit status. It is not called if a subcommand is.
  void run(std::function<int()> action) const;

 private:
  friend class CommandLine;
  Command(CLI::App* app, CommandLine* line) : app_(app), line_(line) {}
  template <typename T>
  Option add(const std::string& names, T& value, const std::string& help) const;
  template <typename Number, typename T>
  Option add_number(const std::string& names, T& value, const std::string& help) const;
  CLI::App* app_;
  CommandLine* line_;
  std::string heading_;  // empty: the usual one
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command program();  // the parent of all commands
  // Called before a command's action, but not before help and version are printed.
  void before_actions(std::function<void()> prepare) { prepare_ = std::move(prepare); }

  // Runs the command that the words name and returns its exit status; the first word is the
  // program's name. Help and version go to standard output; `help COMMAND` and `version` are
  // commands too. Throws kInvalidArgument for words that are wrong, with the nearest right ones.
  // May be called again; the variables keep the values of the last call where no option sets them.
  int run(const std::vector<const char*>& words);

 private:
  friend class Command;
  std::unique_ptr<CLI::App> app_;
  std::function<void()> prepare_;
  int status_ = kRight;  // set by the command that ran
};

}  // namespace prism::cli
