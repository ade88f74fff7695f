// RWKV's tokenizer: at each place of a text, the longest token that fits. Files have tokens as
// Python shows bytes: "\xff\n".
#include <algorithm>

#include "llm/tokenizer/text_encoder.h"

namespace prism::llm {

namespace {

int digit_of(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string unescaped(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      bytes += text[at];
      continue;
    }
    const char kind = text[++at];
    const int high = at + 2 < text.size() ? digit_of(text[at + 1]) : -1,
              low = at + 2 < text.size() ? digit_of(text[at + 2]) : -1;
    if (kind == 'x' && high >= 0 && low >= 0) {
      bytes += static_cast<char>(high * 16 + low);
      at += 2;
    } else {
      bytes += kind == 't' ? '\t' : kind == 'n' ? '\n' : kind == 'r' ? '\r' : kind;
    }
  }
  return bytes;
}

class RwkvEncoder : public TextEncoder {
 public:
  explicit RwkvEncoder(const Vocabulary& vocabulary) : unknown_(vocabulary.unknown) {
    for (size_t i = 0; i < vocabulary.texts.size(); ++i)
      if (vocabulary.types[i] == TokenType::normal)
        if (std::string bytes = unescaped(vocabulary.texts[i]); !bytes.empty())
          tokens_.push_back({std::move(bytes), static_cast<int32_t>(i)});
    std::ranges::sort(tokens_);
  }

  void encode(std::string_view text, bool, std::vector<int32_t>* ids) const override {
    while (!text.empty()) {
      const Token* const best = longest(text);
      if (best)
        ids->push_back(best->second);
      else if (unknown_ >= 0)
        ids->push_back(unknown_);
      text.remove_prefix(best ? best->first.size() : 1);
    }
  }
  std::string bytes_of(std::string_view token) const override { return unescaped(token); }

 private:
  using Token = std::pair<std::string, int32_t>;

  // Narrows the sorted tokens to those that begin like the text, byte by byte.
  const Token* longest(std::string_view text) const {
    const Token* best = nullptr;
    auto first = tokens_.begin(), last = tokens_.end();
    for (size_t at = 0; at < text.size() && first != last; ++at) {
      const auto byte = [at](const Token& token) {
        return at < token.first.size() ? static_cast<unsigned char>(token.first[at]) : -1;
      };
      const int wanted = static_cast<unsigned char>(text[at]);
      first = std::partition_point(first, last, [&](const Token& t) { return byte(t) < wanted; });
      last = std::partition_point(first, last, [&](const Token& t) { return byte(t) <= wanted; });
      if (first != last && first->first.size() == at + 1) best = &*first;
    }
    return best;
  }

  std::vector<Token> tokens_;
  int32_t unknown_;
};

}  // namespace

std::unique_ptr<TextEncoder> make_rwkv_encoder(const Vocabulary& vocabulary) {
  return std::make_unique<RwkvEncoder>(vocabulary);
}

}  // namespace prism::llm
