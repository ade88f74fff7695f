// Builds the tokens of pairs, with a template and without.
#include "llm/generate/pair_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {

namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template.rerank";
constexpr std::string_view kQuery = "{query}", kDocument = "{document}";

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string result;
  for (;;) {
    const size_t at = text.find(what);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    result += by;
    text.remove_prefix(at + what.size());
  }
}

}  // namespace

PairTokens::PairTokens(const GgufFile& file, const Tokenizer& tokenizer, std::string_view query,
                       int64_t most)
    : tokenizer_(tokenizer), most_(most) {
  const std::string_view text = file.string_or(kTemplateKey, "");
  if (!text.empty()) {
    // The document comes last, so that a query with {document} in it stays what it is.
    const size_t at = text.find(kDocument);
    template_ = replaced(text.substr(0, at), kQuery, query);
    document_at_ = template_.size();
    if (at != std::string_view::npos)
      template_ += replaced(text.substr(at + kDocument.size()), kQuery, query);
    check_room(static_cast<int64_t>(by_template("").size()));
    return;
  }
  const EncodeOptions plain{.add_special = false, .parse_special = false};
  const int32_t end = tokenizer.eos() >= 0 ? tokenizer.eos() : tokenizer.separator();
  if (tokenizer.adds_bos()) before_.push_back(tokenizer.bos());
  const std::vector<int32_t> tokens = tokenizer.encode(query, plain);
  before_.insert(before_.end(), tokens.begin(), tokens.end());
  if (tokenizer.adds_eos()) before_.push_back(end);
  if (tokenizer.adds_separator()) before_.push_back(tokenizer.separator());
  if (tokenizer.adds_eos())
    after_.push_back(end);
  else if (tokenizer.adds_separator())
    after_.push_back(tokenizer.separator());
  check_room(static_cast<int64_t>(before_.size() + after_.size()));
}

void PairTokens::check_room(int64_t beside) const {
  if (beside < most_) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("rerank: the query and what surrounds it have {} tokens, and the context "
                          "{}, so no document fits; shorten the query, or load the model with a "
                          "larger context",
                          beside, most_));
}

std::vector<int32_t> PairTokens::by_template(const std::string& document) const {
  std::string text = template_;
  text.insert(document_at_, document);
  return tokenizer_.encode(text, {.add_special = false, .parse_special = true});
}

std::vector<int32_t> PairTokens::with(const std::string& document) const {
  const EncodeOptions plain{.add_special = false, .parse_special = false};
  if (!template_.empty()) {
    std::vector<int32_t> tokens = by_template(document);
    if (static_cast<int64_t>(tokens.size()) <= most_) return tokens;
    // Tokens at the borders may join or split, so the rest is counted again.
    std::vector<int32_t> kept = tokenizer_.encode(document, plain);
    while (static_cast<int64_t>(tokens.size()) > most_ && !kept.empty()) {
      const auto over = static_cast<size_t>(static_cast<int64_t>(tokens.size()) - most_);
      kept.resize(kept.size() - std::min(over, kept.size()));
      tokens = by_template(tokenizer_.decode(kept));
    }
    return tokens;
  }
  std::vector<int32_t> tokens = tokenizer_.encode(document, plain);
  const auto room = static_cast<size_t>(most_) - before_.size() - after_.size();
  if (tokens.size() > room) tokens.resize(room);
  tokens.insert(tokens.begin(), before_.begin(), before_.end());
  tokens.insert(tokens.end(), after_.begin(), after_.end());
  return tokens;
}

}  // namespace prism::llm
