// `prism model ...`: the commands on model files.
#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace prism::cli {

void add_model_command(CLI::App& app, int* status) {
  CLI::App* model =
      app.add_subcommand("model", "look at, check, quantise, fetch and remove model files");
  model->require_subcommand(1);
  add_model_info_command(*model, status);
  add_model_verify_command(*model, status);
  add_model_quantize_command(*model, status);
  add_model_store_commands(*model, status);
  model->footer(
      "Examples:\n  prism model info model.gguf\n  prism model verify model.gguf\n  prism model "
      "quantize model-f16.gguf model-q4.gguf Q4_K_M\n  prism model fetch smollm2\n  prism model "
      "list");
}

}  // namespace prism::cli
