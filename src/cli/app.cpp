#include "cli/app.h"

#include <iostream>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "prism/error.h"
#include "prism/warning.h"

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
  set_warning_handler([](const std::string& text) {
    end_progress();
    std::cerr << paint(Colour::yellow, "warning: ", Stream::error) << text << "\n";
  });
  CommandLine line("prism", "Runs language models and kernels on every processor of this machine.",
                   version());
  const Command program = line.program();
  program.footer(kFooter);
  program.needs_subcommand();
  for (const auto add :
       {add_devices_command, add_check_command, add_kernel_command, add_calibrate_command,
        add_bench_command, add_tokenize_command, add_setup_command, add_report_command,
        add_model_command, add_fit_command, add_run_command, add_chat_command, add_score_command,
        add_perplexity_command, add_embed_command, add_completion_command}) {
    add(program);
  }
  try {
    const int status = line.run(words);
    std::cout.flush();
    return status;
  } catch (const Error& error) {
    return complain(error.what(), status_of(error));
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}

}  // namespace prism::cli
