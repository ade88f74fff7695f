// The command line on top of CLI11: parsing, help and errors.
#include "cli/command_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <list>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/suggest.h"
#include "cli/text_wrap.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

// The command named by the words, as far as they are valid: {"prism", "run", ...}.
struct NamedCommand {
  CLI::App* app = nullptr;
  std::string name;      // "prism run"
  size_t next_word = 1;  // the first word after the command
};

NamedCommand named_command(CLI::App& app, const std::vector<const char*>& words) {
  NamedCommand named{&app, app.get_name(), 1};
  for (; named.next_word < words.size(); ++named.next_word) {
    const std::string word = words[named.next_word];
    const std::vector<CLI::App*> found = named.app->get_subcommands(
        [&](const CLI::App* command) { return command->get_name() == word; });
    if (found.empty()) break;
    named.app = found.front();
    named.name += " " + word;
  }
  return named;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// The error if the words name no command; empty if the mistake is elsewhere.
std::string wrong_command(CLI::App& app, const std::vector<const char*>& words) {
  const NamedCommand named = named_command(app, words);
  const std::vector<std::string> names = command_names(*named.app);
  const bool takes_words =
      !named.app->get_options([](const CLI::Option* option) { return option->get_positional(); })
           .empty();
  if (names.empty() || takes_words) return "";
  if (named.next_word >= words.size())
    return fmt::format("{0} needs a command: {1}; `{0} --help` explains them", named.name,
                       fmt::join(names, ", "));
  const std::string word = words[named.next_word];
  if (word.starts_with("-")) return "";
  return fmt::format("\"{}\" is not a command of {}{}", word, named.name, valid_names(word, names));
}

// Splits `--host=` into the option and an empty value: the parser would take the next word as the
// value. `made` keeps the words that come out of it.
std::vector<const char*> with_empty_values(CLI::App& app, const std::vector<const char*>& words,
                                           std::list<std::string>& made) {
  const NamedCommand named = named_command(app, words);
  std::vector<const char*> result;
  bool are_options = true;
  for (const char* each : words) {
    const std::string_view word = each;
    are_options = are_options && word != "--";
    if (are_options && word.starts_with("--") && word.find('=') + 1 == word.size()) {
      std::string name(word.substr(0, word.size() - 1));
      const CLI::Option* option = named.app->get_option_no_throw(name);
      if (option && option->get_expected_max() > 0) {
        result.insert(result.end(), {made.emplace_back(std::move(name)).c_str(), ""});
        continue;
      }
    }
    result.push_back(each);
  }
  return result;
}

// Rewrites the words for the parser: `prism help run` becomes `prism run --help`.
std::vector<const char*> plain_words(CLI::App& app, std::vector<const char*> words) {
  // The parser reads a dash with several letters as several options.
  for (const char*& word : words)
    if (std::string_view(word) == "-ngl") word = "--gpu-layers";
  if (words.size() < 2) return words;
  const std::string_view first = words[1];
  if (first == "version") words = {words[0], "--version"};
  if (first == "help") {
    words.erase(words.begin() + 1);
    if (words.size() > 1 && std::string_view(words[1]) == "help") words.resize(1);
    if (named_command(app, words).next_word < words.size())
      if (const std::string wrong = wrong_command(app, words); !wrong.empty())
        throw Error(ErrorCode::kInvalidArgument, wrong);
    words.push_back("--help");
  }
  return words;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options({})) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// The error for a word that the command does not accept.
std::string unexpected_word(const NamedCommand& named, const std::vector<const char*>& words,
                            const std::vector<std::string>& extras) {
  const std::vector<std::string> names = option_names(*named.app);
  for (size_t i = named.next_word; i < words.size(); ++i) {
    std::string word = words[i];
    word = word.substr(0, word.find('='));
    if (!word.starts_with("-") || std::ranges::find(extras, words[i]) == extras.end()) continue;
    const std::string near = word.size() > 2 ? nearest_name(word, names) : "";
    return fmt::format("{} has no option {}{}", named.name, word,
                       near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }
  const std::string extra = extras.empty() ? "" : extras.front();
  const bool is_quoted = extra.find(' ') != extra.npos;
  return fmt::format("{} does not take \"{}\"{}", named.name, extra,
                     is_quoted ? "" : "; put a text of several words in quotes");
}

// "NAME: At Most 1 required but received 2" and the like.
std::string mismatch(const std::string& text) {
  const std::string name = text.substr(0, text.find_first_of(": "));
  if (text.find("flag override") != text.npos)
    return fmt::format("{}{} takes no value", name.size() == 1 ? "-" : "--", name);
  return name + (text.find(": At Most") == text.npos ? " needs a value" : " is given twice");
}

// The parser's error in the words of this program.
std::string parse_error(CLI::App& app, const std::vector<const char*>& words,
                        const CLI::ParseError& error) {
  const NamedCommand named = named_command(app, words);
  std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    text = unexpected_word(named, words, app.remaining(true));
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    text = mismatch(text);
  } else if (constexpr std::string_view start = "Could not convert: "; text.starts_with(start)) {
    text = text.substr(start.size());
    if (const size_t equals = text.find(" = "); equals != text.npos)
      text = fmt::format("{}: \"{}\" is not a number", text.substr(0, equals),
                         text.substr(equals + 3));
  }
  return fmt::format("{}{} `{} --help` lists what it takes", text, text.ends_with("?") ? "" : ";",
                     named.name);
}

// Formats help to fit the columns of a terminal.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() {
    label("Positionals", "Arguments");
    label("SUBCOMMAND", "COMMAND");
    label("OPTIONS", "options");
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = is_positional ? option->get_name(true, false) : names_of(*option);
    if (!is_positional && option->get_expected_max() != 0) name += " " + value_name(*option);
    std::string text = option->get_description();
    if (!option->get_default_str().empty() && option->get_default_str() != "\"\"")
      text += fmt::format(" (default: {})", option->get_default_str());
    for (const CLI::Option* other : option->get_excludes())
      text += fmt::format("; not with {}", other->get_name());
    return line(name, text);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return line(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description()) + "\n\n";
  }
  // Removes the second empty line that the parser puts between groups.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, name, mode);
    for (size_t at = text.find("\n\n\n"); at != text.npos; at = text.find("\n\n\n", at))
      text.erase(at, 1);
    return text;
  }
  std::string make_footer(const CLI::App* app) const override {
    return wrapped(app->get_footer()) + "\n";
  }

 private:
  static constexpr size_t kColumn = 26;  // where the explanations begin

  static std::string names_of(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    return fmt::format("{}", fmt::join(names, ", "));
  }
  static std::string value_name(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    const bool is_number =
        type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT");
    return option.get_expected_min() == 0 ? "[NAME]" : is_number ? "N" : "TEXT";
  }
  static std::string line(const std::string& name, const std::string& text) {
    std::string start = "  " + name;
    if (start.size() + 2 > kColumn)
      start += "\n" + std::string(kColumn, ' ');
    else
      start += std::string(kColumn - start.size(), ' ');
    return start + wrapped(text, kTerminalColumns, kColumn) + "\n";
  }
};

// Returns what is wrong with the word, or an empty text; then the word is in its plainest form. The
// parser alone would read 010 as 8, and accept numbers that do not fit.
template <typename T>
std::string read_number(std::string& word) {
  if constexpr (std::is_integral_v<T>) {
    T value = 0;
    const size_t sign = word.starts_with('+') ? 1 : 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + sign, end, value);
    if (word.starts_with('-') && !std::is_signed_v<T>)
      return fmt::format("{} is not a number of at least 0", word);
    if (error == std::errc::result_out_of_range)
      return fmt::format("{} is not a number from {} to {}", word, std::numeric_limits<T>::min(),
                         std::numeric_limits<T>::max());
    if (error != std::errc() || stop != end)
      return fmt::format("\"{}\" is not a whole number", word);
    word = fmt::format("{}", value);
  } else {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != '\0' || !(std::abs(value) <= std::numeric_limits<T>::max()))
      return fmt::format("\"{}\" is not a number", word);
    word = fmt::format("{}", value);
  }
  return "";
}

// The parser's own message prints the limits of a double with all 300 digits.
CLI::Validator at_least_zero(const char* shown, const char* wanted, bool zero_too) {
  return CLI::Validator(
      [wanted, zero_too](std::string& word) {
        char* end = nullptr;
        const double value = std::strtod(word.c_str(), &end);
        const bool fits = *end == '\0' && (value > 0 || (zero_too && value == 0));
        return fits ? std::string() : fmt::format("{} is not a number {}", word, wanted);
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
  option_->check(at_least_zero("NONNEGATIVE", "of at least 0", true));
  return *this;
}

Option& Option::between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::not_empty() {
  option_->check([](const std::string& word) {
    return word.empty() ? "the value is empty; is the variable set that it came from?" : "";
  });
  return *this;
}

Option& Option::one_word() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::separated_by(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option& Option::optional_value(const std::string& otherwise) {
  option_->expected(0, 1)->default_str(otherwise);
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
  return Option(
      app_->add_option(names, value, help)->group(heading_.empty() ? "Options" : heading_));
}

template <typename Number, typename T>
Option Command::add_number(const std::string& names, T& value, const std::string& help) const {
  Option option = add(names, value, help);
  option.option_->transform(CLI::Validator(read_number<Number>, ""));
  return option;
}

Option Command::option(const std::string& names, std::string& value,
                       const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, int32_t& value, const std::string& help) const {
  return add_number<int32_t>(names, value, help);
}

Option Command::option(const std::string& names, int64_t& value, const std::string& help) const {
  return add_number<int64_t>(names, value, help);
}

Option Command::option(const std::string& names, uint32_t& value, const std::string& help) const {
  return add_number<uint32_t>(names, value, help);
}

Option Command::option(const std::string& names, uint64_t& value, const std::string& help) const {
  return add_number<uint64_t>(names, value, help);
}

Option Command::option(const std::string& names, float& value, const std::string& help) const {
  return add_number<float>(names, value, help);
}

Option Command::option(const std::string& names, std::optional<uint64_t>& value,
                       const std::string& help) const {
  return add_number<uint64_t>(names, value, help);
}

Option Command::option(const std::string& names, std::vector<std::string>& value,
                       const std::string& help) const {
  return add(names, value, help);
}

Option Command::option(const std::string& names, std::vector<int64_t>& value,
                       const std::string& help) const {
  return add_number<int64_t>(names, value, help);
}

void Command::flag(const std::string& names, bool& value, const std::string& help) const {
  app_->add_flag(names, value, help)
      ->disable_flag_override()
      ->group(heading_.empty() ? "Options" : heading_);
}

Command Command::group(const std::string& heading) const {
  Command same = *this;
  same.heading_ = heading;
  return same;
}

void Command::footer(const std::string& text) const { app_->footer(text); }

Command Command::subcommand(const std::string& name, const std::string& help) const {
  CLI::App* command = app_->add_subcommand(name, help);
  command->group(heading_.empty() ? "Commands" : heading_);
  return {command, line_};
}

void Command::needs_subcommand() const { app_->require_subcommand(1); }

void Command::run(std::function<int()> action) const {
  app_->callback([app = app_, line = line_, action = std::move(action)] {
    if (!app->get_subcommands().empty()) return;
    if (line->prepare_) line->prepare_();
    line->status_ = action();
  });
}

CommandLine::CommandLine(const std::string& name, const std::string& help,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->formatter(std::make_shared<HelpFormat>());
  app_->set_help_flag("-h,--help", "print this help");
  app_->set_version_flag("--version", name + " " + version, "print the version");
}

CommandLine::~CommandLine() = default;

Command CommandLine::program() { return {app_.get(), this}; }

int CommandLine::run(const std::vector<const char*>& given) {
  std::list<std::string> made;
  const std::vector<const char*> words = with_empty_values(*app_, plain_words(*app_, given), made);
  status_ = kRight;
  try {
    app_->parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error, std::cout, std::cerr);
    const std::string command = wrong_command(*app_, words);
    if (!command.empty()) throw Error(ErrorCode::kInvalidArgument, command);
    throw Error(ErrorCode::kInvalidArgument, parse_error(*app_, words, error));
  }
  return status_;
}

}  // namespace prism::cli
