// What an independent engine made of the small models in ../shared: ids, text, logits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prism::test {

struct ExpectedText {
  std::vector<int32_t> ids;   // prompt and 60 tokens of greedy continuation
  size_t prompt = 5;          // ids of the prompt
  std::vector<float> logits;  // one row a position, for the first positions
};

// Of shared/expected/NAME; ids are empty where there is no such file.
ExpectedText expected_text(const std::string& name, const std::string& logits_file);

// shared/models/NAME.gguf, or nothing where it is not there.
std::string shared_model(const std::string& name);

}  // namespace prism::test
