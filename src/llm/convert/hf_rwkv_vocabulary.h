// RWKV's own list of tokens: lines with a number, a token as Python writes it, and its bytes.
#pragma once

#include <string_view>

#include "llm/convert/hf_vocabulary.h"

namespace prism::llm {

inline constexpr const char* kRwkvVocabulary = "rwkv_vocab_v20230424.txt";

// Adds the tokens and the kind of the tokenizer. Throws kCorruptFile naming the line.
void write_rwkv_vocabulary(std::string_view lines, HfVocabulary& vocabulary, GgufWriter& to);

}  // namespace prism::llm
