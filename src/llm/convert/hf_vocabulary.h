// The tokens of a Hugging Face tokenizer: texts by id, their types and the special ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "llm/gguf/gguf_writer.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

class HfVocabulary {
 public:
  explicit HfVocabulary(int64_t size);

  // Throw kCorruptFile for an id that is taken or out of range.
  void add(const std::string& text, int64_t id);
  // {"the": 5, ...}
  void add_all(const JsonView& vocabulary);
  // tokenizer.json's added_tokens: special ones are control tokens, others are parsed in any text.
  // Ids beyond the embedding have no weights and are left out.
  void add_added(const JsonView& added);
  // tokenizer_config.json's added_tokens_decoder: the id is the name of a member.
  void add_added(const std::string& id, const JsonView& token);

  int64_t size() const { return static_cast<int64_t>(texts_.size()); }
  std::optional<int64_t> find(const std::string& text) const;
  const std::vector<std::string>& texts() const { return texts_; }
  std::vector<std::string>& texts() { return texts_; }
  TokenType type(int64_t id) const { return types_[static_cast<size_t>(id)]; }
  void set_type(int64_t id, TokenType type) { types_[static_cast<size_t>(id)] = type; }

  // Writes the lists of tokens and types; ids without a token get a name that no text has.
  void write(GgufWriter& to) const;

 private:
  void add_added(int64_t id, const JsonView& token);

  std::vector<std::string> texts_;
  std::vector<bool> is_taken_;
  std::vector<TokenType> types_;
  std::unordered_map<std::string, int64_t> ids_;
};

}  // namespace prism::llm
