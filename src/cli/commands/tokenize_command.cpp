// `prism tokenize`: a text as the tokens of a model.
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/model_fetch.h"
#include "llm/tokenizer/utf8.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"

namespace prism::cli {
namespace {

struct Options {
  std::string model;
  bool json = false, no_bos = false, no_special = false;
};

// One line of plain text: what would break it, or a terminal, is escaped.
std::string printable(std::string_view piece) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const llm::Utf8Character next = llm::utf8_at(piece, at);
    const auto byte = static_cast<unsigned char>(piece[at]);
    if (byte == '\n')
      out += "\\n";
    else if (byte == '\\')
      out += "\\\\";
    else if (!next.is_valid || byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += piece.substr(at, next.bytes);
    at += next.bytes;
  }
  return out;
}

int tokenize(const Options& options) {
  const llm::Tokenizer tokenizer =
      llm::Tokenizer::from(llm::GgufFile::open(model_path(options.model)));
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const std::vector<int32_t> ids = tokenizer.encode(
      text, {.add_special = !options.no_bos, .parse_special = !options.no_special});
  if (options.json) {
    Json pieces = Json::array();
    for (const int32_t id : ids) pieces.push_back(llm::repair_utf8(tokenizer.piece(id, true)));
    std::cout << Json{{"ids", ids}, {"pieces", pieces}}.dump() << "\n";
    return kRight;
  }
  std::string out;
  for (const int32_t id : ids)
    out += fmt::format("{:>7} {}\n", id, printable(tokenizer.piece(id, true)));
  std::cout << out;
  return kRight;
}

}  // namespace

void add_tokenize_command(const Command& program) {
  const Command command =
      program.subcommand("tokenize", "show the tokens a model makes of the text on standard input");
  auto options = std::make_shared<Options>();
  command.option("MODEL", options->model, "a GGUF file, or a model by name").required();
  command.flag("--json", options->json, "print JSON: ids and pieces");
  command.flag("--no-bos", options->no_bos,
               "add none of the tokens that the model expects around a text");
  command.flag("--no-special", options->no_special,
               "take the texts of control tokens as plain text");
  command.footer(
      "Examples:\n  echo -n \"Hello world\" | prism tokenize model.gguf\n  "
      "prism tokenize model.gguf --json <prompt.txt | jq '.ids | length'");
  command.run([options] { return tokenize(*options); });
}

}  // namespace prism::cli
