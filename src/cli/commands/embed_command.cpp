// `prism embed`: vectors of texts.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/encoder_model.h"
#include "llm/model/config.h"
#include "prism/error.h"
#include "prism/llm/model_store.h"
#include "prism/warning.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  std::vector<std::string> words;  // plain arguments after the model
  std::vector<std::string> texts;  // of -p
  std::string file;
  bool json = false, raw = false;
};

void report_long_texts(const llm::LanguageModel& model, const std::vector<std::string>& texts) {
  const auto count = std::ranges::count_if(texts, [&](const std::string& text) {
    return static_cast<int64_t>(model.tokenizer().encode(text).size()) > model.context();
  });
  if (count > 0)
    warn(fmt::format("{} of {} texts {} longer than {} tokens; only the first {} count", count,
                     texts.size(), count == 1 ? "is" : "are", model.context(), model.context()));
}

// A first word that cannot be a model is a text for the default one.
void sort_words(Options& o) {
  std::string& first = o.model.choice.model;
  if (first.find(' ') == first.npos || llm::is_model_name(first) || !llm::find_model(first).empty())
    return;
  o.words.insert(o.words.begin(), std::exchange(first, {}));
}

int embed(Options o) {
  sort_words(o);
  std::vector<std::string> texts = std::move(o.words);
  texts.insert(texts.end(), o.texts.begin(), o.texts.end());
  if (!texts.empty() && !o.file.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "embed: there are texts and a file; give one or the other");
  if (texts.empty()) texts = read_lines(o.file.empty() ? "-" : o.file);
  if (texts.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "embed: there is no text; give it after the model, with -f, or on standard input");
  ModelArguments arguments = o.model;
  if (arguments.choice.model.empty()) arguments.choice.model = llm::kDefaultEmbedder;
  llm::LanguageModel model = open_encoder(std::move(arguments));
  const llm::Config& config = model.config();
  if (config.causal && config.pooling == llm::Pooling::none && !o.model.quiet)
    warn(
        "this model was trained to write text, not to compare texts, so its vectors are poor; "
        "without a model, prism embed uses all-MiniLM-L6-v2");
  if (!o.model.quiet) report_long_texts(model, texts);
  const std::vector<std::vector<float>> vectors =
      model.embed(texts, {.normalise = !o.raw, .truncate = true});
  if (o.json) {
    Json all = Json::array();
    for (size_t i = 0; i < texts.size(); ++i)
      all.push_back({{"text", texts[i]}, {"embedding", vectors[i]}});
    std::cout << Json{{"embeddings", all}}.dump() << "\n";
    return kRight;
  }
  for (const std::vector<float>& vector : vectors) {
    std::string line;
    for (const float each : vector) line += fmt::format("{}{:.7g}", line.empty() ? "" : " ", each);
    std::cout << line << "\n";
  }
  return kRight;
}

}  // namespace

void add_embed_command(const Command& program) {
  const Command command = program.subcommand("embed", "turn texts into vectors");
  auto options = std::make_shared<Options>();
  options->model.choice.default_title = "all-MiniLM-L6-v2, fetched once";
  add_model_arguments(command, options->model);
  command.option("TEXT", options->words, "texts (default: standard input, one on each line)");
  command.option("-p,--prompt", options->texts, "the same; may be given several times");
  command.option("-f,--file", options->file,
                 "a file with one text on each line (-: standard input)");
  command.flag("--raw", options->raw, "do not scale the vectors to length 1");
  command.flag("--json", options->json, "print JSON: embeddings[] with text and embedding");
  command.footer(
      "Without --json each line is one vector. Vectors have length 1, so the dot product of two is "
      "their cosine.\nTexts with more tokens than the model takes are cut.\nExamples:\n  prism "
      "embed 'a small cat' 'a large dog'\n  prism embed bge-small.gguf -f sentences.txt --json");
  command.run([options] { return embed(*options); });
}

}  // namespace prism::cli
