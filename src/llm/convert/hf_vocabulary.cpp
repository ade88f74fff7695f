// Collects the tokens of a Hugging Face tokenizer and checks their ids.
#include "llm/convert/hf_vocabulary.h"

#include <charconv>

#include <fmt/format.h>

#include "base/printable.h"
#include "prism/error.h"

namespace prism::llm {

HfVocabulary::HfVocabulary(int64_t size)
    : texts_(static_cast<size_t>(size)),
      is_taken_(static_cast<size_t>(size)),
      types_(static_cast<size_t>(size), TokenType::unused) {}

void HfVocabulary::add(const std::string& text, int64_t id) {
  if (id < 0 || id >= size())
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("tokenizer.json: token \"{}\" has the id {}, but the embedding has {} "
                            "rows; is the tokenizer that of another model?",
                            printable(text), id, size()));
  const auto at = static_cast<size_t>(id);
  if (is_taken_[at] && texts_[at] != text)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("tokenizer.json: the tokens \"{}\" and \"{}\" both have the id {}",
                            printable(texts_[at]), printable(text), id));
  if (const auto [known, is_new] = ids_.emplace(text, id); !is_new && known->second != id)
    throw Error(ErrorCode::kCorruptFile, fmt::format("tokenizer.json: token \"{}\" has the ids {} "
                                                     "and {}",
                                                     printable(text), known->second, id));
  texts_[at] = text;
  is_taken_[at] = true;
  types_[at] = TokenType::normal;
}

void HfVocabulary::add_all(const JsonView& vocabulary) {
  for (const Json::Member& each : vocabulary.json().members())
    add(each.key, JsonView(each.value, "model.vocab").integer());
}

void HfVocabulary::add_added(const JsonView& added) {
  for (const JsonView& each : added.items()) add_added(each["id"].integer(0), each);
}

void HfVocabulary::add_added(const std::string& id, const JsonView& token) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc() || end != id.data() + id.size() || number < 0)
    token.fail("has a name that is no id");
  add_added(number, token);
}

void HfVocabulary::add_added(int64_t id, const JsonView& token) {
  if (id >= size()) return;
  const bool is_unknown = is_taken_[static_cast<size_t>(id)] && type(id) == TokenType::unknown;
  add(token["content"].string(), id);
  const bool is_special = token["special"].boolean_or(false);
  set_type(id, is_unknown   ? TokenType::unknown
               : is_special ? TokenType::control
                            : TokenType::user_defined);
}

std::optional<int64_t> HfVocabulary::find(const std::string& text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

void HfVocabulary::write(GgufWriter& to) const {
  std::vector<std::string> texts = texts_;
  std::vector<int32_t> types;
  for (size_t id = 0; id < texts.size(); ++id) {
    if (!is_taken_[id]) texts[id] = fmt::format("[PAD{}]", id);
    types.push_back(static_cast<int32_t>(types_[id]));
  }
  to.set("tokenizer.ggml.tokens", texts);
  to.set("tokenizer.ggml.token_type", types);
}

}  // namespace prism::llm
