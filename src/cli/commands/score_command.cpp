// `prism score`: the probability of each token of a text, and of the likelier alternatives.
#include <algorithm>
#include <iostream>
#include <limits>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_arguments.h"
#include "cli/terminal.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  TextArguments text;
  std::vector<int64_t> ids;
  std::string source;
  int64_t top = 5;
  bool json = false;
};

int score(const Options& o) {
  const std::string text = o.ids.empty() ? read_text(o.text) : std::string();
  llm::LanguageModel model = open_model(o.model);
  const llm::Tokenizer& tokenizer = model.tokenizer();
  std::vector<int32_t> ids;
  for (const int64_t id : o.ids)  // one that is too large is none of the vocabulary
    ids.push_back(static_cast<int32_t>(std::min<int64_t>(id, std::numeric_limits<int32_t>::max())));
  std::vector<llm::TokenScore> scores =
      ids.empty() ? model.score(text, o.top, o.source) : model.score(ids, o.top);
  // The user did not write the token that the tokenizer puts before every text.
  if (o.ids.empty() && !scores.empty() && scores[0].id == tokenizer.bos() && tokenizer.adds_bos())
    scores.erase(scores.begin());
  double sum = 0;
  int64_t count = 0;
  Json tokens = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const llm::TokenScore& each : scores) {
    const std::string piece = tokenizer.piece(each.id, true);
    if (each.logprob) sum += *each.logprob, ++count;
    if (o.json) {
      Json top = Json::array();
      for (const llm::RankedToken& other : each.top)
        top.push_back({{"id", other.id},
                       {"text", tokenizer.piece(other.id, true)},
                       {"logprob", other.logprob}});
      tokens.push_back({{"id", each.id},
                        {"text", piece},
                        {"logprob", each.logprob ? Json(*each.logprob) : Json(nullptr)},
                        {"top", top}});
      continue;
    }
    std::string others;
    for (const llm::RankedToken& other : each.top)
      others += fmt::format("{}{} {:.2f}", others.empty() ? "" : "  ",
                            shown_text(tokenizer.piece(other.id, true)), other.logprob);
    rows.push_back({std::to_string(each.id), shown_text(piece),
                    each.logprob ? fmt::format("{:.4f}", *each.logprob) : "-", others});
  }
  if (o.json)
    std::cout << Json{{"tokens", tokens}, {"logprob", sum}}.dump(2) << "\n";
  else
    std::cout << table({"id", "token", "logprob", "likeliest"}, rows)
              << fmt::format("sum {:.4f} over {} tokens\n", sum, count);
  return kRight;
}

}  // namespace

void add_score_command(const Command& program) {
  const Command command =
      program.subcommand("score", "print the log-probability of each token of a text");
  auto options = std::make_shared<Options>();
  add_model_arguments(command, options->model);
  add_text_arguments(command, options->text, "the text", "TEXT");
  command.option("--ids", options->ids, "token ids in place of a text: 1,2,3")
      .not_negative()
      .separated_by(',');
  command.option("--source", options->source,
                 "what the encoder of a model such as T5 sees; without it, the text itself");
  command
      .option("--top", options->top, "how many of the likeliest tokens to show for each position")
      .not_negative()
      .shows_default();
  command.flag("--json", options->json, "print JSON: tokens[] with id, text, logprob, top[]");
  command.footer(
      "Logarithms are natural. The first token has no probability if the tokenizer puts no token "
      "before a text.\nExamples:\n  prism score model.gguf 'Once upon a time' --top 3\n  "
      "prism score model.gguf -f story.txt --json\n  prism score model.gguf --ids 1,15,27");
  command.run([options] { return score(*options); });
}

}  // namespace prism::cli
