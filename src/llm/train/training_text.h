// The text of a file as training data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

// Reads UTF-8, packed by gzip or not; a byte order mark is left out. Some invalid bytes become
// U+FFFD, with a warning. Throws kInvalidArgument for an empty file and for one that is no UTF-8
// text, and as nn::load_text.
std::string read_training_text(const std::string& path);

struct TokenSplit {
  std::vector<int32_t> training, validation;
};

// The last part of the tokens becomes the validation set: `share` of them, but at least one
// sequence unless share is 0. Throws kInvalidArgument, naming `path`, if a part is too short for a
// sequence, or the training part for a batch.
TokenSplit split_tokens(std::vector<int32_t> tokens, double share, int64_t context, int64_t batch,
                        const std::string& path);

}  // namespace prism::llm
