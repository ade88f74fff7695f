// `prism model ...`: the commands on model files.
#include "cli/commands.h"

namespace prism::cli {

void add_model_command(const Command& program) {
  const Command model = program.subcommand(
      "model", "inspect, check, convert, measure, quantise, merge, fetch and remove model files");
  model.needs_subcommand();
  add_model_info_command(model);
  add_model_verify_command(model);
  add_model_convert_command(model);
  add_model_quantize_command(model);
  add_model_imatrix_command(model);
  add_model_merge_command(model);
  add_model_store_commands(model);
  model.footer(
      "Examples:\n  prism model info model.gguf\n  prism model verify model.gguf\n  prism model "
      "convert folder model.gguf\n  prism model quantize model-f16.gguf model-q4.gguf Q4_K_M\n  "
      "prism model merge model.gguf adapter.gguf merged.gguf\n  "
      "prism model fetch smollm2\n  prism model "
      "list");
}

}  // namespace prism::cli
