// `prism model convert FOLDER OUT`: writes the GGUF file of a Hugging Face folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "llm/convert/convert_folder.h"
#include "llm/convert/hf_architectures.h"
#include "llm/gguf/quantise_mix.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

struct Options {
  std::string folder, output, type, name;
  bool overwrite = false;
};

int convert(const Options& options) {
  if (!options.type.empty()) llm::quantise_mix(options.type);
  if (std::filesystem::exists(options.output) && !options.overwrite)
    throw Error(ErrorCode::kInvalidArgument,
                options.output + ": the file exists; --overwrite replaces it");
  llm::ConvertOptions how;
  how.type = options.type;
  how.name = options.name;
  how.progress = [](const std::string& tensor, uint64_t done, uint64_t all) {
    progress_bar(tensor, done, all);
  };
  const auto begun = std::chrono::steady_clock::now();
  const llm::ConvertResult result = llm::convert_folder(options.folder, options.output, how);
  end_progress();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::cout << fmt::format("{}: {} in {}, {} tensors, {} in {:.1f} s\n", options.output,
                           result.architecture, result.type, result.tensors,
                           size_text(result.bytes), took.count());
  return kRight;
}

}  // namespace

void add_model_convert_command(const Command& model) {
  const Command command =
      model.subcommand("convert", "write the GGUF file of a Hugging Face folder");
  auto options = std::make_shared<Options>();
  command
      .option("folder", options->folder,
              "a folder with config.json, model.safetensors (or its parts) and tokenizer.json")
      .required();
  command.option("output", options->output, "the file to write").required();
  command.option("--type", options->type,
                 fmt::format("one of {} (default: as in the folder)",
                             fmt::join(llm::quantise_mix_names(), ", ")));
  command.option("--name", options->name, "the model's name (default: the folder's)");
  command.flag("--overwrite", options->overwrite, "replace an output that exists");
  command.footer(
      fmt::format("It knows {} names of architectures in config.json; docs/models.md lists "
                  "them.\nCommands that "
                  "take a model also take such a folder; it is converted into the cache folder "
                  "once.\nExample:\n  prism model convert all-MiniLM-L6-v2 minilm.gguf --type F16",
                  llm::hf_architecture_names().size()));
  command.run([options] { return convert(*options); });
}

}  // namespace prism::cli
