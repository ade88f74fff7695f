// Registers the commands, runs the one that the words name and prints errors.
#include "cli/app.h"

#include <iostream>

#include "base/transfer_progress.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/compile_notice.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "prism/error.h"
#include "prism/warning.h"

namespace prism::cli {
namespace {

constexpr const char* kAbout =
    "Runs language models, tensors and kernels on any processor of this machine.";

constexpr const char* kFooter = R"(`prism help COMMAND` explains a command.
Examples:
  prism run 'Why is the sky blue?'         answer a question
  prism chat                               talk to a model
  prism devices                            list the devices of this machine
  prism calibrate                          measure them, so that the fastest is used
  prism fit model.gguf                     where a model would go, and how fast
  prism check --ops                        compare every op with a reference
  prism kernel show row_softmax --lang cuda
  prism bench ops --svg ops.svg            time every op

Exit status: 0 success, 1 a check or a device failed, 2 a wrong call. Environment: PRISM_DEVICE, PRISM_BACKENDS, PRISM_CACHE_DIR, PRISM_DATA_DIR, PRISM_DUMP, NO_COLOR.)";

constexpr const char* kShortHelp =
    R"(prism: language models, tensors and kernels on any processor of this machine

  prism run 'Why is the sky blue?'    answer a question with a small model,
                                      which is fetched once (93 MB)
  prism chat                          talk to it
  prism run model.gguf 'A question'   use your own model, a GGUF file
  prism devices                       list the devices of this machine
  prism calibrate                     measure them, so that the fastest is used

`prism help` lists all commands, `prism help COMMAND` explains one.
)";

int status_of(const Error& error) {
  const bool callers =
      error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kNotFound;
  return callers ? kWrongCall : kFailed;
}

int complain(const std::string& text, int status) {
  end_progress();
  std::cerr << paint(Colour::red, "error: ", Stream::error) << text << "\n";
  return status;
}

// Rewrites the words for the parser: `prism help run` becomes `prism run --help`.
std::vector<const char*> plain_words(const CommandLine& line, int count, const char* const* given) {
  std::vector<const char*> words(given, given + count);
  // The parser reads a dash with several letters as several options.
  for (const char*& word : words)
    if (std::string_view(word) == "-ngl") word = "--gpu-layers";
  if (words.size() < 2) return words;
  const std::string_view first = words[1];
  if (first == "version") words = {words[0], "--version"};
  if (first == "help") {
    words.erase(words.begin() + 1);
    if (words.size() > 1 && std::string_view(words[1]) == "help") words.resize(1);
    if (words.size() > 1) line.check_command(words);
    words.push_back("--help");
  }
  return words;
}

void add_commands(const Command& program) {
  const Command models = program.group("Language models");
  for (const auto add :
       {add_run_command, add_chat_command, add_model_command, add_fit_command, add_tokenize_command,
        add_embed_command, add_score_command, add_perplexity_command})
    add(models);
  const Command devices = program.group("Devices and kernels");
  for (const auto add :
       {add_devices_command, add_setup_command, add_calibrate_command, add_check_command,
        add_bench_command, add_kernel_command, add_report_command})
    add(devices);
  const Command help = program.group("Help");
  help.subcommand("help", "explain a command: prism help run");
  help.subcommand("version", "print the version");
  add_completion_command(help);
}

}  // namespace

std::string version() { return PRISM_VERSION; }

int run(int count, const char* const* given) {
  set_warning_handler([](const std::string& text) {
    end_progress();
    std::cerr << paint(Colour::yellow, "warning: ", Stream::error) << text << "\n";
  });
  set_transfer_handler(progress_bar);
  const CompileNoticeOnStandardError notice;
  if (count <= 1) {
    std::cout << kShortHelp << std::flush;
    return kRight;
  }
  CommandLine line("prism", kAbout, version());
  const Command program = line.program();
  program.footer(kFooter);
  program.needs_subcommand();
  add_commands(program);
  try {
    const int status = line.run(plain_words(line, count, given));
    std::cout.flush();
    return status;
  } catch (const Error& error) {
    return complain(error.what(), status_of(error));
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}

}  // namespace prism::cli
