// Tokenizers in other files than tokenizer.json: tiktoken's lists of ranks, vocab.json with
// merges.txt, and vocab.txt.
#pragma once

#include <optional>

#include "base/json.h"
#include "llm/convert/hf_folder.h"

namespace prism::llm {

// What tokenizer.json would say. "end_of_text" names the token that ends a text if no other file
// says it. Nothing if the folder has none of these files. Throws kNotSupported naming the class of
// a tokenizer whose rules are not known, kCorruptFile naming the file and the line.
std::optional<Json> tokenizer_json_of_parts(const HfFolder& folder);

}  // namespace prism::llm
