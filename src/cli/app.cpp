#include "cli/app.h"

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/warning.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace prism::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  prism run -p 'Why is the sky blue?'      text from a language model
  prism chat model.gguf                    a conversation
  prism devices                            what this machine has, and which device would be used
  prism check                              does every device compute right?
  prism check --ops                        and every op of tensors, with its gradients?
  prism kernel show row_softmax --lang cuda
  prism kernel run matmul_f32 --device vulkan:0
  prism calibrate                          measure, so that the fastest device is chosen
  prism fit model.gguf                     where a model would go, and how fast it would be
  prism model info model.gguf              what a model is, and the memory it needs
  prism bench ops --svg ops.svg            how near each op comes to what the device can do

Exit status: 0 right, 1 a check failed, 2 a wrong call. Variables: PRISM_DEVICE, PRISM_BACKENDS, PRISM_CACHE_DIR, PRISM_DUMP, NO_COLOR.)";

int status_of(const Error& error) {
  const bool callers =
      error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kNotFound;
  return callers ? kWrongCall : kFailed;
}

// What is wrong with the command itself, with the valid ones; empty when the mistake is elsewhere.
std::string wrong_command(CLI::App& app, int count, const char* const* words) {
  CLI::App* at = &app;
  std::string so_far = "prism";
  for (int i = 1; at; ++i) {
    std::vector<std::string> names;
    for (const CLI::App* command : at->get_subcommands({})) names.push_back(command->get_name());
    const bool takes_words = !at->get_options([](const CLI::Option* option) {
                                  return option->get_positional();
                                }).empty();
    if (names.empty() || takes_words) return "";
    if (i >= count) {
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

int complain(const std::string& text, int status) {
  end_progress();
  std::cerr << paint(Colour::red, "error: ", Stream::error) << text << "\n";
  return status;
}

}  // namespace

std::string version() { return PRISM_VERSION; }

int run(int count, const char* const* given) {
  // A dash and several letters is no option to the parser: the old spelling by its new name.
  std::vector<const char*> words(given, given + count);
  for (const char*& word : words)
    if (std::string_view(word) == "-ngl") word = "--gpu-layers";
  CLI::App app("Runs language models and kernels on every processor of this machine.", "prism");
  int status = kRight;
  set_warning_handler([](const std::string& text) {
    end_progress();
    std::cerr << paint(Colour::yellow, "warning: ", Stream::error) << text << "\n";
  });
  app.set_version_flag("--version", "prism " + version(), "print the version");
  app.footer(kFooter);
  app.require_subcommand(1);
  for (const auto add :
       {add_devices_command, add_check_command, add_kernel_command, add_calibrate_command,
        add_bench_command, add_tokenize_command, add_setup_command, add_report_command,
        add_model_command, add_fit_command, add_run_command, add_chat_command, add_score_command,
        add_perplexity_command, add_embed_command}) {
    add(app, &status);
  }
  try {
    app.parse(count, words.data());
  } catch (const CLI::ParseError& error) {
    // Help and version are results; everything else is a wrong call.
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
    const std::string command = wrong_command(app, count, words.data());
    if (!command.empty()) return complain(command, kWrongCall);
    app.exit(error, std::cerr, std::cerr);
    return kWrongCall;
  } catch (const Error& error) {
    return complain(error.what(), status_of(error));
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
  std::cout.flush();
  return status;
}

}  // namespace prism::cli
