// The texts of ../shared/tokenizers and their expected tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prism::test {

struct TokenizerTexts {
  std::string all;  // the whole file
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> ids;  // of the texts; the last text may have none
};

// Reads NAME.inp and NAME.out.
TokenizerTexts tokenizer_texts(const std::string& name);

}  // namespace prism::test
