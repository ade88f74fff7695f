// `prism model imatrix MODEL -f TEXT -o FILE`: measures which columns of the weights count most.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/model_arguments.h"
#include "cli/model_fetch.h"
#include "cli/terminal.h"
#include "llm/model/importance_sums.h"
#include "prism/error.h"
#include "prism/llm/memory.h"

namespace prism::cli {
namespace {

constexpr int64_t kChunk = 512;  // the usual length, so that files can be compared

struct Options {
  ModelArguments model;
  TextArguments text;
  std::string output;
  int64_t chunks = -1;
  bool overwrite = false;
};

int measure(Options o) {
  if (std::filesystem::exists(o.output) && !o.overwrite)
    throw Error(ErrorCode::kInvalidArgument,
                o.output + ": the file exists; --overwrite replaces it");
  const std::string text = read_text(o.text);
  if (o.model.choice.context == 0) {
    const int64_t trained =
        llm::model_sizes(llm::GgufFile::open(model_path(o.model.choice.model))).context;
    o.model.choice.context = trained > 0 ? std::min(kChunk, trained) : kChunk;
  }
  llm::LanguageModel model = open_model(o.model);
  const llm::Tokenizer& tokenizer = model.tokenizer();
  const std::vector<int32_t> tokens = tokenizer.encode(text);
  const int64_t chunk = std::min(model.context(), model.model().batch_rows());
  llm::ImportanceMatrix matrix = llm::measure_importance(
      model.model(), tokens, chunk, tokenizer.adds_bos() ? tokenizer.bos() : -1,
      [&](int64_t done, int64_t all) {
        if (!o.model.quiet) progress(fmt::format("chunk {} of {}", done, all));
        return o.chunks < 0 || done < o.chunks;
      });
  end_progress();
  if (!o.text.file.empty()) matrix.texts.push_back(o.text.file);
  matrix.write(o.output);
  std::cout << fmt::format("{}: {} tensors, {} chunks of {} tokens\n", o.output,
                           matrix.tensors.size(), matrix.chunks, matrix.chunk_tokens);
  return kRight;
}

}  // namespace

void add_model_imatrix_command(const Command& model) {
  const Command command =
      model.subcommand("imatrix", "measure which weights count most, for model quantize --imatrix");
  auto options = std::make_shared<Options>();
  add_model_arguments(command, options->model);
  add_text_arguments(command, options->text, "a text of the kind that the model will be used for");
  command.option("-o,--output", options->output, "the file to write, as llama.cpp does").required();
  command.option("--chunks", options->chunks, "the largest number of chunks (default: all)");
  command.flag("--overwrite", options->overwrite, "replace an output that exists");
  command.footer(
      "The text is cut into chunks of --context tokens (default: 512, or what the model was "
      "trained "
      "for if that is less). Some hundred thousand tokens are plenty.\nExample:\n  prism model "
      "imatrix model-f16.gguf -f text.txt -o model.imatrix.gguf\n  prism model quantize "
      "model-f16.gguf model-q3.gguf Q3_K_M --imatrix model.imatrix.gguf");
  command.run([options] { return measure(*options); });
}

}  // namespace prism::cli
