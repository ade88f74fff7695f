#include "cli/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/suggest.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

// What is wrong with the command itself, with the valid ones; empty when the mistake is elsewhere.
std::string wrong_command(CLI::App& app, const std::vector<const char*>& words) {
  CLI::App* at = &app;
  std::string so_far = app.get_name();
  for (size_t i = 1; at; ++i) {
    std::vector<std::string> names;
    for (const CLI::App* command : at->get_subcommands({})) names.push_back(command->get_name());
    const bool takes_words = !at->get_options([](const CLI::Option* option) {
                                  return option->get_positional();
                                }).empty();
    if (names.empty() || takes_words) return "";
    if (i >= words.size()) {
      return fmt::format("{0} needs a command: {1}; `{0} --help` explains them", so_far,
                         fmt::join(names, ", "));
    }
    const std::string word = words[i];
    if (word.starts_with("-")) return "";
    if (std::ranges::find(names, word) == names.end())
      return fmt::format("\"{}\" is no command of {}{}", word, so_far, valid_names(word, names));
    at = at->get_subcommand(word);
    so_far += " " + word;
  }
  return "";
}

// The parser's own tells the limits of a double, all 300 digits of them.
CLI::Validator at_least_zero(const char* shown, const char* wanted, bool zero_too) {
  return CLI::Validator(
      [wanted, zero_too](std::string& word) {
        char* end = nullptr;
        const double value = std::strtod(word.c_str(), &end);
        const bool fits = *end == '\0' && (value > 0 || (zero_too && value == 0));
        return fits ? std::string() : fmt::format("{} is no number {}", word, wanted);
      },
      shown);
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::positive() {
  option_->check(at_least_zero("POSITIVE", "above 0", false));
  return *this;
}

Option& Option::not_negative() {
  option_->check(at_least_zero("NONNEGATIVE", "from 0 on", true));
  return *this;
}

Option& Option::between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::separated_by(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option& Option::sets(bool& given) {
  option_->each([&given](const std::string&) { given = true; });
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

template <typename T>
Option Command::add(const std::string& names, T& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help)->group(heading_));
}

Option Command::option(const std::string& names, std::string& value,
                       const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, int32_t& value, const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, int64_t& value, const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, uint32_t& value, const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, uint64_t& value, const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, float& value, const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, std::optional<uint64_t>& value,
                       const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, std::vector<std::string>& value,
                       const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, std::vector<int64_t>& value,
                       const std::string& help) const {
  return add(names, value, help);
}

void Command::flag(const std::string& names, bool& value, const std::string& help) const {
  app_->add_flag(names, value, help)->group(heading_);
}

Command Command::group(const std::string& heading) const {
  Command same = *this;
  same.heading_ = heading;
  return same;
}

void Command::footer(const std::string& text) const { app_->footer(text); }

Command Command::subcommand(const std::string& name, const std::string& help) const {
  return {app_->add_subcommand(name, help), status_};
}

void Command::needs_subcommand() const { app_->require_subcommand(1); }

void Command::run(std::function<int()> action) const {
  app_->callback([app = app_, status = status_, action = std::move(action)] {
    if (app->get_subcommands().empty()) *status = action();
  });
}

CommandLine::CommandLine(const std::string& name, const std::string& help,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->set_version_flag("--version", name + " " + version, "print the version");
}

CommandLine::~CommandLine() = default;

Command CommandLine::program() { return {app_.get(), &status_}; }

int CommandLine::run(const std::vector<const char*>& words) {
  try {
    app_->parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error, std::cout, std::cerr);
    const std::string command = wrong_command(*app_, words);
    if (!command.empty()) throw Error(ErrorCode::kInvalidArgument, command);
    app_->exit(error, std::cerr, std::cerr);
    return kWrongCall;
  }
  return status_;
}

}  // namespace prism::cli
