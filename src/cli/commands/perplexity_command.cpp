// `prism perplexity`: how well a model predicts a text.
#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_arguments.h"
#include "cli/model_fetch.h"
#include "cli/terminal.h"
#include "prism/llm/memory.h"

namespace prism::cli {
namespace {

constexpr int64_t kWindow = 512;  // the usual length, so that results can be compared

struct Options {
  ModelArguments model;
  TextArguments text;
  int64_t windows = -1;
  bool json = false;
};

int measure(Options o) {
  const std::string text = read_text(o.text);
  if (o.model.choice.context == 0) {
    const int64_t trained =
        llm::model_sizes(llm::GgufFile::open(model_path(o.model.choice.model))).context;
    o.model.choice.context = trained > 0 ? std::min(kWindow, trained) : kWindow;
  }
  llm::LanguageModel model = open_model(o.model);
  const llm::Tokenizer& tokenizer = model.tokenizer();
  const std::vector<int32_t> tokens = tokenizer.encode(text, {.add_special = false});
  const llm::Perplexity result = llm::perplexity(
      model.model(), tokens, model.context(), tokenizer.adds_bos() ? tokenizer.bos() : -1,
      [&](const llm::Perplexity& so_far, int64_t done, int64_t all) {
        if (!o.model.quiet)
          progress(fmt::format("window {} of {}: perplexity {:.4f}", done, all, so_far.value));
        return o.windows < 0 || done < o.windows;
      });
  end_progress();
  if (o.json)
    std::cout << Json{{"perplexity", result.value},
                      {"error", result.error},
                      {"tokens", result.tokens},
                      {"context", model.context()}}
                     .dump(2)
              << "\n";
  else
    std::cout << fmt::format("perplexity {:.4f} +- {:.4f} over {} tokens (windows of {})\n",
                             result.value, result.error, result.tokens, model.context());
  return kRight;
}

}  // namespace

void add_perplexity_command(const Command& program) {
  const Command command =
      program.subcommand("perplexity", "measure how well a model predicts a text");
  auto options = std::make_shared<Options>();
  add_model_arguments(command, options->model);
  add_text_arguments(command, options->text, "the text");
  command.option("--windows", options->windows, "the largest number of windows (default: all)");
  command.flag("--json", options->json, "print JSON");
  command.footer(
      "The text is cut into windows of --context tokens (default: 512, or what the model was "
      "trained "
      "for if that is less). Each window is read on its own, and its second half is "
      "scored.\nExamples:\n  prism perplexity model.gguf -f text.txt\n  prism "
      "perplexity model.gguf -f text.txt --context 2048 --windows 10 --json");
  command.run([options] { return measure(*options); });
}

}  // namespace prism::cli
