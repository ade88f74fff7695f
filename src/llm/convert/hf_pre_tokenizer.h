// Recognises the pre-tokenizers and normalizers of tokenizer.json files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace prism::llm {

// The rules of a sequence, or the one rule; none if there is nothing. list: the name of the
// sequence.
std::vector<JsonView> rules_of(const JsonView& part, const char* list);
// Whether texts are split into bytes of GPT-2's alphabet.
bool has_byte_level(const JsonView& pre_tokenizer);
// The type (tokenizer.ggml.pre) whose expressions are those of the pre-tokenizer. Throws
// kNotSupported with the expressions found if there is none.
std::string_view byte_level_type(const JsonView& pre_tokenizer, bool ignores_merges);
// Whether the normalizer is absent or only composes characters, which GGUF files cannot say and
// texts hardly ever need.
bool is_composition(const JsonView& normalizer);
// Whether SentencePiece-like rules put a space before a text. Throws kNotSupported naming a rule
// that is none of them.
bool sentence_space_prefix(const JsonView& normalizer, const JsonView& pre_tokenizer);

}  // namespace prism::llm
