// `prism embed`: vectors of texts.
#include <cmath>
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/model_arguments.h"
#include "cli/terminal.h"
#include "llm/model/config.h"
#include "prism/error.h"
#include "prism/warning.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  std::vector<std::string> texts;
  std::string file;
  bool json = false, raw = false;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

int embed(const Options& o) {
  std::vector<std::string> texts = o.texts;
  if (texts.empty()) texts = lines_of(read_file_or_input(o.file.empty() ? "-" : o.file));
  if (texts.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "embed: there is no text; give it with -p or -f, or on standard input");
  llm::LanguageModel model = open_model(o.model, 4);
  const llm::Config& config = model.config();
  if (config.causal && config.pooling == llm::Pooling::none && !o.model.quiet)
    warn(
        "this model was trained to write text, not to compare texts, so its vectors are poor; use "
        "an embedding model such as bge-small");
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
  add_model_arguments(command, options->model);
  command.option("-p,--prompt", options->texts, "a text; may be given several times");
  command.option("-f,--file", options->file,
                 "a file with one text on each line (-: standard input)");
  command.flag("--raw", options->raw, "do not scale the vectors to length 1");
  command.flag("--json", options->json, "print JSON: embeddings[] with text and embedding");
  command.footer(
      "Without --json each line is one vector. Vectors have length 1, so the dot product of two is "
      "their cosine.\nExamples:\n  prism embed bge-small.gguf -p 'a cat' -p 'a dog'\n  prism embed "
      "bge-small.gguf -f sentences.txt --json");
  command.run([options] { return embed(*options); });
}

}  // namespace prism::cli
