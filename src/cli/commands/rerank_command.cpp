// `prism rerank`: orders texts by how relevant they are to a query.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>

#include <fmt/format.h>

#include "base/json.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/encoder_model.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  std::string query, file;
  std::vector<std::string> texts;
  int64_t count = 0;
  bool json = false;
};

std::vector<std::string> documents(const Options& o) {
  std::error_code failed;
  std::string file = o.file;
  if (file.empty() && o.texts.size() == 1 && std::filesystem::is_regular_file(o.texts[0], failed))
    file = o.texts[0];
  else if (file.empty() && !o.texts.empty())
    return o.texts;
  else if (!o.texts.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "rerank: there are texts and a file; give one or the other");
  const std::vector<std::string> lines = read_lines(file.empty() ? "-" : file);
  if (lines.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "rerank: there is no text to rank; give texts, or a file with one on each line");
  return lines;
}

int rerank(const Options& o) {
  const std::vector<std::string> texts = documents(o);
  llm::LanguageModel model = open_encoder(o.model);
  const llm::Ranking ranking = model.rerank(o.query, texts);
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return ranking.scores[i]; });
  if (o.count > 0) order.resize(std::min(order.size(), static_cast<size_t>(o.count)));
  if (o.json) {
    Json results = Json::array();
    for (const size_t i : order)
      results.push_back({{"index", i}, {"relevance_score", ranking.scores[i]}, {"text", texts[i]}});
    std::cout << Json{{"results", results}}.dump() << "\n";
    return kRight;
  }
  for (const size_t i : order)
    std::cout << fmt::format("{:9.4f}  {}\n", ranking.scores[i], printable(texts[i]));
  return kRight;
}

}  // namespace

void add_rerank_command(const Command& program) {
  const Command command =
      program.subcommand("rerank", "order texts by how relevant they are to a query");
  auto options = std::make_shared<Options>();
  options->model.choice.default_title = "none: a reranker is needed";
  add_model_arguments(command, options->model);
  command.option("query", options->query, "what the texts should answer").required();
  command.option("texts", options->texts,
                 "the texts, or one file with a text on each line (default: standard input)");
  command.option("-f,--file", options->file,
                 "a file with one text on each line (-: standard input)");
  command.option("-n,--top", options->count, "print the best N texts (default: all)").positive();
  command.flag("--json", options->json,
               "print JSON: results[] with index, relevance_score and text");
  command.footer(
      "The best text comes first. The scores are those of the model's classification head; only "
      "their order has a meaning.\nExamples:\n  prism rerank bge-reranker-v2-m3.gguf 'what is a "
      "panda?' 'a bear of China' 'a fish'\n  prism rerank bge-reranker-v2-m3.gguf 'what is a "
      "panda?' passages.txt -n 3");
  command.run([options] { return rerank(*options); });
}

}  // namespace prism::cli
