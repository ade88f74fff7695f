// Results of an independent engine for the small models in ../shared: ids, text, logits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prism::test {

struct ExpectedText {
  std::vector<int32_t> ids;   // prompt and 60 tokens of greedy continuation
  size_t prompt = 5;          // number of ids in the prompt
  std::vector<float> logits;  // one row per position, for the first positions
};

// Reads shared/expected/NAME; ids are empty if there is no such file.
ExpectedText expected_text(const std::string& name, const std::string& logits_file);

// shared/models/NAME.gguf, or empty if it does not exist.
std::string shared_model(const std::string& name);

}  // namespace prism::test
