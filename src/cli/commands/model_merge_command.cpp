// `prism model merge MODEL ADAPTER... OUT`: writes a model with adapters added to its weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/model_fetch.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "cli/terminal.h"
#include "llm/model/merge_adapters.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

struct Options {
  std::string model, type;
  std::vector<std::string> files;  // adapters, then the output
  bool overwrite = false;
};

int merge(const Options& options) {
  if (options.files.size() < 2)
    throw Error(ErrorCode::kInvalidArgument,
                "merge: an adapter and the file to write are needed: prism model merge model.gguf "
                "adapter.gguf merged.gguf");
  const std::string& output = options.files.back();
  const llm::QuantiseMix* const mix =
      options.type.empty() ? nullptr : &llm::quantise_mix(options.type);
  const llm::GgufFile file = llm::GgufFile::open(model_path(options.model));
  std::vector<std::string> inputs = file.parts();
  std::vector<llm::LoraAdapter> adapters;
  for (size_t i = 0; i + 1 < options.files.size(); ++i) {
    adapters.push_back(llm::parse_adapter(options.files[i]));
    inputs.push_back(adapters.back().path);
  }
  check_output(output, inputs, options.overwrite);
  llm::QuantiseOptions how;
  how.progress = [](const std::string& tensor, uint64_t done, uint64_t all) {
    progress_bar(tensor, done, all);
  };
  const llm::QuantiseResult result = llm::merge_adapters(file, adapters, output, mix, how);
  end_progress();
  std::cout << fmt::format("{}: {} of {} tensors changed, {}\n", output, result.changed,
                           result.tensors, size_text(result.output_bytes));
  return kRight;
}

}  // namespace

void add_model_merge_command(const Command& model) {
  const Command command =
      model.subcommand("merge", "write a model with LoRA adapters added to its weights");
  auto options = std::make_shared<Options>();
  command.option("model", options->model, "a GGUF file, or a model's name").required();
  command
      .option("files", options->files,
              "adapters, each FILE.gguf or FILE.gguf:SCALE, and last the file to write")
      .required();
  command.option("--type", options->type,
                 fmt::format("the type of the result (default: that of each tensor): {}",
                             fmt::join(llm::quantise_mix_names(), ", ")));
  command.flag("--overwrite", options->overwrite, "replace an output that exists");
  command.footer(
      "The weights are rounded to their type again. `prism run --lora` applies an adapter without "
      "that loss.\nExamples:\n  prism model merge model.gguf adapter.gguf merged.gguf\n  prism "
      "model merge model.gguf style.gguf:0.5 facts.gguf merged.gguf --type F16");
  command.run([options] { return merge(*options); });
}

}  // namespace prism::cli
