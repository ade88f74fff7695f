// Prompts for models that fill in the middle of a text: they read what comes before and after it.
//
//   const std::optional<FillInMiddle> fill = FillInMiddle::of(file, tokenizer);
//   if (fill) tokens = fill->prompt(tokenizer, {.before = "int add(", .after = "}"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

struct FillInMiddle {
  int32_t prefix = -1, suffix = -1, middle = -1;
  int32_t repository = -1, file = -1;  // begin the names of a repository and of its files; -1: none

  // The tokens that the file names, or those of well-known texts. Nothing if the vocabulary has
  // not all of prefix, suffix and middle.
  static std::optional<FillInMiddle> of(const GgufFile& file, const Tokenizer& tokenizer);

  struct OtherFile {
    std::string name, text;
  };
  struct Parts {
    std::string before = {}, after = {};
    std::string begun = {};              // the beginning of the middle
    std::vector<OtherFile> others = {};  // further files for the model to look at
  };
  std::vector<int32_t> prompt(const Tokenizer& tokenizer, const Parts& parts) const;
};

}  // namespace prism::llm
