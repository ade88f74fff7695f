// Reads the tokenizer's tables from a GGUF file.
#include <algorithm>
#include <cctype>

#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {
namespace {

std::optional<int64_t> integer(const GgufFile& file, std::string_view key) {
  if (!file.has(key)) return std::nullopt;
  return file.integer(key);
}

std::optional<bool> boolean(const GgufFile& file, std::string_view key) {
  if (!file.has(key)) return std::nullopt;
  return file.boolean(key);
}

// Files without a vocabulary name their tokens by number: [0], [1] ...
void name_by_number(const GgufFile& file, TokenizerTables& tables) {
  const GgufTensor* table = file.find_tensor("token_embd.weight");
  if (!table) table = file.find_tensor("output.weight");  // codeshell may have only this one
  const int64_t count = table && table->shape.rank() == 2 ? table->shape[0] : 0;
  auto names = std::make_shared<std::vector<std::string>>();
  for (int64_t id = 0; id < count; ++id) names->push_back("[" + std::to_string(id) + "]");
  tables.tokens.assign(names->begin(), names->end());
  tables.keep_alive = names;
}

}  // namespace

TokenizerTables TokenizerTables::from(const GgufFile& file) {
  TokenizerTables tables;
  tables.model = file.string("tokenizer.ggml.model");
  tables.pre = file.string_or("tokenizer.ggml.pre", "");
  // Other names of these.
  if (tables.model == "none") tables.model = "no_vocab";
  if (tables.model == "whitespace") {
    tables.model = "gpt2";
    tables.pre = "whitespace";
  }
  tables.tokens = file.strings("tokenizer.ggml.tokens");
  tables.merges = file.strings("tokenizer.ggml.merges");
  // A vocabulary of characters has an empty list.
  if ((tables.model == "gpt2" || tables.model == "gemma4") && !file.has("tokenizer.ggml.merges"))
    throw Error(ErrorCode::kCorruptFile, "tokenizer: tokenizer.ggml.merges is absent");
  tables.scores = file.floats("tokenizer.ggml.scores");
  for (const int64_t type : file.integers("tokenizer.ggml.token_type")) {
    const bool known = type >= 0 && type <= static_cast<int64_t>(TokenType::byte);
    tables.types.push_back(known ? static_cast<TokenType>(type) : TokenType::undefined);
  }
  for (const int64_t byte : file.integers("tokenizer.ggml.precompiled_charsmap"))
    tables.character_map.push_back(static_cast<uint8_t>(byte));
  tables.bos = integer(file, "tokenizer.ggml.bos_token_id");
  if (!tables.bos) tables.bos = integer(file, "tokenizer.ggml.cls_token_id");
  tables.eos = integer(file, "tokenizer.ggml.eos_token_id");
  tables.eot = integer(file, "tokenizer.ggml.eot_token_id");
  tables.eom = integer(file, "tokenizer.ggml.eom_token_id");
  tables.unknown = integer(file, "tokenizer.ggml.unknown_token_id");
  tables.separator = integer(file, "tokenizer.ggml.seperator_token_id");  // sic
  if (!tables.separator) tables.separator = integer(file, "tokenizer.ggml.separator_token_id");
  tables.suppressed = file.integers("tokenizer.ggml.suppress_tokens");
  tables.add_bos = boolean(file, "tokenizer.ggml.add_bos_token");
  tables.add_eos = boolean(file, "tokenizer.ggml.add_eos_token");
  tables.add_separator = boolean(file, "tokenizer.ggml.add_sep_token");
  tables.add_space_prefix = boolean(file, "tokenizer.ggml.add_space_prefix");
  tables.remove_extra_spaces = boolean(file, "tokenizer.ggml.remove_extra_whitespaces");
  tables.break_repeated = integer(file, "tokenizer.ggml.break_around_repeated_chars");
  tables.break_spaces = integer(file, "tokenizer.ggml.break_around_consecutive_spaces");
  tables.lowercase = boolean(file, "tokenizer.ggml.normalizer.lowercase");
  tables.strip_accents = boolean(file, "tokenizer.ggml.normalizer.strip_accents");
  // Phi-3's special tokens absorb the following space; only the model's name identifies it.
  std::string name(file.string_or("general.name", ""));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  tables.strip_after_special = tables.model == "llama" &&
                               (name.find("phi-3") != name.npos || name.find("phi3") != name.npos);
  tables.keep_alive = std::make_shared<const GgufFile>(file);
  if (tables.model == "no_vocab") name_by_number(file, tables);
  return tables;
}

}  // namespace prism::llm
