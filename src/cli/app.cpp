// Registers the commands, runs the one that the words name and prints errors.
#include "cli/app.h"

#include <iostream>
#include <new>

#include "base/printable.h"
#include "base/transfer_progress.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/compile_notice.h"
#include "cli/environment.h"
#include "cli/interrupt.h"
#include "cli/model_text.h"
#include "cli/output.h"
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
  prism serve                              serve a model to programs and the browser
  prism train --data text.txt -o my.gguf   train a small model of your own
  prism index ~/notes                      make files searchable
  prism search 'a cake without eggs' ~/notes
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

void add_commands(const Command& program) {
  const Command models = program.group("Language models");
  for (const auto add :
       {add_run_command, add_chat_command, add_serve_command, add_model_command, add_fit_command,
        add_tokenize_command, add_train_command, add_embed_command, add_rerank_command,
        add_score_command, add_perplexity_command})
    add(models);
  const Command search = program.group("Search");
  for (const auto add : {add_index_command, add_search_command, add_vectors_command}) add(search);
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

int run_words(int count, const char* const* given) {
  if (count <= 1) {
    std::cout << kShortHelp;
    return kRight;
  }
  CommandLine line("prism", kAbout, version());
  const Command program = line.program();
  program.footer(kFooter);
  program.needs_subcommand();
  add_commands(program);
  line.before_actions(check_environment);
  return line.run({given, given + count});
}

}  // namespace

std::string version() { return PRISM_VERSION; }

int run(int count, const char* const* given) {
  ProgramOutput output;
  clean_up_on_signals();
  set_warning_handler([](const std::string& text) {
    end_progress();
    std::cerr << paint(Colour::yellow, "warning: ", Stream::error) << printable(text) << "\n";
  });
  set_transfer_handler(progress_bar);
  const CompileNoticeOnStandardError notice;
  try {
    const int status = run_words(count, given);
    output.finish();
    return status;
  } catch (const Error& error) {
    return complain(error.what(), status_of(error));
  } catch (const std::bad_alloc&) {
    throw;  // reported without a further allocation
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}

}  // namespace prism::cli
