// The vocabulary of a model that is trained here.
#include "llm/train/trained_vocabulary.h"

#include <fmt/format.h>

#include "llm/gguf/gguf_writer.h"
#include "llm/tokenizer/byte_alphabet.h"
#include "llm/train/bpe_trainer.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

constexpr const char* kModel = "gpt2";
constexpr const char* kPre = "gpt-2";
constexpr int64_t kFewest = 257;

}  // namespace

TrainedVocabulary::TrainedVocabulary(const BpeMerges& learned) {
  auto tables = std::make_shared<Tables>();
  for (const std::string& token : learned.tokens)
    tables->tokens.push_back(byte_alphabet().spell(token));
  for (const auto& [left, right] : learned.merges)
    tables->merges.push_back(tables->tokens[static_cast<size_t>(left)] + " " +
                             tables->tokens[static_cast<size_t>(right)]);
  tables->tokens.emplace_back(kEndOfText);
  tables_ = std::move(tables);
}

TrainedVocabulary TrainedVocabulary::of_words(std::string_view text, int64_t tokens) {
  if (tokens < kFewest)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("vocabulary: {} tokens; it needs {} for the bytes and the end of a "
                            "text, and more for parts of words",
                            tokens, kFewest));
  return TrainedVocabulary(learn_bpe(text, tokens - 1, kPre, kEndOfText));
}

TrainedVocabulary TrainedVocabulary::of_characters(std::string_view text) {
  return TrainedVocabulary(learn_characters(text, kEndOfText));
}

Tokenizer TrainedVocabulary::tokenizer() const {
  TokenizerTables tables;
  tables.model = kModel;
  tables.pre = kPre;
  tables.tokens.assign(tables_->tokens.begin(), tables_->tokens.end());
  tables.merges.assign(tables_->merges.begin(), tables_->merges.end());
  tables.types.assign(tables_->tokens.size(), TokenType::normal);
  tables.types.back() = TokenType::control;
  tables.bos = tables.eos = size() - 1;
  tables.add_bos = false;
  tables.keep_alive = tables_;
  return Tokenizer(std::move(tables));
}

void TrainedVocabulary::write(GgufWriter& to) const {
  std::vector<int32_t> types(tables_->tokens.size(), static_cast<int32_t>(TokenType::normal));
  types.back() = static_cast<int32_t>(TokenType::control);
  const auto end = static_cast<uint32_t>(size() - 1);
  to.set("tokenizer.ggml.model", kModel);
  to.set("tokenizer.ggml.pre", kPre);
  to.set("tokenizer.ggml.tokens", tables_->tokens);
  to.set("tokenizer.ggml.token_type", types);
  to.set("tokenizer.ggml.merges", tables_->merges);
  to.set("tokenizer.ggml.bos_token_id", end);
  to.set("tokenizer.ggml.eos_token_id", end);
  to.set("tokenizer.ggml.add_bos_token", false);
}

}  // namespace prism::llm
