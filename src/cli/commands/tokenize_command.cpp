// `prism tokenize`: the tokens of a text.
#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/model_arguments.h"
#include "cli/model_fetch.h"
#include "cli/terminal.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"

namespace prism::cli {
namespace {

struct Options {
  std::string model;
  TextArguments text;
  bool json = false, no_bos = false, no_special = false;
};

int tokenize(const Options& options) {
  const llm::Tokenizer tokenizer =
      llm::Tokenizer::from(llm::GgufFile::open(model_path(options.model)));
  const std::string text = read_text(options.text);
  const std::vector<int32_t> ids = tokenizer.encode(
      text, {.add_special = !options.no_bos, .parse_special = !options.no_special});
  if (options.json) {
    Json pieces = Json::array();
    for (const int32_t id : ids) pieces.push_back(repair_utf8(tokenizer.piece(id, true)));
    std::cout << Json{{"ids", ids}, {"pieces", pieces}}.dump() << "\n";
    return kRight;
  }
  std::string out;
  for (const int32_t id : ids)
    out += fmt::format("{:>7} {}\n", id, escaped_text(tokenizer.piece(id, true)));
  std::cout << out;
  return kRight;
}

}  // namespace

void add_tokenize_command(const Command& program) {
  const Command command = program.subcommand("tokenize", "print the tokens of a text");
  auto options = std::make_shared<Options>();
  command.option("MODEL", options->model, "a GGUF file or the name of a model").required();
  add_text_arguments(command, options->text, "the text", "TEXT");
  command.flag("--json", options->json, "print JSON: ids and pieces");
  command.flag("--no-bos", options->no_bos,
               "leave out the tokens that the model expects around a text");
  command.flag("--no-special", options->no_special,
               "treat control tokens in the text as plain text");
  command.footer(
      "Without TEXT and -f the text comes from standard input, and every byte of it "
      "counts.\nExamples:\n  prism tokenize model.gguf 'Hello world'\n  "
      "prism tokenize model.gguf --json <prompt.txt | jq '.ids | length'");
  command.run([options] { return tokenize(*options); });
}

}  // namespace prism::cli
