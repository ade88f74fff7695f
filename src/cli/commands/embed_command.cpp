// `prism embed`: texts as vectors.
#include <cmath>
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/model_arguments.h"
#include "cli/terminal.h"
#include "prism/error.h"

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
  if (texts.empty()) throw Error(ErrorCode::kInvalidArgument, "embed: no text was given");
  llm::LanguageModel model = open_model(o.model, 4);
  const std::vector<std::vector<float>> vectors = model.embed(texts, !o.raw);
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
  const Command command = program.subcommand("embed", "texts as vectors");
  auto options = std::make_shared<Options>();
  add_model_arguments(command, options->model);
  command.option("-p,--prompt", options->texts, "a text; may be given several times");
  command.option("-f,--file", options->file, "a text a line (-: standard input)");
  command.flag("--raw", options->raw, "as the model gives them, not of length 1");
  command.flag("--json", options->json, "print JSON: embeddings[] of text, embedding");
  command.footer(
      "Without --json a vector a line. Vectors have length 1, so that their product is their "
      "cosine.\nExamples:\n  prism embed bge-small.gguf -p 'a cat' -p 'a dog'\n  prism embed "
      "bge-small.gguf -f sentences.txt --json");
  command.run([options] { return embed(*options); });
}

}  // namespace prism::cli
