// The tokens of a query and a document as rerankers read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

// By the file's template for rerankers, tokenizer.chat_template.rerank, with {query} and {document}
// replaced, or else as pairs are in training: BOS query EOS separator document EOS, of which the
// tokenizer adds those that it adds to single texts. A pair has at most `most` tokens: the end of a
// longer document is left out. Throws kInvalidArgument if there is no room for any of it.
class PairTokens {
 public:
  PairTokens(const GgufFile& file, const Tokenizer& tokenizer, std::string_view query,
             int64_t most);
  std::vector<int32_t> with(const std::string& document) const;

 private:
  std::vector<int32_t> by_template(const std::string& document) const;
  void check_room(int64_t beside) const;

  const Tokenizer& tokenizer_;
  std::string template_;  // with the query, without the document; empty: none
  size_t document_at_ = 0;
  std::vector<int32_t> before_, after_;  // the tokens around a document without a template
  int64_t most_;
};

}  // namespace prism::llm
